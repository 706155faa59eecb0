// Events in a stream of protobuf: 0xBF, the length as an unsigned varint, a TakMessage.

import { HeldBytes } from '../../model/held-bytes.ts';
import { type FrameReader, StreamFault } from '../../model/stream.ts';
import { MAGIC } from './protobuf-schema.ts';
import { skipSpace } from './xml-bytes.ts';

const NOTHING: Buffer = Buffer.alloc(0);
/** A varint of 32 bits has so many at most. */
const MOST_LENGTH_BYTES = 5;

/**
 * `next` hands out the message without its header; empty ones are skipped, and so is white space before the first one: it
 * follows the request in XML, perhaps in bytes of its own. It throws a StreamFault for a first byte that is not
 * 0xBF, a length of more than 5 bytes, and a message above `mostEventBytes`.
 */
export class ProtobufFrames implements FrameReader {
  readonly #mostEventBytes: number;
  /** What has not been looked at, from `at`. */
  #chunk = NOTHING;
  #at = 0;
  /** A header or message that has begun and is not yet whole; then nothing is left in the chunk. */
  readonly #held = new HeldBytes();
  /** So many bytes of header and message are needed to go on with what is held; 0 while the header is not whole. */
  #wanted = 0;
  #hasBegun = false;

  constructor(mostEventBytes: number) {
    this.#mostEventBytes = mostEventBytes;
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
      const header = headerOf(this.#chunk, this.#at, this.#chunk.length, this.#mostEventBytes);
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
      const header = headerOf(this.#held.view(), 0, this.#held.length, this.#mostEventBytes);
      if (header.length >= 0) this.#wanted = header.start + header.length;
    }
    const end = Math.min(this.#chunk.length, this.#at + this.#wanted - this.#held.length);
    this.#held.add(this.#chunk, this.#at, end);
    this.#at = end;
    if (this.#held.length < this.#wanted) return this.#leave();
    this.#wanted = 0;
    const whole = this.#held.take();
    const { start } = headerOf(whole, 0, whole.length, this.#mostEventBytes);
    return start < whole.length ? whole.subarray(start) : this.next();
  }
}

interface Header {
  /** Of the message. */
  start: number;
  /** -1 while the header is not whole. */
  length: number;
}

function headerOf(bytes: Buffer, at: number, end: number, mostEventBytes: number): Header {
  if (bytes[at] !== MAGIC) throw new StreamFault('a protobuf message does not begin with 0xBF');
  let length = 0;
  for (let k = 0; k < MOST_LENGTH_BYTES; k++) {
    const i = at + 1 + k;
    if (i >= end) return { start: i, length: -1 };
    const byte = bytes[i] as number;
    length += (byte & 0x7f) * 128 ** k;
    if (length > mostEventBytes) throw new StreamFault(`an event of more than ${mostEventBytes} bytes`);
    if (byte < 0x80) return { start: i + 1, length };
  }
  throw new StreamFault(`the length of a protobuf message has more than ${MOST_LENGTH_BYTES} bytes`);
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
