// Splits a byte stream into events, in both framings: XML and protobuf.

import { type FrameReader, StreamFault } from '../../model/stream.ts';
import { LESS, skipSpace, startsWith } from './xml-bytes.ts';

const MIN_BYTES = 1024;

/**
 * The beginning of an event whose rest has not come yet: grows with what comes, by doubling, so
 * that the work is linear.
 */
export class HeldBytes {
  #bytes: Buffer | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** A view, good until something is added. */
  view(): Buffer {
    return this.#bytes === undefined ? Buffer.alloc(0) : this.#bytes.subarray(0, this.#length);
  }

  add(chunk: Buffer, from: number, to: number): void {
    const length = this.#length + to - from;
    if (this.#bytes === undefined || this.#bytes.length < length) {
      // Not from the pool: what is held for long would keep its neighbours.
      const grown = Buffer.allocUnsafeSlow(Math.max(MIN_BYTES, 2 * length));
      if (this.#bytes !== undefined) this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    chunk.copy(this.#bytes, this.#length, from, to);
    this.#length = length;
  }

  /** Hands the bytes over: what is added next goes elsewhere. */
  take(): Buffer {
    const bytes = this.view();
    this.#bytes = undefined;
    this.#length = 0;
    return bytes;
  }
}

const OPEN = '<event';
const CLOSE = '</event>';
const NOTHING: Buffer = Buffer.alloc(0);
const CLOSE_BYTES = Buffer.from(CLOSE);
const REFUSED = ['<!DOCTYPE', '<!ENTITY'];
/** The longest beginning of one of the above that may stand at the end of a chunk. */
const MAX_TAIL = 8;
/** Between two events: an XML declaration, white space, an `<auth>` message. It is not kept. */
export const MAX_NOISE_BYTES = 65_536;

/**
 * Events in a stream of XML: no delimiter, each lies from `<event` to the next `</event>`, as a
 * release looks for them. `next` throws a StreamFault for an event above `mostEventBytes`, for more
 * than 64 KB between two events, and for a DOCTYPE or an entity declaration there.
 */
export class XmlFrames implements FrameReader {
  readonly #maxEventBytes: number;
  /** What has not been looked at, from `at`. */
  #chunk = NOTHING;
  #at = 0;
  #noise = 0;
  /** An event that has begun and is not yet whole; then nothing is left in the chunk. */
  readonly #held = new HeldBytes();

  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  push(more: Buffer): void {
    this.#chunk = this.#at < this.#chunk.length ? Buffer.concat([this.#chunk.subarray(this.#at), more]) : more;
    this.#at = 0;
  }

  next(): Buffer | undefined {
    if (this.#held.length > 0) return this.#finishHeld();
    if (!this.#findOpen()) {
      // A copy: a few bytes would keep the whole chunk.
      this.#leave(this.#at < this.#chunk.length ? Buffer.from(this.#chunk.subarray(this.#at)) : NOTHING);
      return undefined;
    }
    const close = this.#chunk.indexOf(CLOSE_BYTES, this.#at + OPEN.length);
    const end = close < 0 ? this.#chunk.length : close + CLOSE.length;
    this.#checkSize(end - this.#at);
    if (close < 0) {
      this.#held.add(this.#chunk, this.#at, end);
      this.#leave(NOTHING);
      return undefined;
    }
    const frame = this.#chunk.subarray(this.#at, end);
    this.#at = end;
    return frame;
  }

  rest(): Buffer {
    return Buffer.concat([this.#held.view(), this.#chunk.subarray(this.#at)]);
  }

  get heldBytes(): number {
    return this.#held.length;
  }

  #leave(rest: Buffer): void {
    this.#chunk = rest;
    this.#at = 0;
  }

  /** True with `at` at the next `<event`; else `at` is where its beginning may be cut off. */
  #findOpen(): boolean {
    const { length } = this.#chunk;
    let i = this.#at;
    for (; i < length; i++) {
      if (this.#chunk[i] !== LESS) continue;
      if (startsWith(this.#chunk, i, length, OPEN)) break;
      if (REFUSED.some((text) => startsWith(this.#chunk, i, length, text))) {
        throw new StreamFault('XML with a DOCTYPE or an entity declaration is refused');
      }
      if (length - i <= MAX_TAIL && isBeginning(this.#chunk, i)) break;
    }
    this.#noise += i - this.#at;
    if (this.#noise > MAX_NOISE_BYTES) throw new StreamFault(`more than ${MAX_NOISE_BYTES} bytes between two events`);
    this.#at = i;
    if (!startsWith(this.#chunk, i, length, OPEN)) return false;
    this.#noise = 0;
    return true;
  }

  /** The end may be cut: it is looked for across the border first. */
  #finishHeld(): Buffer | undefined {
    const before = this.#held.view();
    const overlap = Math.min(before.length - OPEN.length, CLOSE.length - 1);
    const border = Buffer.concat([
      before.subarray(before.length - overlap),
      this.#chunk.subarray(this.#at, this.#at + CLOSE.length - 1),
    ]);
    const across = border.indexOf(CLOSE_BYTES);
    const inside = across < 0 ? this.#chunk.indexOf(CLOSE_BYTES, this.#at) : this.#at + across - overlap;
    const isWhole = across >= 0 || inside >= 0;
    const end = isWhole ? inside + CLOSE.length : this.#chunk.length;
    this.#checkSize(this.#held.length + end - this.#at);
    this.#held.add(this.#chunk, this.#at, end);
    this.#at = end;
    if (isWhole) return this.#held.take();
    this.#leave(NOTHING);
    return undefined;
  }

  #checkSize(bytes: number): void {
    if (bytes > this.#maxEventBytes) throw new StreamFault(`an event of more than ${this.#maxEventBytes} bytes`);
  }
}

/** Whether all that is left of the chunk begins one of the texts that are looked for. */
function isBeginning(chunk: Buffer, at: number): boolean {
  const left = chunk.toString('latin1', at);
  return [OPEN, ...REFUSED].some((text) => text.startsWith(left));
}

/** A varint of 32 bits has so many at most. */
const MAX_LENGTH_BYTES = 5;

/**
 * Events in a stream of protobuf: 0xBF, the length as an unsigned varint, a TakMessage. `next`
 * hands out the message without its header; empty ones are skipped, and so is white space before
 * the first one: it follows the request in XML, perhaps in bytes of its own. It throws a
 * StreamFault for a first byte that is not 0xBF, a length of more than 5 bytes, and a message above
 * `mostEventBytes`.
 */
export class ProtobufFrames implements FrameReader {
  readonly #maxEventBytes: number;
  /** What has not been looked at, from `at`. */
  #chunk = NOTHING;
  #at = 0;
  /** A header or message that has begun and is not yet whole; then nothing is left in the chunk. */
  readonly #held = new HeldBytes();
  /**
   * So many bytes of header and message are needed to go on with what is held; 0 while the header
   * is not whole.
   */
  #wanted = 0;
  #hasBegun = false;

  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  push(more: Buffer): void {
    this.#chunk = this.#at < this.#chunk.length ? Buffer.concat([this.#chunk.subarray(this.#at), more]) : more;
    this.#at = 0;
  }

  next(): Buffer | undefined {
    if (this.#held.length > 0) return this.#finishHeld();
    if (!this.#hasBegun) this.#at = skipSpace(this.#chunk, this.#at, this.#chunk.length);
    while (this.#at < this.#chunk.length) {
      this.#hasBegun = true;
      const header = headerOf(this.#chunk, this.#at, this.#chunk.length, this.#maxEventBytes);
      const end = header.start + header.length;
      if (header.length < 0 || end > this.#chunk.length) {
        this.#wanted = header.length < 0 ? 0 : end - this.#at;
        this.#held.add(this.#chunk, this.#at, this.#chunk.length);
        break;
      }
      this.#at = end;
      if (header.length > 0) return this.#chunk.subarray(header.start, end);
    }
    return this.#leave();
  }

  rest(): Buffer {
    return Buffer.concat([this.#held.view(), this.#chunk.subarray(this.#at)]);
  }

  get heldBytes(): number {
    return this.#held.length;
  }

  /** All of the chunk was looked at. */
  #leave(): undefined {
    this.#chunk = NOTHING;
    this.#at = 0;
  }

  #finishHeld(): Buffer | undefined {
    while (this.#wanted === 0) {
      if (this.#at === this.#chunk.length) return this.#leave();
      this.#held.add(this.#chunk, this.#at, this.#at + 1);
      this.#at++;
      const header = headerOf(this.#held.view(), 0, this.#held.length, this.#maxEventBytes);
      if (header.length >= 0) this.#wanted = header.start + header.length;
    }
    const end = Math.min(this.#chunk.length, this.#at + this.#wanted - this.#held.length);
    this.#held.add(this.#chunk, this.#at, end);
    this.#at = end;
    if (this.#held.length < this.#wanted) return this.#leave();
    this.#wanted = 0;
    const whole = this.#held.take();
    const { start } = headerOf(whole, 0, whole.length, this.#maxEventBytes);
    return start < whole.length ? whole.subarray(start) : this.next();
  }
}

interface Header {
  /** Of the message. */
  start: number;
  /** -1 while the header is not whole. */
  length: number;
}

function headerOf(bytes: Buffer, at: number, end: number, maxEventBytes: number): Header {
  if (bytes[at] !== MAGIC) throw new StreamFault('a protobuf message does not begin with 0xBF');
  let length = 0;
  for (let k = 0; k < MAX_LENGTH_BYTES; k++) {
    const i = at + 1 + k;
    if (i >= end) return { start: i, length: -1 };
    const byte = bytes[i] as number;
    length += (byte & 0x7f) * 128 ** k;
    if (length > maxEventBytes) throw new StreamFault(`an event of more than ${maxEventBytes} bytes`);
    if (byte < 0x80) return { start: i + 1, length };
  }
  throw new StreamFault(`the length of a protobuf message has more than ${MAX_LENGTH_BYTES} bytes`);
}

/** A message with its header. */
export function frameOf(message: Uint8Array): Buffer {
  const header = [MAGIC];
  let left = message.length;
  while (left >= 0x80) {
    header.push((left & 0x7f) | 0x80);
    left >>>= 7;
  }
  header.push(left);
  const framed = Buffer.allocUnsafe(header.length + message.length);
  framed.set(header);
  framed.set(message, header.length);
  return framed;
}

/** Before each message on the stream, followed by its length. */
export const MAGIC = 0xbf;
