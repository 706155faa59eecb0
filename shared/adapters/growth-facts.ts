// How large the core's tables are, and what filled those of events, chat and files. Nothing waits for a lock longer than its
// connection allows, and what fills is found out within two seconds or not at all.

import { AppError } from '../domain/app-error.ts';
import { codeOf } from '../domain/thrown.ts';
import type { Fillers, GrowthFacts, TableSize } from '../ports/growth-facts.ts';
import { arrivals, FILLED_TABLES, type Arrival, type TimedQuery } from './arrived-rows.ts';
import { callsignsOf } from './filler-callsigns.ts';
import type { RunSql } from './kept-database.ts';
import { largestFillers } from './largest-fillers.ts';
import type { Sql } from './postgres.ts';
import { bytesOfOwn, seeingLocks, withOwnTables } from './table-sizes.ts';
import { withinMs } from './time-limit.ts';

const FILLERS_WITHIN_MS = 2_000;
/** What is left then is for the way there and back. */
const FOR_STATEMENTS = 0.9;
const LONGEST_SECONDS = 86_400;
/** Of a statement that was stopped, and of one that did not get its lock. */
const NOT_IN_TIME = new Set(['57014', '55P03']);

export function growthFacts(run: RunSql, options: { withinMs?: number } = {}): GrowthFacts {
  const { withinMs: limitMs = FILLERS_WITHIN_MS } = options;
  return {
    tables: () => run(readTables),
    fillers: (seconds) =>
      withinMs(
        limitMs,
        run((sql) => readFillers(sql, Math.min(Math.max(seconds, 1), LONGEST_SECONDS), limitMs)),
        () => notInTime(limitMs),
      ),
  };
}

async function readTables(sql: Sql): Promise<TableSize[]> {
  const rows = await seeingLocks(
    () => sql<TableSize[]>`
      WITH ${withOwnTables(sql)}, measured AS (
        SELECT nspname AS schema, relname AS table, ${bytesOfOwn(sql)}::float8 AS bytes,
          pg_stat_get_live_tuples(oid)::float8 AS rows
        FROM own)
      SELECT * FROM measured WHERE bytes IS NOT NULL ORDER BY bytes DESC, schema, "table"`,
  );
  return rows.map((row) => ({ ...row }));
}

async function readFillers(sql: Sql, seconds: number, limitMs: number): Promise<Fillers> {
  const until = performance.now() + limitMs * FOR_STATEMENTS;
  try {
    return await sql.begin('READ ONLY', async (tx) => {
      const timed: TimedQuery = async (question) => {
        const left = Math.floor(until - performance.now());
        if (left <= 0) throw notInTime(limitMs);
        // By an index or not at all, whatever the planner thinks of the table.
        await tx`
          SELECT set_config('statement_timeout', ${String(left)}, true), set_config('jit', 'off', true),
            set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
            set_config('max_parallel_workers_per_gather', '0', true),
            set_config('plan_cache_mode', 'force_custom_plan', true)`;
        return question(tx);
      };
      const all: Arrival[] = [];
      for (const table of FILLED_TABLES) all.push(...(await arrivals(timed, table, seconds)));
      const fillers = largestFillers(all, seconds);
      const callsigns = await callsignsOf(timed, fillers.newest);
      const uids = fillers.uids.map((each) => ({ ...each, callsign: callsigns.get(each.name) ?? null }));
      return { ...fillers.found, uids };
    });
  } catch (error) {
    throw NOT_IN_TIME.has(codeOf(error) ?? '') ? notInTime(limitMs, error) : error;
  }
}

function notInTime(limitMs: number, cause?: unknown): AppError {
  const seconds = limitMs / 1000;
  const text = `What fills the core's database was not found out within ${seconds} s: it is overloaded, or something holds a lock`;
  return new AppError('unavailable', text, { cause });
}
