// Cuts the bytes of a connection into messages. What arrives byte by byte is copied a bounded number of times, and memory is taken
// for what has arrived, not for what a message claims to be.

import { BerError, elementHead, SEQUENCE } from './ber.ts';

const KEPT_BYTES = 64 * 1024;

export class Framing {
  #bytes = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  /** Bytes that belong to no message that was handed out. */
  get pending(): number {
    return this.#end - this.#start;
  }

  push(chunk: Buffer): void {
    if (this.#bytes.length - this.#end < chunk.length) {
      const grown = Buffer.allocUnsafe(Math.max(1024, 2 * (this.pending + chunk.length)));
      this.#bytes.copy(grown, 0, this.#start, this.#end);
      this.#end = this.pending;
      this.#start = 0;
      this.#bytes = grown;
    }
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
  }

  /** The next whole message, undefined while it is not complete. Throws for bytes that can be none, or one above the limit. */
  next(mostBytes: number): Buffer | undefined {
    const live = this.#bytes.subarray(this.#start, this.#end);
    if (live.length > 0 && live[0] !== SEQUENCE) throw new BerError('no LDAP message');
    const head = elementHead(live, 0);
    if (head === undefined) return undefined;
    const length = head.start + head.length;
    if (length > mostBytes) throw new BerError('message too long');
    if (live.length < length) return undefined;
    const message = Buffer.from(live.subarray(0, length));
    this.#start += length;
    if (this.pending === 0) {
      this.#start = 0;
      this.#end = 0;
      if (this.#bytes.length > KEPT_BYTES) this.#bytes = Buffer.alloc(0);
    }
    return message;
  }
}
