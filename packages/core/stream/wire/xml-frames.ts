// Events in a stream of XML: no delimiter, each lies from `<event` to the next `</event>`, as a release looks for them.

import { HeldBytes } from '../../model/held-bytes.ts';
import { type FrameReader, StreamFault } from '../../model/stream.ts';
import { LESS, startsWith } from './xml-bytes.ts';

const OPEN = '<event';
const CLOSE = '</event>';
const NOTHING: Buffer = Buffer.alloc(0);
const CLOSE_BYTES = Buffer.from(CLOSE);
const REFUSED = ['<!DOCTYPE', '<!ENTITY'];
/** The longest beginning of one of the above that may stand at the end of a chunk. */
const MOST_TAIL = 8;
/** Between two events: an XML declaration, white space, an `<auth>` message. It is not kept. */
export const MOST_NOISE_BYTES = 65_536;

/**
 * `next` throws a StreamFault for an event above `mostEventBytes`, for more than 64 KB between two events, and for a DOCTYPE or
 * an entity declaration there.
 */
export function xmlFrames(mostEventBytes: number): FrameReader {
  /** What has not been looked at, from `at`. */
  let chunk = NOTHING;
  let at = 0;
  let noise = 0;
  /** An event that has begun and is not yet whole; then nothing is left in the chunk. */
  const held = new HeldBytes();

  function push(more: Buffer): void {
    chunk = at < chunk.length ? Buffer.concat([chunk.subarray(at), more]) : more;
    at = 0;
  }

  function next(): Buffer | undefined {
    if (held.length > 0) return finishHeld();
    if (!findOpen()) {
      // A copy: a few bytes would keep the whole chunk.
      leave(at < chunk.length ? Buffer.from(chunk.subarray(at)) : NOTHING);
      return undefined;
    }
    const close = chunk.indexOf(CLOSE_BYTES, at + OPEN.length);
    const end = close < 0 ? chunk.length : close + CLOSE.length;
    checkSize(end - at);
    if (close < 0) {
      held.add(chunk, at, end);
      leave(NOTHING);
      return undefined;
    }
    const frame = chunk.subarray(at, end);
    at = end;
    return frame;
  }

  function leave(rest: Buffer): void {
    chunk = rest;
    at = 0;
  }

  /** True with `at` at the next `<event`; else `at` is where its beginning may be cut off. */
  function findOpen(): boolean {
    const { length } = chunk;
    let i = at;
    for (; i < length; i++) {
      if (chunk[i] !== LESS) continue;
      if (startsWith(chunk, i, length, OPEN)) break;
      if (REFUSED.some((text) => startsWith(chunk, i, length, text))) {
        throw new StreamFault('XML with a DOCTYPE or an entity declaration is refused');
      }
      if (length - i <= MOST_TAIL && isBeginning(chunk, i)) break;
    }
    noise += i - at;
    if (noise > MOST_NOISE_BYTES) throw new StreamFault(`more than ${MOST_NOISE_BYTES} bytes between two events`);
    at = i;
    if (!startsWith(chunk, i, length, OPEN)) return false;
    noise = 0;
    return true;
  }

  /** The end may be cut: it is looked for across the border first. */
  function finishHeld(): Buffer | undefined {
    const before = held.view();
    const overlap = Math.min(before.length - OPEN.length, CLOSE.length - 1);
    const border = Buffer.concat([before.subarray(before.length - overlap), chunk.subarray(at, at + CLOSE.length - 1)]);
    const across = border.indexOf(CLOSE_BYTES);
    const inside = across < 0 ? chunk.indexOf(CLOSE_BYTES, at) : at + across - overlap;
    const isWhole = across >= 0 || inside >= 0;
    const end = isWhole ? inside + CLOSE.length : chunk.length;
    checkSize(held.length + end - at);
    held.add(chunk, at, end);
    at = end;
    if (isWhole) return held.take();
    leave(NOTHING);
    return undefined;
  }

  function checkSize(bytes: number): void {
    if (bytes > mostEventBytes) throw new StreamFault(`an event of more than ${mostEventBytes} bytes`);
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

/** Whether all that is left of the chunk begins one of the texts that are looked for. */
function isBeginning(chunk: Buffer, at: number): boolean {
  const left = chunk.toString('latin1', at);
  return [OPEN, ...REFUSED].some((text) => text.startsWith(left));
}
