// Reads TLV elements in DER one level at a time: lengths are definite and as short as they can be,
// tags have one byte, and nothing is opened that was not asked for. So neither deep nesting nor a
// length that is a lie costs anything.

export class DerError extends Error {}

export interface DerElement {
  tag: number;
  /** With tag and length. */
  whole: Uint8Array<ArrayBuffer>;
  content: Uint8Array<ArrayBuffer>;
}

export const INTEGER = 0x02;
export const BIT_STRING = 0x03;
export const NULL = 0x05;
export const OBJECT_IDENTIFIER = 0x06;
export const SEQUENCE = 0x30;
export const SET = 0x31;
export const CONTEXT_0 = 0xa0;

const MANY_BYTE_TAG = 0x1f;
const MAX_LENGTH_BYTES = 4;

/** The only element of these bytes, which must have that tag. Throws DerError. */
export function onlyElement(bytes: Uint8Array<ArrayBuffer>, tag: number): DerElement {
  const element = derElements(bytes);
  const first = element.next(tag);
  element.end();
  return first;
}

/** The elements that stand one after the other in these bytes; `next` and `end` throw DerError. */
export function derElements(bytes: Uint8Array<ArrayBuffer>) {
  let at = 0;
  return {
    get done(): boolean {
      return at >= bytes.length;
    },

    next(expected?: number): DerElement {
      const { tag, start, end } = readHead(bytes, at);
      if (expected !== undefined && tag !== expected)
        throw new DerError('an element of another kind than belongs there');
      const element = { tag, whole: bytes.subarray(at, end), content: bytes.subarray(start, end) };
      at = end;
      return element;
    },

    end(): void {
      if (at < bytes.length) throw new DerError('more than belongs there');
    },
  };
}

function readHead(bytes: Uint8Array, at: number): { tag: number; start: number; end: number } {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) throw new DerError('an element that is missing or cut off');
  if ((tag & MANY_BYTE_TAG) === MANY_BYTE_TAG) throw new DerError('a tag of several bytes');
  if (first < 0x80) return within(bytes, { tag, start: at + 2, length: first });
  const size = first & 0x7f;
  if (size === 0 || size > MAX_LENGTH_BYTES) throw new DerError('a length that DER does not have');
  const digits = bytes.subarray(at + 2, at + 2 + size);
  const length = digits.reduce((sum, digit) => sum * 256 + digit, 0);
  if (digits.length < size || digits[0] === 0 || length < 0x80) throw new DerError('a length that DER does not have');
  return within(bytes, { tag, start: at + 2 + size, length });
}

function within(bytes: Uint8Array, head: { tag: number; start: number; length: number }) {
  const end = head.start + head.length;
  if (end > bytes.length) throw new DerError('an element that is longer than what encloses it');
  return { tag: head.tag, start: head.start, end };
}

/** The numbers of an object identifier with dots between; throws DerError. */
export function identifier({ content }: DerElement): string {
  const numbers: number[] = [];
  let number = 0;
  let open = true;
  for (const byte of content) {
    number = number * 128 + (byte & 0x7f);
    open = byte >= 0x80;
    if (number > Number.MAX_SAFE_INTEGER / 128) throw new DerError('an object identifier out of range');
    if (open) continue;
    numbers.push(number);
    number = 0;
  }
  const [first, ...others] = numbers;
  if (open || first === undefined) throw new DerError('an object identifier that is cut off');
  const root = Math.min(2, Math.floor(first / 40));
  return [root, first - root * 40, ...others].join('.');
}

/** The text of one of the string types that names are written in; throws DerError. */
export function derText({ tag, content }: DerElement): string {
  const coding = CODINGS.get(tag);
  if (coding === undefined) throw new DerError('a value that is no text');
  if (coding === 'ascii' && content.some((byte) => byte > 0x7f)) throw new DerError('a text that is not what it says');
  try {
    return new TextDecoder(coding === 'ascii' ? 'utf-8' : coding, { fatal: true, ignoreBOM: true }).decode(content);
  } catch (error) {
    throw new DerError('a text that is not what it says', { cause: error });
  }
}

/**
 * UTF8String, NumericString, PrintableString, TeletexString (which everybody fills with Latin-1),
 * IA5String, BMPString.
 */
const CODINGS: ReadonlyMap<number, 'utf-8' | 'ascii' | 'latin1' | 'utf-16be'> = new Map([
  [0x0c, 'utf-8'],
  [0x12, 'ascii'],
  [0x13, 'ascii'],
  [0x14, 'latin1'],
  [0x16, 'ascii'],
  [0x1e, 'utf-16be'],
]);
