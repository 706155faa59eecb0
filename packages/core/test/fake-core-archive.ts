// Events for the archive, and an honest store of them in memory whose mood can be changed.

import { AppError } from '@holdfast/kit/app-error';
import type { Archive, ArchivedEvent } from '../model/stream.ts';
import type { CotWriter } from '../store/cot-events.ts';
import type { Loss, LossStore } from '../store/tables.ts';
import type { UnwrittenLoss, UnwrittenLosses } from '../archive/losses.ts';

/** 2026-11-22T05:30:00Z */
export const RECEIVED_MS = Date.UTC(2026, 10, 22, 5, 30);
export const PLACES: readonly number[] = [2, 5];

/** Of the events `from` until before `to`. */
export const uids = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, n) => `u${from + n}`);

export function archivedEvent(input: Partial<ArchivedEvent> = {}): ArchivedEvent {
  return {
    sender: 'ada',
    uid: 'ANDROID-1',
    type: 'a-f-G-U-C',
    how: 'm-g',
    access: undefined,
    qos: undefined,
    opex: undefined,
    caveat: undefined,
    releaseableTo: undefined,
    time: '2026-11-22T05:30:00Z',
    start: '2026-11-22T05:29:59.123Z',
    stale: '2026-11-22T06:30:00Z',
    point: { lat: 48.25, lon: 11.5, hae: 512.5, ce: 9_999_999, le: 9_999_999 },
    detail: '<detail><contact callsign="Ada"/></detail>',
    receivedAtMs: RECEIVED_MS + 7,
    places: PLACES,
    ...input,
  };
}

export interface MemoryCot extends CotWriter {
  /** `lost`: it works, and its answer does not arrive. */
  mood: 'good' | 'away' | 'lost';
  /** Uids by id. */
  rows: Map<string, string>;
  /** Uids that it refuses. */
  refused: Set<string>;
  /** Waits for this before each write. */
  gate: Promise<void>;
  writes: number;
}

export function memoryCot(): MemoryCot {
  let last = 100;
  const unavailable = (): AppError => new AppError('unavailable', "The core's database does not answer");
  const cot: MemoryCot = {
    mood: 'good',
    rows: new Map(),
    refused: new Set(),
    gate: Promise.resolve(),
    writes: 0,
    async ids(count) {
      if (cot.mood === 'away') throw unavailable();
      return Array.from({ length: count }, () => String(++last));
    },
    async write(rows, again) {
      await cot.gate;
      cot.writes++;
      if (cot.mood === 'away') throw unavailable();
      if (rows.some(({ event }) => cot.refused.has(event.uid)))
        throw Object.assign(new Error('new row for "cot_router" violates it'), { code: '23514' });
      const all = rows.flatMap(({ ids, event }) => ids.map((id) => [id, event.uid] as const));
      if (!again && all.some(([id]) => cot.rows.has(id))) throw Object.assign(new Error('twice'), { code: '23505' });
      for (const [id, uid] of all) cot.rows.set(id, uid);
      if (cot.mood === 'lost') throw unavailable();
    },
  };
  return cot;
}

/** In place of the file. */
export function memoryUnwritten(): UnwrittenLosses {
  let kept: readonly UnwrittenLoss[] = [];
  return { read: () => [...kept], keep: (losses) => void (kept = losses.map((loss) => ({ ...loss }))) };
}

export function memoryLosses(): LossStore & { rows: Map<number, Loss> } {
  const rows = new Map<number, Loss>();
  let last = 0;
  return {
    rows,
    id: async () => ++last,
    save: async (loss) => void rows.set(loss.id, { ...loss }),
  };
}

/** It takes everything and keeps nothing. */
export function emptyArchive(): Archive {
  return {
    store: () => undefined,
    isFullFor: () => false,
    onRoom: () => undefined,
    counts: () => ({ waiting: 0, capacity: 1, stored: 0, skipped: 0, lost: 0 }),
    close: async () => undefined,
  };
}
