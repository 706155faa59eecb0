// The core's database as health sees it: statistics, sizes, the clock. Nothing here waits for a lock of the core.

import { parseDatabaseSize } from '../domain/database-size.ts';
import { codeOf } from '../domain/thrown.ts';
import type { CoreDatabase, DatabaseSize, VacuumStatistics } from '../ports/core-database.ts';
import type { RunSql } from './kept-database.ts';
import type { Sql } from './postgres.ts';

const LOCK_NOT_AVAILABLE = '55P03';
const INSUFFICIENT_PRIVILEGE = '42501';

/** Needs a role that may connect; to see the size of WAL it also needs `pg_monitor`. */
export function coreDatabase(run: RunSql): CoreDatabase {
  return {
    vacuumStatistics: () => run(readVacuumStatistics),
    size: () => run(readSize),
    clockMs: () => run(readClock),
    version: () => run(readVersion),
  };
}

/** What ALTER DATABASE has set: a connection that was open before does not know of it. */
const overrides = (sql: Sql) => sql`
  SELECT DISTINCT ON (1) split_part(setting, '=', 1) AS name, substr(setting, strpos(setting, '=') + 1) AS value
  FROM pg_db_role_setting, unnest(setconfig) AS setting
  WHERE setrole = 0 AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
  ORDER BY 1, setdatabase DESC`;

async function readVacuumStatistics(sql: Sql): Promise<VacuumStatistics> {
  const [row] = await sql<[{ statistics: string }]>`
    WITH overrides AS (${overrides(sql)})
    SELECT json_build_object(
      'tables', (
        SELECT coalesce(json_agg(json_build_object(
          'schema', schemaname,
          'table', relname,
          'dead_tuples', n_dead_tup,
          'live_tuples', n_live_tup,
          'last_autovacuum', to_char(last_autovacuum AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
          'last_vacuum', to_char(last_vacuum AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
        ) ORDER BY n_dead_tup DESC, schemaname, relname), '[]')
        FROM pg_stat_user_tables),
      'settings', (
        SELECT json_object_agg(name, coalesce(
          (SELECT value FROM overrides WHERE overrides.name = wanted.name), current_setting(wanted.name)))
        FROM (VALUES ('autovacuum'), ('track_counts'), ('autovacuum_vacuum_scale_factor'),
          ('autovacuum_vacuum_cost_limit'), ('maintenance_work_mem')) AS wanted (name))
    )::text AS statistics`;
  return JSON.parse(row.statistics) as VacuumStatistics;
}

async function readSize(sql: Sql): Promise<DatabaseSize> {
  const [live, general, wal] = await Promise.all([readLiveSize(sql), readGeneral(sql), readWalSize(sql)]);
  return { ...live, ...general, wal_bytes: wal };
}

/** A lock that was taken between looking for locks and measuring is seen the second time. */
async function readLiveSize(sql: Sql): Promise<Pick<DatabaseSize, 'total_bytes' | 'live_bytes' | 'locked_tables'>> {
  for (let tries = 1; ; tries++) {
    try {
      return await measureUnlocked(sql);
    } catch (error) {
      if (codeOf(error) !== LOCK_NOT_AVAILABLE || tries === 3) throw error;
    }
  }
}

/**
 * Measuring a table that is locked exclusively (VACUUM FULL, REINDEX, TRUNCATE) would wait for that lock, so its size is
 * what the catalogue says. Whoever waits for such a lock blocks us too, so waiting ones count.
 */
async function measureUnlocked(sql: Sql) {
  const [row] = await sql<[{ total_bytes: number; live_bytes: number; locked_tables: string[] | null }]>`
    WITH locked AS MATERIALIZED (
      SELECT coalesce(i.indrelid, l.relation) AS relation
      FROM pg_locks l LEFT JOIN pg_index i ON i.indexrelid = l.relation
      WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock'
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ), own AS MATERIALIZED (
      SELECT c.oid, n.nspname, c.relname, c.reltoastrelid,
        EXISTS (SELECT FROM locked WHERE relation IN (c.oid, c.reltoastrelid)) AS is_locked
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 't', 'm', 'p')
        AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'
    )
    SELECT pg_database_size(current_database())::float8 AS total_bytes,
      coalesce(sum(CASE WHEN is_locked THEN (
        SELECT coalesce(sum(p.relpages), 0) * current_setting('block_size')::int8
        FROM pg_class p LEFT JOIN pg_index i ON i.indexrelid = p.oid
        WHERE p.oid IN (own.oid, own.reltoastrelid) OR i.indrelid IN (own.oid, own.reltoastrelid)
      ) ELSE pg_total_relation_size(own.oid) END), 0)::float8 AS live_bytes,
      array_to_json(array_agg(nspname || '.' || relname) FILTER (WHERE is_locked)) AS locked_tables
    FROM own`;
  return { ...row, locked_tables: row.locked_tables ?? [] };
}

async function readGeneral(sql: Sql) {
  const [row] = await sql<
    [{ archive_mode: string; archive_failing: boolean; read_only: boolean; version: string; max_wal: string }]
  >`
    WITH overrides AS (${overrides(sql)})
    SELECT current_setting('archive_mode') AS archive_mode,
      coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) AS archive_failing,
      pg_is_in_recovery() OR coalesce(
        (SELECT value FROM overrides WHERE name = 'default_transaction_read_only'),
        current_setting('default_transaction_read_only'))::boolean AS read_only,
      current_setting('server_version') AS version,
      current_setting('max_wal_size') AS max_wal
    FROM pg_stat_archiver`;
  const { max_wal: maxWal, ...general } = row;
  return { ...general, max_wal_bytes: parseDatabaseSize(maxWal) ?? 0 };
}

/** A role that may not look (rule `walUnreadable`) gets null; the module says so. */
async function readWalSize(sql: Sql): Promise<number | null> {
  try {
    const [row] = await sql<[{ bytes: number }]>`SELECT coalesce(sum(size), 0)::float8 AS bytes FROM pg_ls_waldir()`;
    return row.bytes;
  } catch (error) {
    if (codeOf(error) === INSUFFICIENT_PRIVILEGE) return null;
    throw error;
  }
}

async function readClock(sql: Sql): Promise<number> {
  const [row] = await sql<[{ ms: number }]>`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`;
  return row.ms;
}

async function readVersion(sql: Sql): Promise<string> {
  const [row] = await sql<[{ version: string }]>`SELECT current_setting('server_version') AS version`;
  return row.version.split(' ')[0] ?? row.version;
}
