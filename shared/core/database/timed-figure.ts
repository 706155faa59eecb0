// Counts rows of large tables within a time limit: the server cancels statements that take longer
// or wait for a lock.

import { codeOf } from '@holdfast/kit/app-error';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Sql, TransactionSql } from '@holdfast/kit/postgres';

/** SQLSTATE of a canceled statement, and of one that did not get its lock. */
const NOT_IN_TIME = new Set(['57014', '55P03']);

export interface Figures {
  /**
   * One statement, which may use all the time that is left; undefined when it did not finish in
   * time.
   */
  ask<T>(question: (sql: TransactionSql) => Promise<T>): Promise<T | undefined>;
  /**
   * Total rows of that table, from the catalog and the statistics; waits for no lock, and always
   * returns.
   */
  rowsOf(table: string): Promise<number>;
}

/** All of them together take `withinMs`: those that wait for a connection have less left. */
export function figuresWithin(run: RunSql, withinMs: number): Figures {
  const until = performance.now() + withinMs;
  const inTurn = onFewConnections(run);

  return {
    ask: (question) =>
      inTurn((sql) =>
        unlessLate(() =>
          sql.begin('READ ONLY', async (tx) => {
            const left = Math.floor(until - performance.now());
            if (left <= 0) return undefined;
            // Plans for these exact values: the age limit decides which one is good. Compiling one
            // takes longer than it saves.
            await tx`SELECT set_config('statement_timeout', ${String(left)}, true),
              set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true)`;
            return question(tx);
          }),
        ),
      ) as Promise<Awaited<ReturnType<typeof question>> | undefined>,

    rowsOf: (table) =>
      inTurn(async (sql) => {
        const [row] = await sql<{ rows: number }[]>`
          SELECT CASE WHEN reltuples > 0 THEN reltuples ELSE pg_stat_get_live_tuples(oid) END::float8 AS rows
          FROM pg_class WHERE oid = to_regclass(${table})`;
        return row?.rows ?? 0;
      }),
  };
}

const CONNECTIONS = 3;

interface Waiting {
  work(sql: Sql): Promise<void>;
  fail(error: unknown): void;
}

/** Runs in order, each as soon as a connection is free: most callers need only one. */
function onFewConnections(run: RunSql): RunSql {
  const waiting: Waiting[] = [];
  let connections = 0;

  async function connection(): Promise<void> {
    let current: Waiting | undefined;
    connections++;
    try {
      await run(async (sql) => {
        for (current = waiting.shift(); current !== undefined; current = waiting.shift()) await current.work(sql);
      });
    } catch (error) {
      current?.fail(error);
      for (const each of waiting.splice(0)) each.fail(error);
    } finally {
      connections--;
      // Some may have arrived while it was closing.
      if (waiting.length > 0) void connection();
    }
  }

  return (use) =>
    new Promise((resolve, reject) => {
      waiting.push({ work: async (sql) => resolve(await use(sql)), fail: reject });
      if (connections < CONNECTIONS) void connection();
    });
}

async function unlessLate<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (NOT_IN_TIME.has(codeOf(error) ?? '')) return undefined;
    throw error;
  }
}
