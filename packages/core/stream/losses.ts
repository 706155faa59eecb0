// Events that are lost: told in the log at once, written into the database when it takes something again, one row for each
// outage or reason and hour. What it has not taken at the end is kept for the next start.

import { messageOf } from '@holdfast/kit/app-error';
import { oneAfterTheOther } from '@holdfast/kit/limits';
import type { Log } from '@holdfast/kit/log';
import { HOUR_MS } from '@holdfast/kit/time';
import type { Loss, LossStore } from '../store/tables.ts';
import type { UnwrittenLosses } from '../store/unwritten-losses.ts';

export interface Losses {
  add(events: number, reason: string): void;
  /** Since the start. */
  readonly total: number;
  /** The next loss is one of another outage. */
  outageEnded(): void;
  /** Writes what is unwritten, once, into a file first; after that losses are only counted and logged. */
  close(): Promise<void>;
}

export interface LossesOptions {
  store: LossStore;
  unwritten: UnwrittenLosses;
  /** The database takes nothing: there is no use in writing. */
  isAway: () => boolean;
  log: Log;
  now: () => Date;
}

interface OpenLoss extends Omit<Loss, 'id'> {
  id: number | undefined;
  isWritten: boolean;
}

/** Reasons that are told apart; the rest is one. */
const MOST_REASONS = 20;
const OTHER_REASONS = 'other reasons; core.log has some of them';
const LONGEST_MS = HOUR_MS;
const TOLD_EVERY_MS = 10_000;
const WRITTEN_EVERY_MS = 1_000;

export function createLosses({ store, unwritten, isAway, log, now }: LossesOptions): Losses {
  const open = new Map<string, OpenLoss>();
  const inTurn = oneAfterTheOther();
  let total = 0;
  let untold = 0;
  let toldAtMs = Number.NEGATIVE_INFINITY;
  let lastReason = '';
  let hasOutageEnded = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  function rowOf(reason: string, at: Date): OpenLoss {
    const known = open.get(reason);
    const isOld = known?.isWritten === true && Math.abs(at.getTime() - known.began.getTime()) > LONGEST_MS;
    if (known !== undefined && !isOld) return known;
    if (known === undefined && open.size >= MOST_REASONS && reason !== OTHER_REASONS) return rowOf(OTHER_REASONS, at);
    const row: OpenLoss = { id: undefined, began: at, ended: at, events: 0, reason, isWritten: false };
    open.set(reason, row);
    return row;
  }

  const isTimeToTell = (): boolean => Math.abs(now().getTime() - toldAtMs) >= TOLD_EVERY_MS;

  function tell(reason: string): void {
    if (untold === 0) return;
    log.error('archive.lost', { events: untold, reason, since_start: total });
    toldAtMs = now().getTime();
    untold = 0;
  }

  async function save(row: OpenLoss): Promise<void> {
    row.id ??= await store.id();
    const { events } = row;
    await store.save({ ...row, id: row.id });
    row.isWritten = row.events === events;
  }

  const areUnwritten = (): boolean => [...open.values()].some(({ isWritten }) => !isWritten);

  const write = (): Promise<void> => inTurn(writeOnce);

  /** Rule `lossesLater`: what could not be written is written the next time. */
  async function writeOnce(): Promise<void> {
    if (isAway() || !areUnwritten()) return;
    try {
      for (const row of open.values()) if (!row.isWritten) await save(row);
      if (!areUnwritten()) unwritten.keep([]);
      if (hasOutageEnded && !areUnwritten()) open.clear();
      hasOutageEnded &&= open.size > 0;
    } catch (error) {
      log.warn('archive.losses_not_written', { error: messageOf(error) });
    }
  }

  async function writeLater(): Promise<void> {
    await write();
    if (isTimeToTell()) tell(lastReason);
    timer = undefined;
    if (areUnwritten() || untold > 0) schedule();
  }

  function schedule(): void {
    if (isClosed) return;
    timer ??= setTimeout(() => void writeLater(), WRITTEN_EVERY_MS).unref();
  }

  unwritten.read().forEach(({ id, ...loss }, at) => open.set(`before ${at}`, { ...loss, id, isWritten: false }));
  if (open.size > 0) schedule();

  return {
    get total() {
      return total;
    },

    add(events, reason) {
      const at = now();
      total += events;
      untold += events;
      const row = rowOf(reason, at);
      row.events += events;
      row.ended = at;
      row.isWritten = false;
      lastReason = reason;
      if (isTimeToTell()) tell(reason);
      schedule();
    },

    outageEnded() {
      hasOutageEnded = true;
    },

    async close() {
      isClosed = true;
      clearTimeout(timer);
      tell(lastReason);
      if (areUnwritten()) unwritten.keep([...open.values()].filter(({ isWritten }) => !isWritten));
      await write();
    },
  };
}
