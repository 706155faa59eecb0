// A piece of work that is tried again while the database is away or in its own way, with growing pauses.

import { AppError } from '../../../../shared/domain/app-error.ts';
import { codeOf } from '../../../../shared/domain/thrown.ts';

export interface Patience {
  firstPauseMs: number;
  longestPauseMs: number;
  /** After so long it is given up. */
  forMs: number;
}

export const PATIENCE: Patience = { firstPauseMs: 250, longestPauseMs: 15_000, forMs: 300_000 };

/** Serialization, deadlock, a lock that was not to be had, a row that points at an event since this moment. */
const MAY_PASS = new Set(['40001', '40P01', '55P03', '23503']);
const MOST_OF_ITS_OWN = 5;

/** `again` is called before each further try. `pause` rejects when the run is to stop. */
export async function persistently<T>(
  work: () => Promise<T>,
  again: () => Promise<void>,
  pause: (ms: number) => Promise<void>,
  { firstPauseMs, longestPauseMs, forMs }: Patience,
): Promise<T> {
  let waitedMs = 0;
  let tries = 0;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      if (tries > 0) await again();
      return await work();
    } catch (error) {
      tries += 1;
      if (waitedMs >= forMs || !(isAway(error) || (isPassing(error) && tries < MOST_OF_ITS_OWN))) throw error;
      await pause(pauseMs);
      waitedMs += pauseMs;
    }
  }
}

export function isAway(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable';
}

function isPassing(error: unknown): boolean {
  return MAY_PASS.has(codeOf(error) ?? '');
}
