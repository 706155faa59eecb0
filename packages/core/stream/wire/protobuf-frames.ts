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
export function protobufFrames(mostEventBytes: number): FrameReader {
  /** What has not been looked at, from `at`. */
  let chunk = NOTHING;
  let at = 0;
  /** A header or message that has begun and is not yet whole; then nothing is left in the chunk. */
  const held = new HeldBytes();
  /** So many bytes of header and message are needed to go on with what is held; 0 while the header is not whole. */
  let wanted = 0;
  let hasBegun = false;

  function push(more: Buffer): void {
    chunk = at < chunk.length ? Buffer.concat([chunk.subarray(at), more]) : more;
    at = 0;
  }

  function next(): Buffer | undefined {
    if (held.length > 0) return finishHeld();
    if (!hasBegun) at = skipSpace(chunk, at, chunk.length);
    while (at < chunk.length) {
      hasBegun = true;
      const header = headerOf(chunk, at, chunk.length, mostEventBytes);
      const end = header.start + header.length;
      if (header.length < 0 || end > chunk.length) {
        wanted = header.length < 0 ? 0 : end - at;
        held.add(chunk, at, chunk.length);
        break;
      }
      at = end;
      if (header.length > 0) return chunk.subarray(header.start, end);
    }
    return leave();
  }

  /** All of the chunk was looked at. */
  function leave(): undefined {
    chunk = NOTHING;
    at = 0;
  }

  function finishHeld(): Buffer | undefined {
    while (wanted === 0) {
      if (at === chunk.length) return leave();
      held.add(chunk, at, at + 1);
      at++;
      const header = headerOf(held.view(), 0, held.length, mostEventBytes);
      if (header.length >= 0) wanted = header.start + header.length;
    }
    const end = Math.min(chunk.length, at + wanted - held.length);
    held.add(chunk, at, end);
    at = end;
    if (held.length < wanted) return leave();
    wanted = 0;
    const whole = held.take();
    const { start } = headerOf(whole, 0, whole.length, mostEventBytes);
    return start < whole.length ? whole.subarray(start) : next();
  }

  return {
    push,
    next,
    rest: () => Buffer.concat([held.view(), chunk.subarray(at)]),
    get heldBytes() {
      return held.length;
    },
  };
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
