// Archives events in the database in batches, apart from the stream. Bounds the queue and counts
// losses.

import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import type { Archive, ArchiveCounts, ArchivedEvent } from '../model/stream.ts';
import type { CotRow, CotWriter } from '../store/cot-events.ts';
import type { LossStore } from '../store/tables.ts';
import { type Archivable, archivable } from './archivable.ts';
import { Pauses, settle, WaitingLine } from './batches.ts';
import { Losses, type UnwrittenLosses } from './losses.ts';

/**
 * How much of what waits is whose. When there is too much of it, whoever has less than an even
 * share need not rest.
 */
export class Shares {
  readonly #shares = new Map<string, { events: number; characters: number }>();

  add(who: string, characters: number): void {
    const share = this.#shares.get(who);
    if (share === undefined) {
      this.#shares.set(who, { events: 1, characters });
      return;
    }
    share.events++;
    share.characters += characters;
  }

  /** One that was added waits no more. */
  take(who: string, characters: number): void {
    const share = this.#shares.get(who);
    if (share === undefined) return;
    share.events--;
    share.characters -= characters;
    if (share.events === 0) this.#shares.delete(who);
  }

  /** Whether it is an even share of these, or more. */
  isEven(who: string, of: { events: number; characters: number }): boolean {
    const share = this.#shares.get(who);
    if (share === undefined) return false;
    return Math.max(share.events / of.events, share.characters / of.characters) * this.#shares.size >= 1;
  }
}

export interface ArchiveLimits {
  /**
   * Waiting at most; beyond either the oldest are lost. Characters as in the tables: two bytes of
   * memory each at most.
   */
  maxEvents: number;
  maxCharacters: number;
  /**
   * Senders rest from `highEvents` or `highCharacters` on, until it is a quarter of that. What an
   * outage has left does not count, as long as it grows less and there is room: senders need not
   * wait for the past.
   */
  highEvents: number;
  highCharacters: number;
  /** Events of one statement. */
  batchEvents: number;
  batchCharacters: number;
  /** So long events are collected while there is no whole batch. */
  lagMs: number;
  /**
   * Between tries while the database takes nothing: the first, then twice as long each time up to
   * the longest.
   */
  firstPauseMs: number;
  maxPauseMs: number;
}

const ARCHIVE_LIMITS: ArchiveLimits = {
  maxEvents: 100_000,
  maxCharacters: 64 * 1024 ** 2,
  highEvents: 20_000,
  highCharacters: 16 * 1024 ** 2,
  batchEvents: 500,
  batchCharacters: 4 * 1024 ** 2,
  lagMs: 25,
  firstPauseMs: 250,
  maxPauseMs: 5_000,
};

export interface ArchiveOptions {
  write: CotWriter;
  losses: LossStore;
  unwritten: UnwrittenLosses;
  log: Log;
  now: () => Date;
  limits?: Partial<ArchiveLimits>;
}

type Queued = Archivable & { ids: readonly string[] };

/**
 * Of what may wait at most: whatever it is, senders rest before the oldest are lost to a database
 * that answers.
 */
const NEARLY_FULL = 0.95;
const ROOM_AGAIN = 0.9;
/** A share of `high…`. */
const DRAINED = 0.25;
const LOCK_NOT_AVAILABLE = '55P03';
const NO_IDS: readonly string[] = [];
const STOPPED = 'the core was stopped before they were stored';

/**
 * @example
 * const write = cotWriter(run, new GroupVectors(run));
 * const unwritten = unwrittenLosses(dir, log);
 * const archive = new EventArchive({ write, losses: lossStore(run), unwritten, log, now });
 * archive.store(event);
 */
export class EventArchive implements Archive {
  readonly #options: ArchiveOptions;
  readonly #most;
  readonly #waiting = new WaitingLine<Queued>();
  readonly #shares = new Shares();
  readonly #resumes: (() => void)[] = [];
  readonly #rest = new Pauses();
  /** Taken out of the line, and not yet known to be stored. */
  #onTheWay = 0;
  #stored = 0;
  #skipped = 0;
  #failures = 0;
  /** Since when the database takes nothing, and why. */
  #outage: { sinceMs: number; isLock: boolean; reason: string } | undefined;
  #isBehind = false;
  /** The least that has waited since the last outage, as a share of `high…`. */
  #least = 0;
  #isEnding = false;
  #isClosed = false;
  #working: Promise<void> | undefined;
  readonly #losses;

  constructor(options: ArchiveOptions) {
    this.#options = options;
    this.#most = { ...ARCHIVE_LIMITS, ...options.limits };
    this.#losses = new Losses({
      store: options.losses,
      unwritten: options.unwritten,
      isUnavailable: () => this.#outage !== undefined,
      log: options.log,
      now: options.now,
    });
  }

  store(event: ArchivedEvent): void {
    if (this.#isClosed) return this.#losses.add(1, STOPPED);
    const wanted = archivable(event);
    if (wanted === undefined) {
      this.#skipped++;
      return;
    }
    this.#waiting.add({ ...wanted, ids: NO_IDS });
    this.#shares.add(event.sender, wanted.characters);
    this.#dropOldest();
    this.#lookHowFull();
    this.#working ??= this.#workOff();
  }

  isFullFor(sender: string): boolean {
    return (
      this.#isFull() &&
      this.#shares.isEven(sender, { events: this.#most.highEvents, characters: this.#most.highCharacters })
    );
  }

  onRoom(resume: () => void): void {
    this.#resumes.push(resume);
  }

  counts(): ArchiveCounts {
    return {
      waiting: this.#waiting.length + this.#onTheWay,
      capacity: this.#most.maxEvents,
      stored: this.#stored,
      skipped: this.#skipped,
      lost: this.#losses.total,
    };
  }

  async close(graceMs: number): Promise<void> {
    this.#isEnding = true;
    this.#rest.cutShort();
    await Promise.race([this.#working, delay(graceMs * 0.75, undefined, { ref: false })]);
    const wasFull = this.#isFull();
    this.#isClosed = true;
    this.#rest.cutShort();
    const left = this.#waiting.length + this.#onTheWay;
    while (this.#waiting.drop() !== undefined);
    this.#onTheWay = 0;
    this.#changed(wasFull);
    if (left > 0) this.#losses.add(left, STOPPED);
    await Promise.race([this.#losses.close(), delay(graceMs * 0.25, undefined, { ref: false })]);
  }

  #isFull(): boolean {
    return this.#isBehind && this.#outage === undefined && !this.#isClosed;
  }

  /** After whatever may have made `isFull` false. */
  #changed(wasFull: boolean): void {
    if (wasFull && !this.#isFull()) for (const resume of this.#resumes) resume();
  }

  #lookHowFull(): void {
    const wasFull = this.#isFull();
    const { length, characters } = this.#waiting;
    const share = Math.max(length / this.#most.highEvents, characters / this.#most.highCharacters);
    const filled = Math.max(length / this.#most.maxEvents, characters / this.#most.maxCharacters);
    this.#least = Math.min(this.#least, share);
    if (share >= this.#least + 1 || filled >= NEARLY_FULL) this.#isBehind = true;
    else if (share <= this.#least + DRAINED && filled <= ROOM_AGAIN) this.#isBehind = false;
    this.#changed(wasFull);
  }

  #gone({ event, characters }: Queued): void {
    this.#shares.take(event.sender, characters);
  }

  #dropOldest(): void {
    const reason = this.#outage?.reason ?? 'the database was too slow';
    while (this.#waiting.length > this.#most.maxEvents || this.#waiting.characters > this.#most.maxCharacters) {
      const dropped = this.#waiting.drop();
      if (dropped === undefined) return;
      this.#gone(dropped);
      this.#losses.add(1, reason);
    }
  }

  async #write(batch: readonly Queued[], again: boolean): Promise<void> {
    const missing = batch.filter(({ ids }) => ids === NO_IDS);
    if (missing.length > 0) {
      const ids = await this.#options.write.ids(missing.reduce((sum, { rows }) => sum + rows, 0));
      let at = 0;
      for (const item of missing) item.ids = ids.slice(at, (at += item.rows));
    }
    await this.#options.write.write(batch satisfies readonly CotRow[], again);
  }

  #wasStored(batch: readonly Queued[]): void {
    if (this.#isClosed) return;
    this.#onTheWay -= batch.length;
    this.#stored += batch.length;
    this.#answered();
  }

  #wasRefused(_: Queued, reason: string): void {
    if (this.#isClosed) return;
    this.#onTheWay--;
    this.#losses.add(1, `the database refused it (${reason})`);
    this.#answered();
  }

  #answered(): void {
    this.#failures = 0;
    if (this.#outage === undefined) return;
    const seconds = Math.round((this.#options.now().getTime() - this.#outage.sinceMs) / 1000);
    this.#options.log.info('archive.caught_up', {
      after_seconds: seconds,
      waiting: this.#waiting.length,
      lost_since_start: this.#losses.total,
    });
    if (this.#outage.isLock || this.#least <= DRAINED) this.#least = Number.POSITIVE_INFINITY;
    this.#outage = undefined;
    this.#isBehind = false;
    this.#losses.outageEnded();
    this.#lookHowFull();
  }

  async #isUnavailable(error: unknown): Promise<boolean> {
    if (this.#outage === undefined && !this.#isClosed) {
      const wasFull = this.#isFull();
      this.#options.log.warn('archive.behind', {
        waiting: this.#waiting.length + this.#onTheWay,
        error: messageOf(error),
      });
      const isLock = codeOf(error) === LOCK_NOT_AVAILABLE;
      const reason = isLock ? 'a table of events was locked' : 'the database took nothing';
      this.#outage = { sinceMs: this.#options.now().getTime(), isLock, reason };
      this.#changed(wasFull);
    }
    await this.#rest.after(Math.min(this.#most.maxPauseMs, this.#most.firstPauseMs * 2 ** this.#failures++));
    return !this.#isClosed;
  }

  async #workOff(): Promise<void> {
    while (!this.#isClosed && this.#waiting.length > 0) {
      if (!this.#isEnding && this.#waiting.length < this.#most.batchEvents) await this.#rest.after(this.#most.lagMs);
      const batch = this.#waiting.take(this.#most.batchEvents, this.#most.batchCharacters);
      for (const taken of batch) this.#gone(taken);
      this.#onTheWay = batch.length;
      this.#lookHowFull();
      await settle(batch, {
        write: (batch, again) => this.#write(batch, again),
        stored: (batch) => this.#wasStored(batch),
        refused: (_, reason) => this.#wasRefused(_, reason),
        unavailable: (error) => this.#isUnavailable(error),
      });
    }
    this.#working = undefined;
  }
}
