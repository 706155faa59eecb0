// Memory for what goes out, used again and again: the bytes of a turn are written into blocks, and a block is written anew when
// no socket holds anything in it.

/** Room for the events of a turn; a larger block is made for a larger event. */
export const BLOCK_BYTES: number = 1024 * 1024;
/** Beyond it nothing more is lent: readers that take nothing would keep a block each. */
const MOST_LENT_BYTES = 32 * BLOCK_BYTES;
const MOST_FREE = 12;

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
    return this.heldBytes <= MOST_LENT_BYTES;
  }

  give(block: Block): void {
    block.holders--;
    if (block.holders > 0) return;
    this.heldBytes -= block.bytes.length;
    if (block.bytes.length === BLOCK_BYTES && this.free.length < MOST_FREE) this.free.push(block);
  }

  /** Uninitialised. */
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
