// Holds the bytes of one event loop turn in one form: each event is written once for all receivers.

/** Room for the events of a turn; a larger block is made for a larger event. */
export const BLOCK_BYTES: number = 1024 * 1024;
/** Beyond it nothing more is lent: readers that take nothing would keep a block each. */
const MAX_LENT_BYTES = 32 * BLOCK_BYTES;
const MAX_FREE = 12;

export interface Block {
  readonly bytes: Buffer;
  used: number;
  /** Whoever fills it, and every write of which a socket has bytes in it. */
  holders: number;
}

/** Bytes for one write; with a block they are good until it is given back. */
export interface Lent {
  bytes: Buffer;
  block: Block | undefined;
}

export class Blocks {
  private readonly free: Block[] = [];
  private heldBytes = 0;
  /** The one into which is copied what does not lie together. */
  private copies: Block | undefined;

  take(least = 0): Block {
    const known = least <= BLOCK_BYTES ? this.free.pop() : undefined;
    const bytes = known?.bytes ?? Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, least));
    this.heldBytes += bytes.length;
    return { bytes, used: 0, holders: 1 };
  }

  get mayLend(): boolean {
    return this.heldBytes <= MAX_LENT_BYTES;
  }

  give(block: Block): void {
    block.holders--;
    if (block.holders > 0) return;
    this.heldBytes -= block.bytes.length;
    if (block.bytes.length === BLOCK_BYTES && this.free.length < MAX_FREE) this.free.push(block);
  }

  /** Uninitialized. */
  room(bytes: number): Lent {
    if (!this.mayLend || bytes > BLOCK_BYTES) return { bytes: Buffer.allocUnsafeSlow(bytes), block: undefined };
    this.copies ??= this.take();
    if (this.copies.holders === 1) this.copies.used = 0;
    if (this.copies.used + bytes > BLOCK_BYTES) {
      this.give(this.copies);
      this.copies = this.take();
    }
    const { copies } = this;
    copies.used += bytes;
    copies.holders++;
    return { bytes: copies.bytes.subarray(copies.used - bytes, copies.used), block: copies };
  }
}

/**
 * Memory for what goes out, used again and again: the bytes of a turn are written into blocks, and
 * a block is written anew when no socket holds anything in it.
 */
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

  /**
   * For one write. Three numbers for each range, ascending: from, to, and one of no meaning here;
   * `bytes` of all together.
   */
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

  /**
   * For good: whoever keeps it for long does not keep the block. Slow readers of the same share it.
   */
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
