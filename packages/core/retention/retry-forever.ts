// Retries work with growing pauses while the database is unavailable or locked.

import { AppError, codeOf } from '@holdfast/kit/app-error';
import { HOUR_MS } from '@holdfast/kit/time';

export interface Patience {
  firstPauseMs: number;
  maxPauseMs: number;
  /** After so long it is given up. */
  forMs: number;
  /** The same while a table is locked: VACUUM FULL of a large one takes hours. */
  lockedForMs: number;
}

export const PATIENCE: Patience = {
  firstPauseMs: 250,
  maxPauseMs: 15_000,
  forMs: 300_000,
  lockedForMs: 6 * HOUR_MS,
};

/** Serialization, deadlock, a row that points at an event since this moment. */
const MAY_PASS = new Set(['40001', '40P01', '23503']);
const LOCK_NOT_AVAILABLE = '55P03';
const MAX_OWN = 5;

/** `again` is called before each further try. `pause` rejects when the run is to stop. */
export async function retryForever<T>(
  work: () => Promise<T>,
  again: () => Promise<void>,
  pause: (ms: number) => Promise<void>,
  { firstPauseMs, maxPauseMs, forMs, lockedForMs }: Patience,
): Promise<T> {
  let [waitedMs, lockedMs, tries] = [0, 0, 0];
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
    try {
      if (waitedMs + lockedMs > 0) await again();
      return await work();
    } catch (error) {
      const isLocked = codeOf(error) === LOCK_NOT_AVAILABLE;
      if (!isLocked) tries += 1;
      const mayGoOn = isLocked
        ? lockedMs < lockedForMs
        : waitedMs < forMs && (isUnavailable(error) || (isPassing(error) && tries < MAX_OWN));
      if (!mayGoOn) throw error;
      await pause(pauseMs);
      if (isLocked) lockedMs += pauseMs;
      else waitedMs += pauseMs;
    }
  }
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable';
}

function isPassing(error: unknown): boolean {
  return MAY_PASS.has(codeOf(error) ?? '');
}
