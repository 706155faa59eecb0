// The beginning of an event whose rest has not come yet: grows with what comes, by doubling, so that the work is linear.

const LEAST_BYTES = 1024;

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
      const grown = Buffer.allocUnsafeSlow(Math.max(LEAST_BYTES, 2 * length));
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
