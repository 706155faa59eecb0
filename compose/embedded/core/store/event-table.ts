// The way of requests to the tables of events. One may be locked for minutes, by VACUUM FULL: on connections of their own what waits
// for it keeps nothing else waiting, and once one has met the lock the next ones are refused for a moment without trying.

import { AppError } from '../../../../shared/domain/app-error.ts';
import { codeOf } from '../../../../shared/domain/thrown.ts';
import type { RunSql } from './certificates.ts';

class EventsLocked extends AppError {
  constructor(cause?: unknown) {
    super('unavailable', 'The table of events is locked: it is being rewritten (VACUUM FULL) or changed.', { cause });
  }
}

const LOCK_NOT_AVAILABLE = '55P03';
const RESTS_MS = 2_000;

/** `run` gives up waiting for a lock well before its time is over. Rejects with EventsLocked then. */
export function eventTable(run: RunSql, steadyMs: () => number): RunSql {
  let untilMs = Number.NEGATIVE_INFINITY;

  return async function runUnlocked(use) {
    if (steadyMs() < untilMs) throw new EventsLocked();
    try {
      return await run(use);
    } catch (error) {
      if (codeOf(error) !== LOCK_NOT_AVAILABLE) throw error;
      untilMs = steadyMs() + RESTS_MS;
      throw new EventsLocked(error);
    }
  };
}

/** What is shown of events is left out while their table is locked; the rest must go on. */
export async function unlessLocked<T>(whole: () => Promise<T>, without: () => Promise<T>): Promise<T> {
  try {
    return await whole();
  } catch (error) {
    if (error instanceof EventsLocked) return without();
    throw error;
  }
}
