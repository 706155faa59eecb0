// Stores the retention history in our own database.

import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Sql } from '@holdfast/kit/postgres';
import type { RetentionHistory, RetentionRun } from './port.ts';

type RunRow = Omit<RetentionRun, 'startedAt' | 'finishedAt'> & { startedAt: Date; finishedAt: Date | null };

const MAX_RUNS = 1000;
/** Without the added one: a statement does not see its own row. */
const OLDER_IN_FORCE_KEPT = 99;

export function retentionHistoryTable(run: RunSql): RetentionHistory {
  return { ...retentionRuns(run), ...policiesInForce(run), ...rowsPerDay(run) };
}

function retentionRuns(run: RunSql): Pick<RetentionHistory, 'keepRuns' | 'runs' | 'lastDone'> {
  return {
    async keepRuns(runs) {
      if (runs.length === 0) return;
      const given = JSON.stringify(oneOfEach(runs));
      await run(
        (sql) => sql`
          WITH given AS (
            SELECT * FROM json_to_recordset(${given}::text::json) AS run (id text, source text, trigger text, state text,
              "startedAt" timestamptz, "finishedAt" timestamptz, limits jsonb, rows jsonb, included jsonb,
              expected float8, bytes float8, error text)
          ), too_old AS (
            SELECT id FROM (
              SELECT id, "startedAt" AS started_at FROM given
              UNION ALL SELECT id, started_at FROM retention_run WHERE id NOT IN (SELECT id FROM given)
            ) every ORDER BY started_at DESC, id DESC OFFSET ${MAX_RUNS}
          ), removed AS (
            DELETE FROM retention_run WHERE id IN (SELECT id FROM too_old)
          )
          INSERT INTO retention_run AS known
            (id, source, trigger, state, started_at, finished_at, limits, rows, included, expected, bytes, error)
          SELECT id, source, trigger, state, "startedAt", "finishedAt", limits, rows, included, expected::bigint, bytes::bigint, error
          FROM given WHERE id NOT IN (SELECT id FROM too_old) ORDER BY id
          ON CONFLICT (id) DO UPDATE SET source = excluded.source, trigger = excluded.trigger, state = excluded.state,
            started_at = excluded.started_at, finished_at = excluded.finished_at, limits = excluded.limits, rows = excluded.rows,
            included = excluded.included, expected = excluded.expected, bytes = excluded.bytes, error = excluded.error
          WHERE known.state = 'running' OR excluded.state <> 'running'`,
      );
    },

    async runs(offset, limit) {
      const [results, [all]] = await run((sql) =>
        Promise.all([
          sql<RunRow[]>`
            SELECT ${runColumns(sql)} FROM retention_run ORDER BY started_at DESC, id DESC OFFSET ${offset} LIMIT ${limit}`,
          sql<[{ count: number }]>`SELECT count(*)::int AS count FROM retention_run`,
        ]),
      );
      return { results: results.map(retentionRun), count: all.count };
    },

    async lastDone() {
      const [row] = await run(
        (sql) => sql<RunRow[]>`
          SELECT ${runColumns(sql)} FROM retention_run WHERE state = 'done' ORDER BY started_at DESC, id DESC LIMIT 1`,
      );
      return row && retentionRun(row);
    },
  };
}

function policiesInForce(run: RunSql): Pick<RetentionHistory, 'seenInForce'> {
  return {
    async seenInForce(now, { policy, schedule }) {
      const policyText = JSON.stringify(policy);
      const since = await run((sql) =>
        sql.begin(async (tx) => {
          // Two processes that see the same change agree on the time of the first.
          await tx`SELECT pg_advisory_xact_lock(hashtextextended('retention_in_force', 0))`;
          const [newest] = await tx<{ since: Date; same: boolean }[]>`
            SELECT since, policy = ${policyText}::text::jsonb AND schedule = ${schedule} AS same
            FROM retention_in_force ORDER BY since DESC LIMIT 1`;
          if (newest?.same === true) return newest.since;
          const [added] = await tx<{ since: Date }[]>`
            INSERT INTO retention_in_force (since, policy, schedule)
            VALUES (greatest(${now}::timestamptz, ${newest?.since ?? null}::timestamptz + interval '1 ms'),
              ${policyText}::text::jsonb, ${schedule}) RETURNING since`;
          await tx`
            DELETE FROM retention_in_force
            WHERE since < (SELECT since FROM retention_in_force ORDER BY since DESC LIMIT 1 OFFSET ${OLDER_IN_FORCE_KEPT})`;
          return added?.since;
        }),
      );
      return since?.toISOString() ?? now;
    },
  };
}

function rowsPerDay(run: RunSql): Pick<RetentionHistory, 'keepDays' | 'days'> {
  return {
    async keepDays(type, from, to, days) {
      await run(
        (sql) => sql`
          WITH given AS (
            SELECT * FROM json_to_recordset(${JSON.stringify(days)}::text::json) AS counted (day date, rows float8)
          ), removed AS (
            DELETE FROM retention_day WHERE type = ${type} AND day >= ${from}::text::date AND day < ${to}::text::date
              AND day NOT IN (SELECT day FROM given)
          )
          INSERT INTO retention_day (type, day, rows) SELECT ${type}, day, rows::bigint FROM given
          ON CONFLICT (type, day) DO UPDATE SET rows = excluded.rows, counted_at = excluded.counted_at`,
      );
    },

    async days(type) {
      const rows = await run(
        (sql) => sql<{ day: string; rows: number; countedAt: Date }[]>`
          SELECT to_char(day, 'YYYY-MM-DD') AS day, rows::float8 AS rows, counted_at AS "countedAt"
          FROM retention_day WHERE type = ${type} ORDER BY retention_day.day`,
      );
      return { days: rows.map((row) => ({ ...row, countedAt: row.countedAt.toISOString() })) };
    },
  };
}

/**
 * A statement may touch a row only once. Of duplicate runs, the ended one counts, else the last.
 */
function oneOfEach(runs: readonly RetentionRun[]): RetentionRun[] {
  const byId = new Map<string, RetentionRun>();
  for (const each of runs) {
    const known = byId.get(each.id)?.state ?? 'running';
    if (known === 'running' || each.state !== 'running') byId.set(each.id, { ...each, error: textOf(each.error) });
  }
  return [...byId.values()];
}

/** PostgreSQL accepts no other text, and a log may contain anything. */
function textOf(error: string | null): string | null {
  return error === null ? null : error.toWellFormed().replaceAll('\0', '');
}

function runColumns(sql: Sql) {
  return sql`id, source, trigger, state, started_at AS "startedAt", finished_at AS "finishedAt", limits, rows, included,
    expected::float8 AS expected, bytes::float8 AS bytes, error`;
}

function retentionRun(row: RunRow): RetentionRun {
  const times: Pick<CoreRetentionRun, 'startedAt' | 'finishedAt'> = {
    startedAt: row.startedAt.toISOString(),
    finishedAt: row.finishedAt?.toISOString() ?? null,
  };
  return { ...row, ...times };
}
