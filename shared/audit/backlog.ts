// Queues records for the audit log. All records pass through one queue in order, many per
// transaction; outcomes and notes wait while the database is unavailable, intents do not.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { withTimeout } from '@holdfast/kit/timeout';
import type { NewRecord } from './table.ts';

export interface Entry {
  /** `withdrawal`: of an intent that was refused although it may have been committed. */
  kind: 'intent' | 'outcome' | 'note' | 'withdrawal';
  record: NewRecord;
  endsSignInsOf?: string | undefined;
  /** The response to its COMMIT was lost: it may be in the database already. */
  uncertain: boolean;
}

export interface BacklogOptions {
  /**
   * All or nothing; resolves with the number of each record. Marks records whose fate is uncertain.
   */
  write: (entries: readonly Entry[]) => Promise<number[]>;
  log: Log;
}

interface Waiting {
  entry: Entry;
  /** Called once. */
  resolve: (seq: number) => void;
  reject: (reason: unknown) => void;
}

const MAX_WAITING = 5_000;
const MAX_CONCURRENT = 200;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;

export class AuditBacklog {
  readonly #write: BacklogOptions['write'];
  readonly #log: BacklogOptions['log'];
  #waiting: Waiting[] = [];
  #draining: Promise<void> | undefined;
  #busy = false;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ write, log }: BacklogOptions) {
    this.#write = write;
    this.#log = log;
  }

  #drain(): void {
    if (this.#busy) return;
    this.#busy = true;
    clearTimeout(this.#timer);
    this.#draining = this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const reason = await this.#attempt(this.#waiting.slice(0, MAX_CONCURRENT));
      if (reason !== undefined) {
        this.#pauseAfter(reason);
        break;
      }
      if (this.#failures > 0) this.#log.info('audit.written_again', { waiting: this.#waiting.length });
      this.#failures = 0;
    }
    this.#busy = false;
  }

  /** Undefined when all of them are written, else the reason. */
  async #attempt(batch: readonly Waiting[]): Promise<{ error: unknown } | undefined> {
    try {
      const seqs = await this.#write(batch.map(({ entry }) => entry));
      this.#waiting = this.#waiting.filter((each) => !batch.includes(each));
      for (const [index, { resolve }] of batch.entries()) resolve(seqs[index] ?? 0);
      return undefined;
    } catch (error) {
      if (isUnavailable(error)) return { error };
      if (batch.length > 1) return this.#attemptEach(batch);
      this.#waiting = [...this.#waiting.filter((each) => !batch.includes(each)), ...batch];
      return { error };
    }
  }

  /** A record that the database refuses for a reason of its own must not block the others. */
  async #attemptEach(batch: readonly Waiting[]): Promise<{ error: unknown } | undefined> {
    let failed: { error: unknown } | undefined;
    for (const each of batch) failed = (await this.#attempt([each])) ?? failed;
    return failed;
  }

  /** Informs every waiting caller; intents leave the queue. */
  #pauseAfter({ error }: { error: unknown }): void {
    const notices = this.#waiting;
    this.#waiting = notices.flatMap((each): Waiting[] => {
      if (each.entry.kind !== 'intent') return [each];
      return each.entry.uncertain ? [{ ...each, entry: { ...each.entry, kind: 'withdrawal' } }] : [];
    });
    for (const { reject } of notices) reject(error);
    if (this.#failures === 0)
      this.#log.warn('audit.not_written', { error: messageOf(error), waiting: this.#waiting.length });
    this.#failures += 1;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(this.#failures - 1, 10), MAX_PAUSE_MS);
    this.#timer = setTimeout(() => this.#drain(), pauseMs);
    this.#timer.unref();
  }

  /**
   * Resolves with the number of the record once it is committed. Rejects with the reason when the
   * first attempt failed.
   */
  append(entry: Entry): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    if (!this.#hasRoomFor(entry)) {
      this.#log.error('audit.lost', { action: entry.record.action, target: entry.record.target, kind: entry.kind });
      reject(
        new AppError(
          'unavailable',
          `The audit log is ${MAX_WAITING} records behind. Wait for the database, then try again.`,
        ),
      );
      return promise;
    }
    this.#waiting.push({ entry, resolve, reject });
    this.#drain();
    return promise;
  }

  /** An outcome replaces the oldest note. */
  #hasRoomFor(entry: Entry): boolean {
    if (this.#waiting.length < MAX_WAITING) return true;
    const oldest = entry.kind === 'outcome' ? this.#waiting.find((each) => each.entry.kind === 'note') : undefined;
    if (oldest === undefined) return false;
    this.#waiting = this.#waiting.filter((each) => each !== oldest);
    this.#log.error('audit.lost', {
      action: oldest.entry.record.action,
      target: oldest.entry.record.target,
      kind: 'note',
    });
    oldest.reject(new AppError('unavailable', 'An outcome replaced this note.'));
    return true;
  }

  /** Resolves when the queue is empty, when writing has failed, or after this time. */
  async settled(ms: number): Promise<void> {
    if (this.#waiting.length > 0) this.#drain();
    await withTimeout(ms, () => new Error('timed out'), this.#draining ?? Promise.resolve()).catch(() => undefined);
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable';
}

const BURST = 1_000;
const A_MINUTE = 60;
/** The largest number of kinds that are counted separately. */
const MAX_KINDS = 100;

/**
 * Keeps a flood of notes out of the audit log. Each kind of action has a burst allowance; beyond
 * it, a fixed number a minute is kept and the rest is counted. The first of a kind in a minute is
 * always kept. A dropped note costs next to nothing.
 */
interface Kind {
  /** Notes left in the allowance. */
  left: number;
  keptThisMinute: boolean;
  omitted: number;
}

/** `minuteMs`: how long a minute is. */
export class AuditThrottle {
  readonly #minuteMs;
  readonly #kinds = new Map<string, Kind>();
  #begunMs = -Infinity;
  #omitted: Record<string, number> | undefined;

  constructor(minuteMs = 60_000) {
    this.#minuteMs = minuteMs;
  }

  #turn(nowMs: number): void {
    if (nowMs - this.#begunMs < this.#minuteMs) return;
    const minutes = Math.floor((nowMs - this.#begunMs) / this.#minuteMs);
    this.#begunMs = nowMs;
    for (const [action, kind] of this.#kinds) {
      if (kind.omitted > 0)
        this.#omitted = { ...this.#omitted, [action]: (this.#omitted?.[action] ?? 0) + kind.omitted };
      const left = Math.min(BURST, kind.left + A_MINUTE * minutes);
      if (left === BURST) this.#kinds.delete(action);
      else Object.assign(kind, { left, keptThisMinute: false, omitted: 0 });
    }
  }

  #kindOf(action: string): Kind {
    const name = this.#kinds.has(action) || this.#kinds.size < MAX_KINDS ? action : 'other';
    const kind = this.#kinds.get(name) ?? { left: BURST, keptThisMinute: false, omitted: 0 };
    this.#kinds.set(name, kind);
    return kind;
  }

  /** False when this note is only counted. */
  lets(action: string, nowMs: number): boolean {
    this.#turn(nowMs);
    const kind = this.#kindOf(action);
    if (kind.left <= 0 && kind.keptThisMinute) {
      kind.omitted += 1;
      return false;
    }
    kind.left = Math.max(0, kind.left - 1);
    kind.keptThisMinute = true;
    return true;
  }

  /**
   * Notes dropped in the previous minute, once it is over; undefined when there were none, or the
   * minute isn't over.
   */
  takeOmitted(nowMs: number): Record<string, number> | undefined {
    this.#turn(nowMs);
    const taken = this.#omitted;
    this.#omitted = undefined;
    return taken;
  }

  /** True when notes were dropped that have not been reported yet. */
  hasOmitted(): boolean {
    return this.#omitted !== undefined || [...this.#kinds.values()].some((kind) => kind.omitted > 0);
  }
}
