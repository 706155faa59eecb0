// Decodes bytes of a well-formed event: resolves entities, normalizes line ends and attribute white
// space.

import { AMP, referred, skipReference, startsWith } from './xml-bytes.ts';

const TAB = 0x09;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;

/**
 * Short texts that came before, by a few of their bytes: names, uids and types come again and
 * again.
 */
const KNOWN_TEXTS: string[] = Array.from({ length: 512 }, () => '');
const MAX_KNOWN_LENGTH = 48;

/** As they stand; of an event that is all ASCII, or not. */
export function rawText(frame: Buffer, from: number, to: number, isAscii: boolean): string {
  const length = to - from;
  if (!isAscii || length > MAX_KNOWN_LENGTH) return frame.toString(isAscii ? 'latin1' : 'utf8', from, to);
  if (length === 0) return '';
  const sum = length + 31 * (frame[to - 1] as number) + 7 * (frame[from + (length >> 1)] as number);
  const place = sum & (KNOWN_TEXTS.length - 1);
  const known = KNOWN_TEXTS[place] as string;
  if (known.length === length && startsWith(frame, from, to, known)) return known;
  return (KNOWN_TEXTS[place] = frame.toString('latin1', from, to));
}

/** The value of an attribute, between its quotes. */
export function valueText(frame: Buffer, from: number, to: number, isAscii: boolean): string {
  for (let i = from; i < to; i++) {
    const byte = frame[i] as number;
    if (byte === AMP || byte < 0x20) return resolved(frame, from, to, true);
  }
  return rawText(frame, from, to, isAscii);
}

/** Text between tags. */
export function runningText(frame: Buffer, from: number, to: number, isAscii: boolean): string {
  for (let i = from; i < to; i++) {
    const byte = frame[i] as number;
    if (byte === AMP || byte === RETURN) return resolved(frame, from, to, false);
  }
  return rawText(frame, from, to, isAscii);
}

/** What stands in CDATA. */
export function literalText(frame: Buffer, from: number, to: number): string {
  return frame.toString('utf8', from, to).replaceAll('\r\n', '\n').replaceAll('\r', '\n');
}

/**
 * No reference is shorter than its character in UTF-8: what comes out fits into the length of what
 * went in.
 */
function resolved(frame: Buffer, from: number, to: number, isValue: boolean): string {
  const text = Buffer.allocUnsafe(to - from);
  let at = 0;
  for (let i = from; i < to;) {
    const byte = frame[i] as number;
    if (byte === AMP) {
      i = skipReference(frame, i, to);
      if (referred < 0x80) text[at++] = referred;
      else at += text.write(String.fromCodePoint(referred), at);
    } else if (byte === RETURN || (isValue && (byte === NEWLINE || byte === TAB))) {
      i += byte === RETURN && i + 1 < to && frame[i + 1] === NEWLINE ? 2 : 1;
      text[at++] = isValue ? SPACE : NEWLINE;
    } else {
      text[at++] = byte;
      i++;
    }
  }
  return text.toString('utf8', 0, at);
}
