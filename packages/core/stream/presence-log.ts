// Who came and who went, written behind the stream's back, in that order. While the database is away up to 10,000 of these are
// kept; of more than that the newest of each uid.

import { messageOf } from '@holdfast/kit/app-error';
import { rate } from '@holdfast/kit/limits';
import type { Log } from '@holdfast/kit/log';
import { withFallback } from '@holdfast/kit/timeout';
import type { Presence, PresenceLog } from '../model/stream.ts';
import type { RunSql } from '../store/certificates.ts';
import { type GroupVectors, groupVectors } from '../store/group-vectors.ts';
import { type PresenceRow, presenceStore, type PresenceStore } from '../store/presence.ts';
import { pauses } from './pauses.ts';
import { settle } from './settle.ts';

export interface EndingPresenceLog extends PresenceLog {
  /** Writes what is waiting, for at most so long. */
  close(graceMs: number): Promise<void>;
}

export interface PresenceLogParts {
  now?: () => Date;
  vectors?: GroupVectors;
  store?: PresenceStore;
  mostWaiting?: number;
}

const MOST_WAITING = 10_000;
const BATCH = 200;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** Of one person: all phones behind one account may come back at once, and nothing ever deletes these rows. */
const COMING_RATE = { burst: 1_000, perSecond: 1 };
const TOLD_EVERY_MS = 60_000;
const STOPPED = 'the core was stopped';

/** Before anything else it writes that whoever was there at a crash has gone; begins at once. */
export function createPresenceLog(run: RunSql, log: Log, parts: PresenceLogParts = {}): EndingPresenceLog {
  const { now = () => new Date(), vectors = groupVectors(run), mostWaiting = MOST_WAITING } = parts;
  const store = parts.store ?? presenceStore(run, vectors);
  const startedAt = now();
  const rest = pauses();
  let waiting: PresenceRow[] = [];
  /** Taken out of the line, and not yet known to be written. */
  let onTheWay = 0;
  let failures = 0;
  let lost = 0;
  const mayCome = rate({ ...COMING_RATE, now });
  const passedOver = new WeakSet<Presence>();
  let toldAtMs = Number.NEGATIVE_INFINITY;
  let isClosed = false;
  let working: Promise<void> | undefined;

  async function isAway(error: unknown): Promise<boolean> {
    if (failures === 0) log.warn('presence.behind', { waiting: waiting.length + onTheWay, error: messageOf(error) });
    await rest.after(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures++));
    return !isClosed;
  }

  function worked(): void {
    if (failures > 0) log.info('presence.caught_up', { waiting: waiting.length, lost_since_start: lost });
    failures = 0;
  }

  /** Rule `presenceGoesOn`: if the tables cannot be put right, what comes is written all the same. */
  async function everybodyWent(): Promise<void> {
    await settle([startedAt], {
      write: () => store.everybodyWent(startedAt),
      stored: worked,
      refused: (_, reason) => log.error('presence.not_ended', { reason }),
      away: isAway,
    });
  }

  async function write(batch: readonly PresenceRow[], again: boolean): Promise<void> {
    const missing = batch.filter(({ id }) => id === undefined);
    const ids = missing.length === 0 ? [] : await store.ids(missing.length);
    missing.forEach((row, at) => Object.assign(row, { id: ids[at] }));
    await store.write(batch, again);
  }

  async function workOff(): Promise<void> {
    while (waiting.length > 0 && !isClosed) {
      const batch = waiting.splice(0, BATCH);
      onTheWay = batch.length;
      await settle(batch, { write, stored: wasWritten, refused: wasRefused, away: isAway });
    }
    working = undefined;
  }

  function wasWritten(batch: readonly PresenceRow[]): void {
    if (isClosed) return;
    onTheWay -= batch.length;
    worked();
  }

  function wasRefused(_: PresenceRow, reason: string): void {
    if (isClosed) return;
    onTheWay--;
    lose(1, reason);
  }

  function lose(rows: number, reason: string): void {
    lost += rows;
    log.error('presence.lost', { rows, reason, since_start: lost });
  }

  /** Each time it gets rid of half at least, so that a flood costs nothing. */
  function makeRoom(): void {
    const newest = new Map<string, PresenceRow>();
    for (const row of waiting) {
      newest.delete(row.who.uid);
      newest.set(row.who.uid, row);
    }
    const before = waiting.length;
    waiting = [...newest.values()].slice(-Math.floor(mostWaiting / 2));
    lose(before - waiting.length, 'more were waiting than can be kept');
  }

  function passOver(who: Presence): void {
    passedOver.add(who);
    const atMs = now().getTime();
    if (Math.abs(atMs - toldAtMs) < TOLD_EVERY_MS) return;
    toldAtMs = atMs;
    log.warn('presence.too_often', { user: who.username, consequence: 'what comes too often is not in the tables' });
  }

  function add(row: PresenceRow): void {
    if (isClosed) return lose(1, STOPPED);
    waiting.push(row);
    if (waiting.length > mostWaiting) makeRoom();
    working ??= workOff();
  }

  working = everybodyWent().then(workOff);
  return {
    came(who, at) {
      if (mayCome(who.username)) add({ who, at, kind: 'Connected' });
      else passOver(who);
    },
    went(who, at) {
      if (!passedOver.has(who)) add({ who, at, kind: 'Disconnected' });
    },

    async close(graceMs) {
      rest.cutShort();
      await withFallback(graceMs, undefined, working ?? Promise.resolve());
      isClosed = true;
      rest.cutShort();
      const left = waiting.length + onTheWay;
      if (left > 0) lose(left, STOPPED);
    },
  };
}
