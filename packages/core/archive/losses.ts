// Records lost events: in the log at once, and in the database when it is available, one row per
// outage or reason and hour. Keeps unwritten rows for the next start.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { codeOf, messageOf } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { serialize } from '@holdfast/kit/concurrency';
import type { Log } from '@holdfast/kit/log';
import { HOUR_MS } from '@holdfast/kit/time';
import type { Loss, LossStore } from '../store/tables.ts';

export interface LossesOptions {
  store: LossStore;
  unwritten: UnwrittenLosses;
  /** The database takes nothing: there is no use in writing. */
  isUnavailable: () => boolean;
  log: Log;
  now: () => Date;
}

interface OpenLoss extends Omit<Loss, 'id'> {
  id: number | undefined;
  isWritten: boolean;
}

/** Reasons that are told apart; the rest is one. */
const MAX_REASONS = 20;
const OTHER_REASONS = 'other reasons; core.log has some of them';
const MAX_MS = HOUR_MS;
const REPORTED_EVERY_MS = 10_000;
const WRITTEN_EVERY_MS = 1_000;

export class Losses {
  readonly #options: LossesOptions;
  readonly #open = new Map<string, OpenLoss>();
  readonly #inTurn = serialize();
  #total = 0;
  #unreported = 0;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #lastReason = '';
  #hasOutageEnded = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LossesOptions) {
    this.#options = options;
    options.unwritten
      .read()
      .forEach(({ id, ...loss }, at) => this.#open.set(`before ${at}`, { ...loss, id, isWritten: false }));
    if (this.#open.size > 0) this.#schedule();
  }

  /** Since the start. */
  get total(): number {
    return this.#total;
  }

  add(events: number, reason: string): void {
    const at = this.#options.now();
    this.#total += events;
    this.#unreported += events;
    const row = this.#rowOf(reason, at);
    row.events += events;
    row.ended = at;
    row.isWritten = false;
    this.#lastReason = reason;
    if (this.#isTimeToTell()) this.#tell(reason);
    this.#schedule();
  }

  /** The next loss is one of another outage. */
  outageEnded(): void {
    this.#hasOutageEnded = true;
  }

  /**
   * Writes what is unwritten, once, into a file first; after that losses are only counted and
   * logged.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#tell(this.#lastReason);
    if (this.#areUnwritten())
      this.#options.unwritten.keep([...this.#open.values()].filter(({ isWritten }) => !isWritten));
    await this.#write();
  }

  #rowOf(reason: string, at: Date): OpenLoss {
    const known = this.#open.get(reason);
    const isOld = known?.isWritten === true && Math.abs(at.getTime() - known.began.getTime()) > MAX_MS;
    if (known !== undefined && !isOld) return known;
    if (known === undefined && this.#open.size >= MAX_REASONS && reason !== OTHER_REASONS)
      return this.#rowOf(OTHER_REASONS, at);
    const row: OpenLoss = { id: undefined, began: at, ended: at, events: 0, reason, isWritten: false };
    this.#open.set(reason, row);
    return row;
  }

  #isTimeToTell(): boolean {
    return Math.abs(this.#options.now().getTime() - this.#reportedAtMs) >= REPORTED_EVERY_MS;
  }

  #tell(reason: string): void {
    if (this.#unreported === 0) return;
    this.#options.log.error('archive.lost', { events: this.#unreported, reason, since_start: this.#total });
    this.#reportedAtMs = this.#options.now().getTime();
    this.#unreported = 0;
  }

  async #save(row: OpenLoss): Promise<void> {
    row.id ??= await this.#options.store.id();
    const { events } = row;
    await this.#options.store.save({ ...row, id: row.id });
    row.isWritten = row.events === events;
  }

  #areUnwritten(): boolean {
    return [...this.#open.values()].some(({ isWritten }) => !isWritten);
  }

  #write(): Promise<void> {
    return this.#inTurn(() => this.#writeOnce());
  }

  /** Rule `lossesLater`: what could not be written is written the next time. */
  async #writeOnce(): Promise<void> {
    if (this.#options.isUnavailable() || !this.#areUnwritten()) return;
    try {
      for (const row of this.#open.values()) if (!row.isWritten) await this.#save(row);
      if (!this.#areUnwritten()) this.#options.unwritten.keep([]);
      if (this.#hasOutageEnded && !this.#areUnwritten()) this.#open.clear();
      this.#hasOutageEnded &&= this.#open.size > 0;
    } catch (error) {
      this.#options.log.warn('archive.losses_not_written', { error: messageOf(error) });
    }
  }

  async #writeLater(): Promise<void> {
    await this.#write();
    if (this.#isTimeToTell()) this.#tell(this.#lastReason);
    this.#timer = undefined;
    if (this.#areUnwritten() || this.#unreported > 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#isClosed) return;
    this.#timer ??= setTimeout(() => void this.#writeLater(), WRITTEN_EVERY_MS).unref();
  }
}

/** The id is there when the row may be in the table already. */
export type UnwrittenLoss = Omit<Loss, 'id'> & { id?: number | undefined };

export interface UnwrittenLosses {
  read(): UnwrittenLoss[];
  /** In place of those of before; none: the file goes. */
  keep(losses: readonly UnwrittenLoss[]): void;
}

const Kept = z.array(
  z.object({
    id: z.int().optional(),
    began: z.coerce.date(),
    ended: z.coerce.date(),
    events: z.int().positive(),
    reason: z.string(),
  }),
);

/**
 * Losses that the database had not taken when the core was stopped: in a file, until a later start
 * has written them. Rule `lossesLater`: neither a broken file nor a full disk keeps the core from
 * starting or stopping; the log says so.
 */
export function unwrittenLosses(dataDirectory: string, log: Log): UnwrittenLosses {
  const path = join(dataDirectory, 'unwritten-losses.json');
  return {
    read() {
      try {
        return Kept.parse(JSON.parse(readFileSync(path, 'utf8')));
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') log.warn('archive.losses_unreadable', { path, error: messageOf(error) });
        return [];
      }
    },
    keep(losses) {
      try {
        if (losses.length === 0) rmSync(path, { force: true });
        else writeFileAtomically(path, JSON.stringify(losses));
      } catch (error) {
        log.warn('archive.losses_not_kept', { path, error: messageOf(error) });
      }
    },
  };
}
