// Logs connections and disconnections in the database, in order and apart from the stream. Keeps up
// to 10,000 while the database is unavailable, and of more only the newest of each uid.

import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { rateLimit } from '@holdfast/kit/rate-limit';
import { withFallback } from '@holdfast/kit/timeout';
import type { Presence, PresenceLog } from '../model/stream.ts';
import type { RunSql } from '../store/certificates.ts';
import { GroupVectors } from '../store/groups.ts';
import { type PresenceRow, presenceStore, type PresenceStore } from '../store/presence.ts';
import { Pauses, settle } from '../archive/batches.ts';

export interface PresenceLogParts {
  now?: () => Date;
  vectors?: GroupVectors;
  store?: PresenceStore;
  maxWaiting?: number;
}

const MAX_WAITING = 10_000;
const BATCH = 200;
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;
/**
 * Of one person: all phones behind one account may come back at once, and nothing ever deletes
 * these rows.
 */
const COMING_RATE = { burst: 1_000, perSecond: 1 };
const REPORTED_EVERY_MS = 60_000;
const STOPPED = 'the core was stopped';

/** Before anything else it writes that whoever was there at a crash has gone; begins at once. */
export class StoredPresenceLog implements PresenceLog {
  readonly #log: Log;
  readonly #now;
  readonly #vectors;
  readonly #maxWaiting;
  readonly #store;
  readonly #startedAt;
  readonly #rest = new Pauses();
  #waiting: PresenceRow[] = [];
  /** Taken out of the line, and not yet known to be written. */
  #onTheWay = 0;
  #failures = 0;
  #lost = 0;
  readonly #mayCome;
  readonly #passedOver = new WeakSet<Presence>();
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #working: Promise<void> | undefined;

  constructor(run: RunSql, log: Log, parts: PresenceLogParts = {}) {
    this.#log = log;
    this.#now = parts.now ?? (() => new Date());
    this.#vectors = parts.vectors ?? new GroupVectors(run);
    this.#maxWaiting = parts.maxWaiting ?? MAX_WAITING;
    this.#store = parts.store ?? presenceStore(run, this.#vectors);
    this.#startedAt = this.#now();
    this.#mayCome = rateLimit({ ...COMING_RATE, now: this.#now });
    this.#working = this.#everybodyWent().then(() => this.#workOff());
  }

  came(who: Presence, at: Date): void {
    if (this.#mayCome(who.username)) this.#add({ who, at, kind: 'Connected' });
    else this.#passOver(who);
  }

  went(who: Presence, at: Date): void {
    if (!this.#passedOver.has(who)) this.#add({ who, at, kind: 'Disconnected' });
  }

  /** Writes what is waiting, for at most so long. */
  async close(graceMs: number): Promise<void> {
    this.#rest.cutShort();
    await withFallback(graceMs, undefined, this.#working ?? Promise.resolve());
    this.#isClosed = true;
    this.#rest.cutShort();
    const left = this.#waiting.length + this.#onTheWay;
    if (left > 0) this.#lose(left, STOPPED);
  }

  async #isUnavailable(error: unknown): Promise<boolean> {
    if (this.#failures === 0)
      this.#log.warn('presence.behind', { waiting: this.#waiting.length + this.#onTheWay, error: messageOf(error) });
    await this.#rest.after(Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures++));
    return !this.#isClosed;
  }

  #worked(): void {
    if (this.#failures > 0)
      this.#log.info('presence.caught_up', { waiting: this.#waiting.length, lost_since_start: this.#lost });
    this.#failures = 0;
  }

  /**
   * Rule `presenceGoesOn`: if the tables cannot be put right, what comes is written all the same.
   */
  async #everybodyWent(): Promise<void> {
    await settle([this.#startedAt], {
      write: () => this.#store.everybodyWent(this.#startedAt),
      stored: () => this.#worked(),
      refused: (_, reason) => this.#log.error('presence.not_ended', { reason }),
      unavailable: (error) => this.#isUnavailable(error),
    });
  }

  async #write(batch: readonly PresenceRow[], again: boolean): Promise<void> {
    const missing = batch.filter(({ id }) => id === undefined);
    const ids = missing.length === 0 ? [] : await this.#store.ids(missing.length);
    missing.forEach((row, at) => Object.assign(row, { id: ids[at] }));
    await this.#store.write(batch, again);
  }

  async #workOff(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#isClosed) {
      const batch = this.#waiting.splice(0, BATCH);
      this.#onTheWay = batch.length;
      await settle(batch, {
        write: (batch, again) => this.#write(batch, again),
        stored: (batch) => this.#wasWritten(batch),
        refused: (_, reason) => this.#wasRefused(_, reason),
        unavailable: (error) => this.#isUnavailable(error),
      });
    }
    this.#working = undefined;
  }

  #wasWritten(batch: readonly PresenceRow[]): void {
    if (this.#isClosed) return;
    this.#onTheWay -= batch.length;
    this.#worked();
  }

  #wasRefused(_: PresenceRow, reason: string): void {
    if (this.#isClosed) return;
    this.#onTheWay--;
    this.#lose(1, reason);
  }

  #lose(rows: number, reason: string): void {
    this.#lost += rows;
    this.#log.error('presence.lost', { rows, reason, since_start: this.#lost });
  }

  /** Each time it gets rid of half at least, so that a flood costs nothing. */
  #makeRoom(): void {
    const newest = new Map<string, PresenceRow>();
    for (const row of this.#waiting) {
      newest.delete(row.who.uid);
      newest.set(row.who.uid, row);
    }
    const before = this.#waiting.length;
    this.#waiting = [...newest.values()].slice(-Math.floor(this.#maxWaiting / 2));
    this.#lose(before - this.#waiting.length, 'more were waiting than can be kept');
  }

  #passOver(who: Presence): void {
    this.#passedOver.add(who);
    const atMs = this.#now().getTime();
    if (Math.abs(atMs - this.#reportedAtMs) < REPORTED_EVERY_MS) return;
    this.#reportedAtMs = atMs;
    this.#log.warn('presence.too_often', {
      user: who.username,
      consequence: 'what comes too often is not in the tables',
    });
  }

  #add(row: PresenceRow): void {
    if (this.#isClosed) return this.#lose(1, STOPPED);
    this.#waiting.push(row);
    if (this.#waiting.length > this.#maxWaiting) this.#makeRoom();
    this.#working ??= this.#workOff();
  }
}
