// Scans bytes of XML 1.0 in UTF-8: character classes, names, references, comments. Each `skip…`
// takes a start position and returns the position after it. Throws a StreamFault for malformed XML.

import { isUtf8 } from 'node:buffer';
import { StreamFault } from '../../model/stream.ts';

export const BANG = 0x21;
export const QUOTE = 0x22;
const HASH = 0x23;
export const AMP = 0x26;
export const APOSTROPHE = 0x27;
export const MINUS = 0x2d;
export const SLASH = 0x2f;
const SEMICOLON = 0x3b;
export const LESS = 0x3c;
export const EQUAL = 0x3d;
export const GREATER = 0x3e;
export const QUESTION = 0x3f;
export const BRACKET = 0x5d;

const NAME_START = 1;
export const NAME = 2;
export const SPACE = 4;
/** Where running text may have to end: `<`, `&`, `>` and what is no character of XML. */
export const TEXT_STOP = 8;
/** The same for the value of an attribute, with both quotes. */
export const VALUE_STOP = 16;
export const CONTROL = 32;
/** Part of a character beyond ASCII. */
const HIGH = 64;

/** What a byte may be, as a sum of the flags above. */
export const CLASS: Uint8Array = new Uint8Array(256).map((_, byte) => {
  const char = String.fromCharCode(byte);
  if (byte >= 0x80) return HIGH;
  const space = '\t\n\r '.includes(char) ? SPACE : 0;
  const control = byte < 0x20 && space === 0 ? CONTROL | TEXT_STOP | VALUE_STOP : 0;
  const start = /[A-Za-z_:]/.test(char) ? NAME_START | NAME : 0;
  const name = /[0-9.-]/.test(char) ? NAME : 0;
  const text = '<&>'.includes(char) ? TEXT_STOP : 0;
  const value = '<&"\''.includes(char) ? VALUE_STOP : 0;
  return space | control | start | name | text | value;
});

export function malformed(what: string, at: number): StreamFault {
  return new StreamFault(`XML is not well-formed: ${what}, at byte ${at} of the event`);
}

const BEYOND_XML = [Buffer.from([0xef, 0xbf, 0xbe]), Buffer.from([0xef, 0xbf, 0xbf])];

/** UTF-8 without U+FFFE and U+FFFF: all other characters beyond ASCII are characters of XML. */
export function checkCharacters(frame: Buffer): void {
  if (!isUtf8(frame)) throw new StreamFault('XML is not well-formed: not UTF-8');
  if (BEYOND_XML.some((bytes) => frame.includes(bytes))) {
    throw new StreamFault('XML is not well-formed: a character that XML does not allow');
  }
}

export function skipSpace(frame: Buffer, at: number, end: number): number {
  let i = at;
  while (i < end && ((CLASS[frame[i] as number] as number) & SPACE) !== 0) i++;
  return i;
}

/** Returns `at` itself where no name begins. */
export function skipName(frame: Buffer, at: number, end: number): number {
  if (at >= end || ((CLASS[frame[at] as number] as number) & (NAME_START | HIGH)) === 0) return at;
  let i = at;
  while (i < end) {
    const flags = CLASS[frame[i] as number] as number;
    if ((flags & NAME) !== 0) {
      i++;
    } else if ((flags & HIGH) === 0) {
      return i;
    } else {
      const code = codePointAt(frame, i);
      if (!(isHighNameStart(code) || (i > at && isHighName(code)))) return i;
      i += code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    }
  }
  return i;
}

/** Of bytes that are UTF-8. */
function codePointAt(frame: Buffer, at: number): number {
  const first = frame[at] as number;
  const second = (frame[at + 1] as number) & 0x3f;
  if (first < 0xe0) return ((first & 0x1f) << 6) | second;
  const third = (frame[at + 2] as number) & 0x3f;
  if (first < 0xf0) return ((first & 0x0f) << 12) | (second << 6) | third;
  return ((first & 0x07) << 18) | (second << 12) | (third << 6) | ((frame[at + 3] as number) & 0x3f);
}

/** NameStartChar of XML 1.0, fifth edition, beyond ASCII: first and last of each range. */
const HIGH_NAME_STARTS = [
  [0xc0, 0xd6],
  [0xd8, 0xf6],
  [0xf8, 0x2ff],
  [0x370, 0x37d],
  [0x37f, 0x1fff],
  [0x200c, 0x200d],
  [0x2070, 0x218f],
  [0x2c00, 0x2fef],
  [0x3001, 0xd7ff],
  [0xf900, 0xfdcf],
  [0xfdf0, 0xfffd],
  [0x10000, 0xeffff],
] as const;

function isHighNameStart(code: number): boolean {
  for (const [first, last] of HIGH_NAME_STARTS) if (code <= last) return code >= first;
  return false;
}

/** What may stand in a name and not begin it. */
function isHighName(code: number): boolean {
  return code === 0xb7 || (code >= 0x300 && code <= 0x36f) || code === 0x203f || code === 0x2040;
}

const ENTITIES: readonly (readonly [string, string])[] = [
  ['amp;', '&'],
  ['lt;', '<'],
  ['gt;', '>'],
  ['quot;', '"'],
  ['apos;', "'"],
];

/** Code point of the last reference that was read by `skipReference`. */
export let referred = 0;

/**
 * `&amp;`, `&#65;`, `&#x41;`: no other entities, since there is no DOCTYPE that could declare them.
 */
export function skipReference(frame: Buffer, at: number, end: number): number {
  if (at + 1 < end && frame[at + 1] === HASH) return skipCharacterReference(frame, at, end);
  for (const [name, text] of ENTITIES) {
    if (startsWith(frame, at + 1, end, name)) {
      referred = text.charCodeAt(0);
      return at + 1 + name.length;
    }
  }
  throw malformed('an unknown entity', at);
}

function skipCharacterReference(frame: Buffer, at: number, end: number): number {
  const isHex = at + 2 < end && frame[at + 2] === 0x78;
  const first = at + (isHex ? 3 : 2);
  let value = 0;
  let i = first;
  for (; i < end; i++) {
    const digit = digitOf(frame[i] as number);
    if (digit < 0 || (!isHex && digit > 9)) break;
    value = Math.min(value * (isHex ? 16 : 10) + digit, 0x110000);
  }
  if (i === first || i >= end || frame[i] !== SEMICOLON || !isCharacter(value)) {
    throw malformed('a reference to no character', at);
  }
  referred = value;
  return i + 1;
}

function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function isCharacter(code: number): boolean {
  return (
    (code >= 0x20 && code <= 0xd7ff) ||
    code === 0x09 ||
    code === 0x0a ||
    code === 0x0d ||
    (code >= 0xe000 && code <= 0xfffd) ||
    (code >= 0x10000 && code <= 0x10ffff)
  );
}

/** A name as `startsWith` compares it: one character for each byte. */
export function byteName(name: string): string {
  for (let k = 0; k < name.length; k++) {
    if (name.charCodeAt(k) >= 0x80) return Buffer.from(name).toString('latin1');
  }
  return name;
}

/** `text` has one character for each byte. */
export function startsWith(frame: Buffer, at: number, end: number, text: string): boolean {
  if (at + text.length > end) return false;
  for (let k = 0; k < text.length; k++) if (frame[at + k] !== text.charCodeAt(k)) return false;
  return true;
}

/** From `<!--`. */
export function skipComment(frame: Buffer, at: number, end: number): number {
  const i = skipTo(frame, at + 4, end, MINUS, MINUS, 'a comment without its end');
  if (i < end && frame[i] === GREATER) return i + 1;
  throw malformed('-- in a comment', i);
}

/** From `<![CDATA[`. */
export function skipCharacterData(frame: Buffer, at: number, end: number): number {
  let i = skipTo(frame, at + 9, end, BRACKET, BRACKET, 'CDATA without its end');
  while (i < end && frame[i] !== GREATER) {
    i = frame[i] === BRACKET ? i + 1 : skipTo(frame, i, end, BRACKET, BRACKET, 'CDATA without its end');
  }
  if (i >= end) throw malformed('CDATA without its end', at);
  return i + 1;
}

/** From `<?`. */
export function skipInstruction(frame: Buffer, at: number, end: number): number {
  const name = at + 2;
  const after = skipName(frame, name, end);
  if (after === name || after >= end) throw malformed('a processing instruction without a target', at);
  const next = frame[after] as number;
  if (next !== QUESTION && ((CLASS[next] as number) & SPACE) === 0) {
    throw malformed('a processing instruction with a bad target', at);
  }
  if (after - name === 3 && frame.toString('latin1', name, after).toLowerCase() === 'xml') {
    throw malformed('an XML declaration inside', at);
  }
  return skipTo(frame, after, end, QUESTION, GREATER, 'a processing instruction without its end');
}

/** After the first place where both bytes stand, one after the other. */
function skipTo(frame: Buffer, at: number, end: number, first: number, second: number, missing: string): number {
  for (let i = at; i < end; i++) {
    const byte = frame[i] as number;
    if (byte === second && i > at && frame[i - 1] === first) return i + 1;
    if (((CLASS[byte] as number) & CONTROL) !== 0) throw malformed('a control character', i);
  }
  throw malformed(missing, at);
}

/** Returns where the value begins, after its quote. */
export function skipEqual(frame: Buffer, at: number, end: number): number {
  let i = skipSpace(frame, at, end);
  if (i >= end || frame[i] !== EQUAL) throw malformed('an attribute without a value', at);
  i = skipSpace(frame, i + 1, end);
  if (i >= end || (frame[i] !== QUOTE && frame[i] !== APOSTROPHE)) throw malformed('a value without quotes', at);
  return i + 1;
}

/** Returns the place of the closing quote. */
export function skipValue(frame: Buffer, at: number, end: number, quote: number): number {
  let i = at;
  while (i < end) {
    const byte = frame[i] as number;
    if (((CLASS[byte] as number) & VALUE_STOP) === 0) i++;
    else if (byte === quote) return i;
    else if (byte === AMP) i = skipReference(frame, i, end);
    else if (byte === QUOTE || byte === APOSTROPHE) i++;
    else throw malformed('a value with < or a control character', i);
  }
  throw malformed('a value without its end', at);
}
