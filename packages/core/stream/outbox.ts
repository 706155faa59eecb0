// Sends events to one receiver. During a turn it only notes their place in the arena, then writes
// them at once. Keeps a bounded copy of what a slow reader hasn't taken, and drops the oldest
// first.

import { type Arena, type Block, BLOCK_BYTES, type Blocks, type Lent } from './arena.ts';

export type Form = 'xml' | 'protobuf';

export interface OutboxSocket {
  /** `done` is called when the system has taken the bytes. */
  write(bytes: Buffer, done: (error?: Error | null) => void): unknown;
}

/** What all outboxes of a stream share. */
export interface OutboxState {
  /** Milliseconds that never go back; as of the last look. */
  atMs: number;
  /** Of all slow readers together. */
  waitingBytes: number;
  lagging: number;
  delivered: number;
  bytesWritten: number;
  dropped: number;
  /** Outboxes that have not ended. */
  open: number;
}

export interface OutboxLimits {
  maxWaitingBytes: number;
  /** Of all slow readers together: beyond it each has its even share. */
  maxWaitingTogetherBytes: number;
}

/** What is lent stands first in the queue, and is written whole and by itself. */
interface Waiting extends Lent {
  events: number;
}

/**
 * More is not handed to a socket before it has taken what it has: what waits here can still be
 * dropped.
 */
const MAX_IN_FLIGHT_BYTES = BLOCK_BYTES;
/** To all sockets together, but each may have a piece. */
const MAX_IN_FLIGHT_TOGETHER_BYTES = 128 * 1024 * 1024;
/** To a slow reader so much at a time: that it takes something is seen at each piece. */
const PIECE_BYTES = 64 * 1024;
/** To one that waits and takes quickly. */
const LARGE_PIECE_BYTES = 256 * 1024;
const QUICKLY_MS = 250;
const KEPT_HEAD = 1024;

export class Outbox {
  form: Form = 'xml';
  private readonly socket: OutboxSocket;
  private readonly state: OutboxState;
  private readonly limits: OutboxLimits;
  private readonly blocks: Blocks;
  /** From, to, how many events: three numbers each, in the arena of the form. */
  private ranges: number[] = [];
  private rangesBytes = 0;
  private queue: (Waiting | undefined)[] = [];
  private head = 0;
  private queuedBytes = 0;
  /**
   * What is left of a run of events, or of one of any size, that was begun: it waits too, and
   * cannot be dropped.
   */
  private begun: Buffer | undefined;
  private inFlight = 0;
  /** Where that lies, when it is lent. */
  private block: Block | undefined;
  private lagging = false;
  private takenAtMs = 0;
  /** It has taken what it got last without delay. */
  private isQuick = false;
  private ended = false;

  constructor(socket: OutboxSocket, state: OutboxState, limits: OutboxLimits, blocks: Blocks) {
    this.socket = socket;
    this.state = state;
    this.limits = limits;
    this.blocks = blocks;
    state.open++;
  }

  /**
   * One event lies there, in the arena of this form. True when it is the first one of the turn.
   * Neighbours are one run, no longer than a piece: where it has to wait, it is dropped or begun as
   * a whole.
   */
  add(from: number, to: number): boolean {
    const { ranges } = this;
    const last = ranges.length - 1;
    this.rangesBytes += to - from;
    if (last > 0 && ranges[last - 1] === from && to - (ranges[last - 2] ?? 0) <= LARGE_PIECE_BYTES) {
      ranges[last - 1] = to;
      ranges[last] = (ranges[last] ?? 0) + 1;
      return false;
    }
    ranges.push(from, to, 1);
    return last < 0;
  }

  /** The turn is over, or its arena is full. */
  flush(arena: Arena): void {
    const { ranges } = this;
    if (ranges.length === 0) return;
    const bytes = this.rangesBytes;
    this.ranges = [];
    this.rangesBytes = 0;
    if (this.ended) return;
    if (this.lagging || bytes > this.maxInFlight()) {
      for (let at = 0; at < ranges.length; at += 3) {
        const copy = arena.copied(ranges[at] ?? 0, ranges[at + 1] ?? 0);
        this.wait({ bytes: copy, block: undefined, events: ranges[at + 2] ?? 0 });
      }
    } else if (this.inFlight > 0) {
      // What waits first is most often taken in the next turn.
      this.wait({ ...arena.lend(ranges, bytes), events: countOf(ranges) });
    } else {
      this.state.delivered += countOf(ranges);
      this.write(arena.lend(ranges, bytes));
      return;
    }
    this.goOn();
  }

  /** It has taken nothing for so long, and something waits for it. */
  isStalled(stalledMs: number): boolean {
    return this.inFlight > 0 && this.state.atMs - this.takenAtMs >= stalledMs;
  }

  /** What the socket holds and what waits for it. */
  get pendingWrites(): number {
    return this.queue.length - this.head + (this.inFlight > 0 ? 1 : 0);
  }

  end(): void {
    this.stop();
    this.giveBack();
  }

  /** Writes nothing more. The socket may still hold what it was given, until `end`. */
  stop(): void {
    if (this.ended) return;
    this.ended = true;
    this.state.open--;
    for (let item = this.shift(); item !== undefined; item = this.shift()) this.drop(item);
    if (this.lagging) this.state.lagging--;
    this.queue = [];
    this.head = 0;
    if (this.begun !== undefined) this.count(-this.begun.length);
    this.begun = undefined;
    this.ranges = [];
  }

  private maxInFlight(): number {
    const most = this.isQuick ? MAX_IN_FLIGHT_BYTES : LARGE_PIECE_BYTES;
    return Math.max(PIECE_BYTES, Math.min(most, MAX_IN_FLIGHT_TOGETHER_BYTES / this.state.open));
  }

  private write({ bytes, block }: Lent): void {
    this.inFlight = bytes.length;
    this.block = block;
    this.takenAtMs = this.state.atMs;
    this.state.bytesWritten += bytes.length;
    this.socket.write(bytes, this.taken);
  }

  private readonly taken = (error?: Error | null): void => {
    this.inFlight = 0;
    this.giveBack();
    if (error !== undefined && error !== null) {
      this.end();
      return;
    }
    this.isQuick = this.state.atMs - this.takenAtMs < QUICKLY_MS;
    this.takenAtMs = this.state.atMs;
    if (this.lagging && !this.ended) this.goOn();
  };

  private giveBack(): void {
    const { block } = this;
    this.block = undefined;
    if (block !== undefined) this.blocks.give(block);
  }

  /** The oldest whole events give way; the newest one may wait whatever its size. */
  private wait(item: Waiting): void {
    if (!this.lagging) {
      this.lagging = true;
      this.state.lagging++;
    }
    this.queue.push(item);
    this.count(item.bytes.length);
    const most = this.maxWaiting() + item.bytes.length;
    while (this.queuedBytes > most && this.queue.length - this.head > 1) {
      const oldest = this.shift();
      if (oldest === undefined) return;
      this.state.dropped += oldest.events;
      this.drop(oldest);
    }
  }

  private drop({ block }: Waiting): void {
    if (block !== undefined) this.blocks.give(block);
  }

  private maxWaiting(): number {
    const { maxWaitingBytes, maxWaitingTogetherBytes } = this.limits;
    if (this.state.waitingBytes <= maxWaitingTogetherBytes) return maxWaitingBytes + (this.begun?.length ?? 0);
    return Math.min(maxWaitingBytes, maxWaitingTogetherBytes / this.state.lagging);
  }

  private goOn(): void {
    if (this.inFlight > 0) return;
    const piece = this.nextPiece();
    if (piece !== undefined) {
      this.write(piece);
      return;
    }
    this.lagging = false;
    this.state.lagging--;
  }

  private nextPiece(): Lent | undefined {
    const most = this.pieceBytes();
    const { begun } = this;
    if (begun !== undefined) {
      this.count(-begun.length);
      return this.cut(begun, most);
    }
    const pieces: Buffer[] = [];
    let bytes = 0;
    for (let item = this.queue[this.head]; item !== undefined; item = this.queue[this.head]) {
      if (bytes > 0 && bytes + item.bytes.length > most) break;
      this.shift();
      this.state.delivered += item.events;
      if (item.block !== undefined) return item;
      if (item.bytes.length > most) return this.cut(item.bytes, most);
      pieces.push(item.bytes);
      bytes += item.bytes.length;
    }
    const [first] = pieces;
    return first && { bytes: pieces.length > 1 ? Buffer.concat(pieces, bytes) : first, block: undefined };
  }

  private pieceBytes(): number {
    return this.isQuick ? Math.min(LARGE_PIECE_BYTES, this.maxInFlight()) : PIECE_BYTES;
  }

  private cut(bytes: Buffer, most: number): Lent {
    this.begun = bytes.length > most ? bytes.subarray(most) : undefined;
    if (this.begun !== undefined) this.count(this.begun.length);
    return { bytes: bytes.subarray(0, most), block: undefined };
  }

  private shift(): Waiting | undefined {
    const item = this.queue[this.head];
    if (item === undefined) return undefined;
    this.queue[this.head++] = undefined;
    this.count(-item.bytes.length);
    if (this.head >= KEPT_HEAD && this.head * 2 >= this.queue.length) {
      this.queue = this.queue.slice(this.head);
      this.head = 0;
    }
    return item;
  }

  private count(bytes: number): void {
    this.queuedBytes += bytes;
    this.state.waitingBytes += bytes;
  }
}

function countOf(ranges: readonly number[]): number {
  let events = 0;
  for (let at = 2; at < ranges.length; at += 3) events += ranges[at] ?? 0;
  return events;
}
