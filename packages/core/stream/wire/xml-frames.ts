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
export class XmlFrames implements FrameReader {
  readonly #mostEventBytes: number;
  /** What has not been looked at, from `at`. */
  #chunk = NOTHING;
  #at = 0;
  #noise = 0;
  /** An event that has begun and is not yet whole; then nothing is left in the chunk. */
  readonly #held = new HeldBytes();

  constructor(mostEventBytes: number) {
    this.#mostEventBytes = mostEventBytes;
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
      if (length - i <= MOST_TAIL && isBeginning(this.#chunk, i)) break;
    }
    this.#noise += i - this.#at;
    if (this.#noise > MOST_NOISE_BYTES) throw new StreamFault(`more than ${MOST_NOISE_BYTES} bytes between two events`);
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
    if (bytes > this.#mostEventBytes) throw new StreamFault(`an event of more than ${this.#mostEventBytes} bytes`);
  }
}

/** Whether all that is left of the chunk begins one of the texts that are looked for. */
function isBeginning(chunk: Buffer, at: number): boolean {
  const left = chunk.toString('latin1', at);
  return [OPEN, ...REFUSED].some((text) => text.startsWith(left));
}
