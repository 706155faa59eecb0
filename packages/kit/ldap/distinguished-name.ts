// Distinguished names as text (RFC 4514): reading, writing, comparing.

/** One part of a name: usually one `type=value`, several when joined by `+`. */
export type RelativeName = { type: string; value: string }[];

const TYPE = /^(?:[A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)+)$/;

/**
 * True for one or more `type=value` parts, joined by commas or plus signs; special characters in
 * values are escaped.
 */
export function isDistinguishedName(text: string): boolean {
  const parts = parseDistinguishedName(text);
  return parts !== undefined && parts.length > 0;
}

/**
 * The parts of a name, most specific first; `[]` for the empty name, undefined for text that is
 * none. Not taken, though RFC 4514 has them: empty values, and values in hexadecimal form.
 */
export function parseDistinguishedName(text: string): RelativeName[] | undefined {
  if (text === '') return [];
  if (!text.isWellFormed()) return undefined;
  const parts: RelativeName[] = [];
  for (const part of splitOutsideEscapes(text, ',')) {
    const pairs = splitOutsideEscapes(part, '+').map(readPair);
    if (!pairs.every((pair) => pair !== undefined)) return undefined;
    parts.push(pairs);
  }
  return parts;
}

function splitOutsideEscapes(text: string, separator: string): string[] {
  const pieces = [''];
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === separator) pieces.push('');
    else if (character === '\\') pieces.push(`${pieces.pop()}${character}${text.charAt(++at)}`);
    else pieces.push(`${pieces.pop()}${character}`);
  }
  return pieces;
}

function readPair(text: string): { type: string; value: string } | undefined {
  const separator = text.indexOf('=');
  if (separator < 1) return undefined;
  const type = text.slice(0, separator).trim();
  const value = readValue(text.slice(separator + 1));
  return TYPE.test(type) && value !== undefined && value !== '' ? { type, value } : undefined;
}

/**
 * Blanks around a value do not count unless they are escaped. A `#` begins a hexadecimal form,
 * which is not taken.
 */
function readValue(text: string): string | undefined {
  const trimmed = withoutOuterBlanks(text);
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  for (let at = 0; at < trimmed.length;) {
    const character = String.fromCodePoint(trimmed.codePointAt(at) ?? 0);
    if (character === '\\') {
      const escape = /^\\(?:([0-9A-Fa-f]{2})|([ "#+,;<=>\\]))/.exec(trimmed.slice(at, at + 3));
      if (escape === null) return undefined;
      if (escape[1] === undefined) bytes.push((escape[2] ?? '').charCodeAt(0));
      else bytes.push(Number.parseInt(escape[1], 16));
      at += escape[0].length;
      continue;
    }
    if (/["+,;<>\0]/.test(character) || (at === 0 && character === '#')) return undefined;
    bytes.push(...encoder.encode(character));
    at += character.length;
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return undefined;
  }
}

/** The last blank stays when an odd number of backslashes stands before it: it is escaped. */
function withoutOuterBlanks(text: string): string {
  let end = text.length;
  while (end > 0 && text.charAt(end - 1) === ' ') end--;
  let backslashes = 0;
  while (text.charAt(end - 1 - backslashes) === '\\') backslashes++;
  if (backslashes % 2 === 1 && end < text.length) end++;
  let begin = 0;
  while (begin < end && text.charAt(begin) === ' ') begin++;
  return text.slice(begin, end);
}

/** A value as it stands in a name: whatever it contains, it stays one value. */
export function escapeNameValue(value: string): string {
  return value.replaceAll(/["+,;<=>\\]|^[ #]| $|\0/g, (character) =>
    character === '\0' ? String.raw`\00` : `\\${character}`,
  );
}

/** The name as text, in the spelling of its parts. */
export function formatDistinguishedName(parts: readonly RelativeName[]): string {
  return parts.map((part) => part.map(({ type, value }) => `${type}=${escapeNameValue(value)}`).join('+')).join(',');
}

/**
 * The name in one spelling: case of types and values does not count, nor do several blanks in a
 * row.
 */
export function normalName(parts: readonly RelativeName[]): string {
  return formatDistinguishedName(
    parts.map((part) =>
      part
        .map(({ type, value }) => ({ type: type.toLowerCase(), value: value.toLowerCase().replaceAll(/ +/g, ' ') }))
        .toSorted((a, b) => compared(a.type, b.type) || compared(a.value, b.value)),
    ),
  );
}

function compared(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/**
 * What stands before `base` in `name`; undefined when the name is not below it (or is not the base
 * itself: `[]`).
 */
export function partsAbove(name: readonly RelativeName[], base: readonly RelativeName[]): RelativeName[] | undefined {
  const own = name.length - base.length;
  if (own < 0 || normalName(name.slice(own)) !== normalName(base)) return undefined;
  return name.slice(0, own);
}
