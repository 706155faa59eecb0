// Reads facts for a vacuum from the catalog and statistics of the core's database, without waiting
// for locks. An application name counts only if its role could vacuum.

import { AppError } from '@holdfast/kit/app-error';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Sql } from '@holdfast/kit/postgres';
import { bytesOfOwn, seeingLocks, withOwnTables } from '../../core/database/table-sizes.ts';
import type { LockHolder, VacuumFacts, VacuumMarks, VacuumMode, VacuumStatement } from '../port.ts';
import { ANY_STATEMENT, outcomeOf, statementName } from './statement-name.ts';
import { readVacuumTables } from './tables.ts';

/** Needs a role with pg_monitor and pg_read_all_data. */
export function vacuumFacts(run: RunSql): VacuumFacts {
  return {
    tables: () => run((sql) => seeingLocks(() => readVacuumTables(sql))),
    marks: (schema, table) => run((sql) => seeingLocks(() => readMarks(sql, schema, table))),
    holders: (mode, schema, table) => run((sql) => readHolders(sql, mode, schema, table)),
    statement: (job) => run((sql) => mustSee(sql).then(() => readStatement(sql, job))),
    server: () => run((sql) => mustSee(sql).then(() => readServer(sql))),
  };
}

async function readMarks(sql: Sql, schema: string, table: string): Promise<VacuumMarks | undefined> {
  const [row] = await sql<VacuumMarks[]>`
    WITH ${withOwnTables(sql)}
    SELECT own.oid, c.relfilenode AS filenode, pg_stat_get_vacuum_count(own.oid)::float8 AS vacuums,
      coalesce(${bytesOfOwn(sql)}, 0)::float8 AS bytes, pg_stat_get_dead_tuples(own.oid)::float8 AS dead_tuples
    FROM own JOIN pg_class c ON c.oid = own.oid WHERE own.nspname = ${schema} AND own.relname = ${table}`;
  return row && { ...row };
}

/**
 * Locks that conflict with ShareUpdateExclusiveLock. Every lock conflicts with AccessExclusiveLock.
 */
const AGAINST_STANDARD = [
  'ShareUpdateExclusiveLock',
  'ShareLock',
  'ShareRowExclusiveLock',
  'ExclusiveLock',
  'AccessExclusiveLock',
];

/** True for roles that may vacuum: the owner of the database and its members. */
const isOwner = (sql: Sql) => sql`coalesce(pg_has_role(a.usesysid, d.datdba, 'USAGE'), false)`;

type HolderRow = Omit<LockHolder, 'since'> & { since_ms: number | null };

/**
 * An autovacuum yields to a waiting lock request in either mode, unless it prevents transaction
 * wraparound. A parallel worker's locks count as its leader's. A prepared transaction has no
 * process: its pid is 0, its application the quoted name.
 */
async function readHolders(sql: Sql, mode: VacuumMode, schema: string, table: string): Promise<LockHolder[]> {
  const rows = await sql<HolderRow[]>`
    WITH kept AS (
      SELECT coalesce(a.leader_pid, l.pid, 0) AS pid, p.gid, p.owner, p.prepared
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_locks l ON l.locktype = 'relation' AND l.granted AND (l.relation IN (c.oid, c.reltoastrelid)
          OR l.relation IN (SELECT indexrelid FROM pg_index WHERE indrelid IN (c.oid, c.reltoastrelid)))
        LEFT JOIN pg_stat_activity a ON a.pid = l.pid
        LEFT JOIN pg_locks t ON l.pid IS NULL AND t.pid IS NULL AND t.locktype = 'transactionid'
          AND t.virtualtransaction = l.virtualtransaction
        LEFT JOIN pg_prepared_xacts p ON p.transaction = t.transactionid
      WHERE n.nspname = ${schema} AND c.relname = ${table}
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (${mode === 'full'} OR l.mode IN ${sql(AGAINST_STANDARD)})
        AND l.pid IS DISTINCT FROM pg_backend_pid()
    )
    SELECT DISTINCT k.pid, coalesce(a.usename, k.owner, '') AS user,
      CASE WHEN k.pid = 0 THEN coalesce(quote_literal(k.gid), '')
        WHEN a.backend_type = 'autovacuum worker' THEN a.query ELSE coalesce(a.application_name, '') END AS application,
      (extract(epoch FROM coalesce(a.xact_start, k.prepared)) * 1000)::float8 AS since_ms
    FROM kept k LEFT JOIN pg_stat_activity a ON a.pid = k.pid LEFT JOIN pg_database d ON d.datname = current_database()
    WHERE NOT (coalesce(a.application_name, '') LIKE ${ANY_STATEMENT} AND ${isOwner(sql)})
      AND (a.backend_type IS DISTINCT FROM 'autovacuum worker' OR a.query LIKE '%(to prevent wraparound)')
    ORDER BY since_ms NULLS LAST, k.pid`;
  return rows.map(({ since_ms: ms, ...holder }) => ({
    ...holder,
    since: ms === null ? null : new Date(ms).toISOString(),
  }));
}

type Progress = Record<string, string | number | null>;

interface ActivityRow {
  pid: number;
  name: string;
  waits: boolean;
  /** PostgreSQL's progress row, in the format of its version. */
  progress: Progress | null;
}

/**
 * A connection idles briefly between statement and outcome. If longer, its process has died without
 * closing it.
 */
const MAX_IDLE_SECONDS = 10;

/**
 * A running statement comes before ended ones, of which the newest counts. Index workers have the
 * same name.
 */
async function readStatement(sql: Sql, job: string): Promise<VacuumStatement | undefined> {
  const rows = await sql<ActivityRow[]>`
    SELECT a.pid, a.application_name AS name, coalesce(a.wait_event_type = 'Lock', false) AS waits,
      coalesce(to_jsonb(v), to_jsonb(c), to_jsonb(y)) AS progress
    FROM pg_stat_activity a JOIN pg_database d ON d.oid = a.datid
      LEFT JOIN pg_stat_progress_vacuum v ON v.pid = a.pid
      LEFT JOIN pg_stat_progress_cluster c ON c.pid = a.pid
      LEFT JOIN pg_stat_progress_analyze y ON y.pid = a.pid
    WHERE d.datname = current_database() AND a.application_name LIKE ${ANY_STATEMENT} AND ${isOwner(sql)}
      AND a.backend_type = 'client backend'
      AND (a.application_name <> ${statementName(job)} OR a.state <> 'idle'
        OR a.state_change > clock_timestamp() - make_interval(secs => ${MAX_IDLE_SECONDS}))
    ORDER BY a.state_change DESC`;
  const shown = rows.flatMap((row) => viewOf(row, outcomeOf(job, row.name)));
  return shown.find(({ state }) => state === 'running') ?? shown[0];
}

function viewOf({ pid, waits, progress }: ActivityRow, outcome: ReturnType<typeof outcomeOf>): VacuumStatement[] {
  if (outcome === undefined) return [];
  if (outcome !== null) return [{ state: 'ended', error: outcome.error }];
  const phase = progress?.['phase'];
  return [
    {
      state: 'running',
      pid,
      waits,
      phase: typeof phase === 'string' ? phase : null,
      percent: percentOf(progress ?? {}),
    },
  ];
}

/** The columns of done and total work, by phase. */
const COUNTED: Record<string, [string, string]> = {
  'scanning heap': ['heap_blks_scanned', 'heap_blks_total'],
  'vacuuming heap': ['heap_blks_vacuumed', 'heap_blks_total'],
  'seq scanning heap': ['heap_blks_scanned', 'heap_blks_total'],
  /** Since PostgreSQL 17. */
  'vacuuming indexes': ['indexes_processed', 'indexes_total'],
  'cleaning up indexes': ['indexes_processed', 'indexes_total'],
  'acquiring sample rows': ['sample_blks_scanned', 'sample_blks_total'],
};

function percentOf(progress: Progress): number | null {
  const [done, all] = (COUNTED[String(progress['phase'])] ?? []).map((name) => Number(progress[name] ?? 0));
  if (done === undefined || all === undefined || all <= 0) return null;
  return Math.min(100, (100 * done) / all);
}

/** Without this right, a running statement looks ended. */
async function mustSee(sql: Sql): Promise<void> {
  const [row] = await sql<[{ sees: boolean; role: string }]>`
    SELECT quote_ident(current_user) AS role,
      pg_has_role('pg_read_all_stats', 'USAGE') OR pg_has_role(datdba, 'USAGE') AS sees
    FROM pg_database WHERE datname = current_database()`;
  if (row.sees) return;
  const text = `The role ${row.role} of CORE_DATABASE_URL may not see running statements in the core's database. Remedy, as a superuser of it: GRANT pg_monitor TO ${row.role};`;
  throw new AppError('unavailable', text);
}

async function readServer(sql: Sql) {
  const [row] = await sql<[{ max_wal_bytes: number; started_ms: number }]>`
    SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000)::float8 AS started_ms,
      (SELECT setting::float8 FROM pg_settings WHERE name = 'max_wal_size') * 1024 * 1024 AS max_wal_bytes`;
  return { max_wal_bytes: row.max_wal_bytes, started_at: new Date(row.started_ms).toISOString() };
}
