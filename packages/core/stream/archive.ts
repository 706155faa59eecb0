// Takes events into the database in batches, behind the stream's back. What waits is bounded; what is lost is counted.

import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import type { Archive, ArchiveCounts } from '../model/stream.ts';
import type { CotRow, CotWriter } from '../store/cot-events.ts';
import type { LossStore } from '../store/tables.ts';
import type { UnwrittenLosses } from '../store/unwritten-losses.ts';
import { type Archivable, archivable } from './archivable.ts';
import { createLosses } from './losses.ts';
import { pauses } from './pauses.ts';
import { settle } from './settle.ts';
import { waitingLine } from './waiting-events.ts';

// How much of what waits is whose. When there is too much of it, whoever has less than an even share need not rest.

export interface Shares {
  add(who: string, characters: number): void;
  /** One that was added waits no more. */
  take(who: string, characters: number): void;
  /** Whether it is an even share of these, or more. */
  isEven(who: string, of: { events: number; characters: number }): boolean;
}

export function createShares(): Shares {
  const shares = new Map<string, { events: number; characters: number }>();

  return {
    add(who, characters) {
      const share = shares.get(who);
      if (share === undefined) {
        shares.set(who, { events: 1, characters });
        return;
      }
      share.events++;
      share.characters += characters;
    },
    take(who, characters) {
      const share = shares.get(who);
      if (share === undefined) return;
      share.events--;
      share.characters -= characters;
      if (share.events === 0) shares.delete(who);
    },
    isEven(who, of) {
      const share = shares.get(who);
      if (share === undefined) return false;
      return Math.max(share.events / of.events, share.characters / of.characters) * shares.size >= 1;
    },
  };
}

export interface ArchiveLimits {
  /** Waiting at most; beyond either the oldest are lost. Characters as in the tables: two bytes of memory each at most. */
  mostEvents: number;
  mostCharacters: number;
  /**
   * Senders rest from `highEvents` or `highCharacters` on, until it is a quarter of that. What an outage has left does not
   * count, as long as it grows less and there is room: senders need not wait for the past.
   */
  highEvents: number;
  highCharacters: number;
  /** Events of one statement. */
  batchEvents: number;
  batchCharacters: number;
  /** So long events are collected while there is no whole batch. */
  lagMs: number;
  /** Between tries while the database takes nothing: the first, then twice as long each time up to the longest. */
  firstPauseMs: number;
  longestPauseMs: number;
}

const ARCHIVE_LIMITS: ArchiveLimits = {
  mostEvents: 100_000,
  mostCharacters: 64 * 1024 ** 2,
  highEvents: 20_000,
  highCharacters: 16 * 1024 ** 2,
  batchEvents: 500,
  batchCharacters: 4 * 1024 ** 2,
  lagMs: 25,
  firstPauseMs: 250,
  longestPauseMs: 5_000,
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

/** Of what may wait at most: whatever it is, senders rest before the oldest are lost to a database that answers. */
const NEARLY_FULL = 0.95;
const ROOM_AGAIN = 0.9;
/** A share of `high…`. */
const DRAINED = 0.25;
const LOCK_NOT_AVAILABLE = '55P03';
const NO_IDS: readonly string[] = [];
const STOPPED = 'the core was stopped before they were stored';

/**
 * @example
 * const archive = createArchive({ write: cotWriter(run, groupVectors(run)), losses: lossStore(run), unwritten: unwrittenLosses(dir, log), log, now });
 * archive.store(event);
 */
export function createArchive({
  write: writer,
  losses: lossRows,
  unwritten,
  log,
  now,
  limits,
}: ArchiveOptions): Archive {
  const most = { ...ARCHIVE_LIMITS, ...limits };
  const waiting = waitingLine<Queued>();
  const shares = createShares();
  const resumes: (() => void)[] = [];
  const rest = pauses();
  /** Taken out of the line, and not yet known to be stored. */
  let onTheWay = 0;
  let stored = 0;
  let skipped = 0;
  let failures = 0;
  /** Since when the database takes nothing, and why. */
  let outage: { sinceMs: number; isLock: boolean; reason: string } | undefined;
  let isBehind = false;
  /** The least that has waited since the last outage, as a share of `high…`. */
  let least = 0;
  let isEnding = false;
  let isClosed = false;
  let working: Promise<void> | undefined;

  const losses = createLosses({ store: lossRows, unwritten, isAway: () => outage !== undefined, log, now });
  const isFull = (): boolean => isBehind && outage === undefined && !isClosed;

  /** After whatever may have made `isFull` false. */
  function changed(wasFull: boolean): void {
    if (wasFull && !isFull()) for (const resume of resumes) resume();
  }

  function lookHowFull(): void {
    const wasFull = isFull();
    const { length, characters } = waiting;
    const share = Math.max(length / most.highEvents, characters / most.highCharacters);
    const filled = Math.max(length / most.mostEvents, characters / most.mostCharacters);
    least = Math.min(least, share);
    if (share >= least + 1 || filled >= NEARLY_FULL) isBehind = true;
    else if (share <= least + DRAINED && filled <= ROOM_AGAIN) isBehind = false;
    changed(wasFull);
  }

  function gone({ event, characters }: Queued): void {
    shares.take(event.sender, characters);
  }

  function dropOldest(): void {
    const reason = outage?.reason ?? 'the database was too slow';
    while (waiting.length > most.mostEvents || waiting.characters > most.mostCharacters) {
      const dropped = waiting.drop();
      if (dropped === undefined) return;
      gone(dropped);
      losses.add(1, reason);
    }
  }

  async function write(batch: readonly Queued[], again: boolean): Promise<void> {
    const missing = batch.filter(({ ids }) => ids === NO_IDS);
    if (missing.length > 0) {
      const ids = await writer.ids(missing.reduce((sum, { rows }) => sum + rows, 0));
      let at = 0;
      for (const item of missing) item.ids = ids.slice(at, (at += item.rows));
    }
    await writer.write(batch satisfies readonly CotRow[], again);
  }

  function wasStored(batch: readonly Queued[]): void {
    if (isClosed) return;
    onTheWay -= batch.length;
    stored += batch.length;
    answered();
  }

  function wasRefused(_: Queued, reason: string): void {
    if (isClosed) return;
    onTheWay--;
    losses.add(1, `the database refused it (${reason})`);
    answered();
  }

  function answered(): void {
    failures = 0;
    if (outage === undefined) return;
    const seconds = Math.round((now().getTime() - outage.sinceMs) / 1000);
    log.info('archive.caught_up', { after_seconds: seconds, waiting: waiting.length, lost_since_start: losses.total });
    if (outage.isLock || least <= DRAINED) least = Number.POSITIVE_INFINITY;
    outage = undefined;
    isBehind = false;
    losses.outageEnded();
    lookHowFull();
  }

  async function isAway(error: unknown): Promise<boolean> {
    if (outage === undefined && !isClosed) {
      const wasFull = isFull();
      log.warn('archive.behind', { waiting: waiting.length + onTheWay, error: messageOf(error) });
      const isLock = codeOf(error) === LOCK_NOT_AVAILABLE;
      const reason = isLock ? 'a table of events was locked' : 'the database took nothing';
      outage = { sinceMs: now().getTime(), isLock, reason };
      changed(wasFull);
    }
    await rest.after(Math.min(most.longestPauseMs, most.firstPauseMs * 2 ** failures++));
    return !isClosed;
  }

  async function workOff(): Promise<void> {
    while (!isClosed && waiting.length > 0) {
      if (!isEnding && waiting.length < most.batchEvents) await rest.after(most.lagMs);
      const batch = waiting.take(most.batchEvents, most.batchCharacters);
      for (const taken of batch) gone(taken);
      onTheWay = batch.length;
      lookHowFull();
      await settle(batch, { write, stored: wasStored, refused: wasRefused, away: isAway });
    }
    working = undefined;
  }

  return {
    store(event) {
      if (isClosed) return losses.add(1, STOPPED);
      const wanted = archivable(event);
      if (wanted === undefined) {
        skipped++;
        return;
      }
      waiting.add({ ...wanted, ids: NO_IDS });
      shares.add(event.sender, wanted.characters);
      dropOldest();
      lookHowFull();
      working ??= workOff();
    },

    isFullFor: (sender) =>
      isFull() && shares.isEven(sender, { events: most.highEvents, characters: most.highCharacters }),

    onRoom: (resume) => void resumes.push(resume),

    counts: (): ArchiveCounts => ({
      waiting: waiting.length + onTheWay,
      capacity: most.mostEvents,
      stored,
      skipped,
      lost: losses.total,
    }),

    async close(graceMs) {
      isEnding = true;
      rest.cutShort();
      await Promise.race([working, delay(graceMs * 0.75, undefined, { ref: false })]);
      const wasFull = isFull();
      isClosed = true;
      rest.cutShort();
      const left = waiting.length + onTheWay;
      while (waiting.drop() !== undefined);
      onTheWay = 0;
      changed(wasFull);
      if (left > 0) losses.add(left, STOPPED);
      await Promise.race([losses.close(), delay(graceMs * 0.25, undefined, { ref: false })]);
    },
  };
}
