// Counts failed sign-ins together with the other processes over our own database. While it does not
// answer, this process counts alone. Node only.

import { AppError } from '@holdfast/kit/app-error';
import { createLockout, DEFAULT_RULE, type LockoutState } from '@holdfast/kit/lockout';
import type { RunSql } from '@holdfast/kit/kept-database';
import { CircuitBreaker } from '@holdfast/kit/timeout';

/** What all processes know of one address. */
export interface SharedFailures {
  address: string;
  /** How long ago each failure was, oldest first; empty when the address was released. */
  failedMsAgo: number[];
  /** How long the address is still locked; null: not locked. */
  lockedForMs: number | null;
}

/** Every call rejects with an AppError `unavailable` if our own database is unavailable. */
export interface FailureTable {
  /**
   * Counts a failure. Resolves with the state that follows; `counted` is false if the address was
   * locked already.
   */
  failed(address: string): Promise<SharedFailures & { counted: boolean }>;
  /** What has changed within that time; undefined: everything that still counts. */
  changed(withinMs: number | undefined): Promise<SharedFailures[]>;
  /** False if nothing counted against the address. */
  release(address: string): Promise<boolean>;
}

export interface LockoutsOptions {
  /** Undefined: this process counts alone. */
  table: FailureTable | undefined;
  /** A monotonic clock in milliseconds. */
  steadyMs: () => number;
}

/** What another process counted holds here after this time: one second is promised. */
const BELIEVED_MS = 500;
/** A hanging database delays a sign-in for at most this long, then no more until it answers. */
const WITHIN_MS = 1_500;
const PAUSE_MS = 1_000;
/** Addresses whose failures wait for the database; the oldest is dropped when there are more. */
const MAX_UNCOUNTED = 1_000;
/** Longer than a commit takes to be seen; after a longer gap, everything is read. */
const OVERLAP_MS = 10_000;

export class Lockouts {
  readonly #table: LockoutsOptions['table'];
  readonly #steadyMs: LockoutsOptions['steadyMs'];
  readonly #database: CircuitBreaker;
  readonly #lockout = createLockout();
  #requestedMs = -Infinity;
  #readMs = -Infinity;
  #reading: Promise<void> | undefined;
  /**
   * Addresses that changed here while the table is read: what is read of them is older. Undefined
   * while it is not read.
   */
  #changedHere: Set<string> | undefined;
  /** How many failures of an address the table does not know, because it did not answer. */
  readonly #uncounted = new Map<string, number>();
  #counting = false;

  constructor({ table, steadyMs }: LockoutsOptions) {
    this.#table = table;
    this.#steadyMs = steadyMs;
    this.#database = new CircuitBreaker({ withinMs: WITHIN_MS, pauseMs: PAUSE_MS, steadyMs });
  }

  /** True if no address is locked. */
  isFree(): boolean {
    return this.#lockout.isFree();
  }

  check(address: string): LockoutState {
    return this.#lockout.check(address, this.#steadyMs());
  }

  /** How many more failures lock the address. */
  left(address: string): number {
    return this.#lockout.left(address, this.#steadyMs());
  }

  list(): ReturnType<ReturnType<typeof createLockout>['list']> {
    return this.#lockout.list(this.#steadyMs());
  }

  /** False if another process may have locked an address more than half a second ago. */
  isCurrent(): boolean {
    if (this.#table === undefined || this.#database.isPaused()) return true;
    return this.#steadyMs() - this.#requestedMs <= BELIEVED_MS;
  }

  /** Learns what other processes counted, at most half a second old. Never rejects. */
  async current(): Promise<void> {
    if (this.#table === undefined || this.#database.isPaused()) return;
    if (this.#changedHere === undefined && !this.isCurrent()) {
      this.#requestedMs = this.#steadyMs();
      this.#reading = this.#read(this.#table, this.#requestedMs);
    }
    if (!this.#database.isOpen()) await this.#reading;
  }

  async #read(table: FailureTable, now: number): Promise<void> {
    const changedHere = new Set<string>();
    this.#changedHere = changedHere;
    const gapMs = now - this.#readMs;
    const rows = await this.#database.answered(table.changed(gapMs > OVERLAP_MS / 2 ? undefined : OVERLAP_MS));
    this.#changedHere = undefined;
    if (rows === undefined) return;
    this.#readMs = now;
    for (const row of rows) if (!changedHere.has(row.address)) this.#adopt(row);
    void this.#countInTable(table);
  }

  /** Tells the table what this process counted alone. Never rejects. */
  async #countInTable(table: FailureTable): Promise<void> {
    if (this.#counting) return;
    this.#counting = true;
    for (const address of this.#uncounted.keys()) if (!(await this.#countOne(table, address))) break;
    this.#counting = false;
  }

  /** False if the database does not answer. */
  async #countOne(table: FailureTable, address: string): Promise<boolean> {
    let shared: SharedFailures | undefined;
    for (let count = this.#countedAlone(address); count > 0; count--) {
      this.#uncounted.set(address, count);
      shared = await this.#database.answered(table.failed(address));
      if (shared === undefined) return false;
      if (!this.#uncounted.has(address)) return true;
      if (shared.lockedForMs !== null) break;
    }
    this.#uncounted.delete(address);
    this.#changedHere?.add(address);
    if (shared !== undefined) this.#adopt(shared);
    return true;
  }

  /** How many failures the table must still learn. One locked here shall be locked there. */
  #countedAlone(address: string): number {
    const uncounted = this.#uncounted.get(address) ?? 0;
    const left = this.left(address);
    if (uncounted === 0 || left === 0) return uncounted && DEFAULT_RULE.failures;
    return Math.min(uncounted, DEFAULT_RULE.failures - left);
  }

  #rememberUncounted(address: string): void {
    this.#uncounted.set(address, (this.#uncounted.get(address) ?? 0) + 1);
    const [oldest] = this.#uncounted.keys();
    if (this.#uncounted.size > MAX_UNCOUNTED && oldest !== undefined) this.#uncounted.delete(oldest);
  }

  #adopt({ address, failedMsAgo, lockedForMs }: SharedFailures): void {
    if (lockedForMs === null && this.#countedAlone(address) > 0) return;
    const now = this.#steadyMs();
    const lockedUntilMs = lockedForMs === null ? undefined : now + lockedForMs;
    this.#lockout.adopt(address, { failedMs: failedMsAgo.map((ms) => now - ms), lockedUntilMs }, now);
  }

  /**
   * Counts a failure. False if another process had locked the address before, so that this guess
   * must not be answered. Never rejects.
   */
  async failed(address: string): Promise<boolean> {
    this.#changedHere?.add(address);
    this.#lockout.failed(address, this.#steadyMs());
    if (this.#table === undefined) return true;
    const shared = this.#database.isOpen() ? undefined : await this.#database.answered(this.#table.failed(address));
    this.#changedHere?.add(address);
    if (shared === undefined) this.#rememberUncounted(address);
    else this.#adopt(shared);
    return shared?.counted ?? true;
  }

  /**
   * False if nothing was known of the address. Rejects with an AppError `unavailable` if only this
   * process has released it.
   */
  async release(address: string): Promise<boolean> {
    this.#uncounted.delete(address);
    const here = this.#lockout.release(address);
    this.#changedHere?.add(address);
    try {
      const shared = (await this.#table?.release(address)) ?? false;
      this.#changedHere?.add(address);
      return this.#lockout.release(address) || here || shared;
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable') throw error;
      const text = `${error.message.replace(/\.$/, '')}. ${address} is unlocked in this process only, and until the database answers. Remedy: unlock it again then.`;
      throw new AppError('unavailable', text, { cause: error });
    }
  }
}

interface FailureRow {
  address: string;
  failed_ms_ago: number[];
  locked_for_ms: number | null;
}

/** The most addresses that are read at once. */
const MAX_READ = 10_000;
/** Rows that no longer count, removed with each failure. */
const REMOVED_AT_ONCE = 100;

/** Stores failures by the clock of the database. */
export function failureTable(run: RunSql): FailureTable {
  const { failures, withinMs, lockedMs } = DEFAULT_RULE;
  const counts = `interval '${withinMs} milliseconds'`;
  const lasts = `interval '${lockedMs} milliseconds'`;
  const columns = `address,
    to_jsonb(ARRAY(SELECT (extract(epoch FROM clock_timestamp() - at) * 1000)::float8
      FROM unnest(failed_at) AS at WHERE at > clock_timestamp() - ${counts} ORDER BY at)) AS failed_ms_ago,
    CASE WHEN locked_until > clock_timestamp()
      THEN (extract(epoch FROM locked_until - clock_timestamp()) * 1000)::float8 END AS locked_for_ms`;

  return {
    async failed(address) {
      const rows = await run(
        (sql) => sql<(FailureRow & { counted: boolean })[]>`
          WITH past AS (
            DELETE FROM sign_in_failures WHERE address IN (
              SELECT address FROM sign_in_failures
              WHERE changed_at < clock_timestamp() - ${sql.unsafe(lasts)} AND address <> ${address}
              LIMIT ${REMOVED_AT_ONCE} FOR UPDATE SKIP LOCKED)
          ), counted AS (
            INSERT INTO sign_in_failures AS known (address, failed_at, locked_until, changed_at)
            VALUES (${address}, ARRAY[clock_timestamp()], NULL, statement_timestamp())
            ON CONFLICT (address) DO UPDATE SET (failed_at, locked_until, changed_at) = (
              SELECT CASE WHEN is_locked THEN known.failed_at WHEN cardinality(recent) >= ${failures} THEN '{}' ELSE recent END,
                CASE WHEN is_locked THEN known.locked_until
                  WHEN cardinality(recent) >= ${failures} THEN clock_timestamp() + ${sql.unsafe(lasts)} END,
                CASE WHEN is_locked THEN known.changed_at ELSE statement_timestamp() END
              FROM (
                SELECT coalesce(known.locked_until > clock_timestamp(), false) AS is_locked,
                  ARRAY(SELECT at FROM unnest(known.failed_at) AS at
                    WHERE at > clock_timestamp() - ${sql.unsafe(counts)} ORDER BY at) || clock_timestamp() AS recent
              ) AS state)
            RETURNING *
          )
          SELECT ${sql.unsafe(columns)}, changed_at = statement_timestamp() AS counted FROM counted`,
      );
      const [row] = rows;
      if (row === undefined) throw new Error('the database returned no row for a failed sign-in');
      return { ...failuresOf(row), counted: row.counted };
    },

    async changed(within) {
      const since = within ?? lockedMs;
      const rows = await run(
        (sql) => sql<FailureRow[]>`
          SELECT ${sql.unsafe(columns)} FROM sign_in_failures
          WHERE changed_at > clock_timestamp() - make_interval(secs => ${since / 1000}::float8)
          ORDER BY changed_at DESC LIMIT ${MAX_READ}`,
      );
      return rows.toReversed().map(failuresOf);
    },

    async release(address) {
      const rows = await run(
        (sql) => sql<{ counted: boolean }[]>`
          UPDATE sign_in_failures AS now SET failed_at = '{}', locked_until = NULL, changed_at = clock_timestamp()
          FROM (SELECT * FROM sign_in_failures WHERE address = ${address} FOR UPDATE) AS before
          WHERE now.address = before.address
          RETURNING coalesce(before.locked_until > clock_timestamp(), false)
            OR EXISTS (SELECT FROM unnest(before.failed_at) AS at WHERE at > clock_timestamp() - ${sql.unsafe(counts)}) AS counted`,
      );
      return rows[0]?.counted ?? false;
    },
  };
}

function failuresOf({ address, failed_ms_ago, locked_for_ms }: FailureRow): SharedFailures {
  return { address, failedMsAgo: failed_ms_ago, lockedForMs: locked_for_ms };
}
