// Allows one writer per key: in this process through a queue, between processes through an advisory
// lock in our own database.

import { AppError } from '@holdfast/kit/app-error';
import { limitConcurrency, serializeByKey } from '@holdfast/kit/concurrency';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Exclusive } from './port.ts';

/**
 * The first half of the lock's name; the other half is a hash of the key. Keys with the same hash
 * wait for each other.
 */
const NAMESPACE = 4_805_727;
/**
 * Locks held or waited for at once: one less than the pool's connections, so that `work` finds one
 * for itself.
 */
const CONCURRENCY = 2;
const WAIT_MS = 15_000;

export interface ExclusiveOptions {
  /** Pieces of work at once, of all keys; must be less than the connections of the pool. */
  concurrency?: number;
  /** How long one waits for others in this process, in milliseconds. */
  waitMs?: number;
  /**
   * False in workerd, where no request may wait for another: there the lock alone keeps the order.
   * Default: true.
   */
  queued?: boolean;
}

/**
 * One for each pool of connections.
 *
 * `run` limits the wait for other processes, and must allow for the longest `work`: the lock is
 * that of a transaction that stays open meanwhile. When the connection dies or the time is over
 * while `work` runs, the server gives the lock to the next process, but `work` continues and the
 * caller gets its result: that is the truth about the outside system. Only then can two processes
 * write at once; those of this process cannot. Does not deadlock, whatever the number of keys: the
 * holder of a lock waits for nothing but its own work.
 */
export function exclusiveByDatabase(
  run: RunSql,
  { concurrency = CONCURRENCY, waitMs = WAIT_MS, queued = true }: ExclusiveOptions = {},
): Exclusive {
  if (!queued) return (key, work) => locked(run, key, work);
  const wait = { ms: waitMs, late: () => tooLong(waitMs) };
  const inTurn = serializeByKey(wait);
  const inSlot = limitConcurrency(concurrency, wait);
  return (key, work) => inTurn(key, () => inSlot(() => locked(run, key, work)));
}

/** Does `work` under the lock. */
async function locked<T>(run: RunSql, key: string, work: () => Promise<T>): Promise<T> {
  let begun: Promise<T> | undefined;
  let gaveUp = false;
  try {
    await run((sql) =>
      sql.begin(async (transaction) => {
        await transaction`SELECT pg_advisory_xact_lock(${NAMESPACE}::int, hashtext(${key}))`;
        // The server may grant the lock after our time is over.
        if (gaveUp) return;
        begun = (async () => work())();
        await begun.catch(() => undefined);
      }),
    );
  } catch (error) {
    gaveUp = true;
    if (begun === undefined) throw error;
  }
  if (begun === undefined) throw new Error('the work did not start');
  // Also after a lost connection: in this process, no other work starts before this work has ended.
  return begun;
}

function tooLong(waitMs: number): AppError {
  const text = `Other changes did not finish within ${waitMs / 1000} s; nothing was changed. Try again later.`;
  return new AppError('unavailable', text);
}
