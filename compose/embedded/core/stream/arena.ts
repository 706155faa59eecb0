// The bytes of a turn of the event loop in one form: each event is written into it once, whoever receives it.

import { type Block, BLOCK_BYTES, type Blocks, type Lent } from './blocks.ts';

export class Arena {
  private readonly blocks: Blocks;
  private block: Block;
  /** Of the range that was asked for last: everybody who receives the same gets the same view. */
  private view: Buffer | undefined;
  private viewFrom = -1;
  private viewTo = -1;
  /** What slow readers keep of this turn. */
  private readonly copies = new Map<number, Buffer>();

  constructor(blocks: Blocks) {
    this.blocks = blocks;
    this.block = blocks.take();
  }

  hasRoom(bytes: number): boolean {
    return this.block.bytes.length - this.block.used >= bytes;
  }

  /** What was handed out stays as it is: sockets may still hold it. */
  renew(bytes: number): void {
    this.blocks.give(this.block);
    this.block = this.blocks.take(bytes);
    this.viewFrom = -1;
    this.copies.clear();
  }

  /** `write` puts the event at a place and returns where it ends. Returns where it begins. */
  place(write: (target: Buffer, at: number) => number): number {
    const { block } = this;
    const from = block.used;
    block.used = write(block.bytes, from);
    return from;
  }

  /** End of what was placed last. */
  get end(): number {
    return this.block.used;
  }

  /** For one write. Three numbers for each range, ascending: from, to, and one of no meaning here; `bytes` of all together. */
  lend(ranges: readonly number[], bytes: number): Lent {
    const { block, blocks } = this;
    const from = ranges[0] ?? 0;
    const to = ranges[ranges.length - 2] ?? 0;
    if (to - from === bytes) {
      if (!blocks.mayLend) return { bytes: this.copied(from, to), block: undefined };
      block.holders++;
      return { bytes: this.range(from, to), block };
    }
    const lent = blocks.room(bytes);
    let at = 0;
    for (let n = 0; n < ranges.length; n += 3) at += block.bytes.copy(lent.bytes, at, ranges[n], ranges[n + 1]);
    return lent;
  }

  /** For good: whoever keeps it for long does not keep the block. Slow readers of the same share it. */
  copied(from: number, to: number): Buffer {
    const key = from * 2 ** 24 + to;
    const known = this.copies.get(key);
    if (known !== undefined) return known;
    const copy = Buffer.from(this.block.bytes.subarray(from, to));
    this.copies.set(key, copy);
    return copy;
  }

  /** Nobody has ranges in it any more: it begins anew, unless a socket still holds some of it. */
  turned(): void {
    if (this.copies.size > 0) this.copies.clear();
    if (this.block.bytes.length > BLOCK_BYTES) this.renew(0);
    else if (this.block.holders === 1) this.block.used = 0;
  }

  private range(from: number, to: number): Buffer {
    if (this.view === undefined || from !== this.viewFrom || to !== this.viewTo) {
      this.view = this.block.bytes.subarray(from, to);
      this.viewFrom = from;
      this.viewTo = to;
    }
    return this.view;
  }
}
