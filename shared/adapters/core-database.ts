// The core's database as health sees it: statistics, sizes, the clock. Nothing here waits for a lock of the core.

import { parseDatabaseSize } from '../domain/database-size.ts';
import { codeOf } from '../domain/thrown.ts';
import type {
  CoreDatabase,
  DatabaseSize,
  EventLosses,
  TableStatistics,
  VacuumStatistics,
} from '../ports/core-database.ts';
import type { RunSql } from './kept-database.ts';
import type { Sql } from './postgres.ts';

const LOCK_NOT_AVAILABLE = '55P03';
const INSUFFICIENT_PRIVILEGE = '42501';

/** Three ways to the same database. */
export interface CoreConnections {
  run: RunSql;
  /** For what may take long in a large database, so that nothing waits behind it. */
  runSizes?: RunSql;
  /** Connects anew each time. */
  runFresh?: RunSql;
}

const CONNECTED_FOR_MS = 2000;

/** Needs a role that may connect; to see the size of WAL it also needs `pg_monitor`. */
export function coreDatabase({ run, runSizes = run, runFresh = run }: CoreConnections): CoreDatabase {
  let connectedMs = Number.NEGATIVE_INFINITY;

  async function connect(): Promise<void> {
    if (performance.now() - connectedMs < CONNECTED_FOR_MS) return;
    await runFresh((sql) => sql`SELECT 1`);
    connectedMs = performance.now();
  }

  return {
    connect,
    vacuumStatistics: () => run(readVacuumStatistics),
    size: () => runSizes(readSize),
    eventLosses: () => run(readEventLosses),
    clockMs: () => run(readClock),
    version: () => run(readVersion),
  };
}

interface OverridesRow {
  /** JSON of lists of `name=value`, the more specific list last; null when there is none. */
  overrides: string | null;
}

/**
 * What ALTER DATABASE has set, and ALTER ROLE for the owner of the database, as which the core works: a connection that was
 * open before does not know of it, and neither does another role.
 */
const overrides = (sql: Sql) => sql`
  (SELECT json_agg(setconfig ORDER BY setrole, setdatabase) FROM pg_db_role_setting, pg_database AS d
    WHERE d.datname = current_database() AND setrole IN (0, d.datdba) AND setdatabase IN (0, d.oid)
  )::text AS overrides`;

function overriddenBy({ overrides: text }: OverridesRow): Record<string, string> {
  const lists = text === null ? [] : (JSON.parse(text) as string[][]);
  return Object.fromEntries(lists.flat().map((setting) => splitAtEquals(setting)));
}

function splitAtEquals(setting: string): [string, string] {
  const place = setting.indexOf('=');
  return [setting.slice(0, place), setting.slice(place + 1)];
}

async function readVacuumStatistics(sql: Sql): Promise<VacuumStatistics> {
  const [tables, settings] = await Promise.all([readTables(sql), readSettings(sql)]);
  return { tables, settings };
}

type TableRow = Omit<TableStatistics, 'last_autovacuum' | 'last_vacuum'> & {
  autovacuum_ms: number | null;
  vacuum_ms: number | null;
};

/** The tables of pg_stat_user_tables without what that view collects for their indexes, which takes longer than all the rest. */
const fromUserTables = (sql: Sql) => sql`
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 't', 'm', 'p')
    AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'`;

async function readTables(sql: Sql): Promise<TableStatistics[]> {
  const rows = await sql<TableRow[]>`
    SELECT n.nspname AS schema, c.relname AS table,
      pg_stat_get_dead_tuples(c.oid)::float8 AS dead_tuples,
      pg_stat_get_live_tuples(c.oid)::float8 AS live_tuples,
      (extract(epoch FROM pg_stat_get_last_autovacuum_time(c.oid)) * 1000)::float8 AS autovacuum_ms,
      (extract(epoch FROM pg_stat_get_last_vacuum_time(c.oid)) * 1000)::float8 AS vacuum_ms
    ${fromUserTables(sql)}
    ORDER BY dead_tuples DESC, n.nspname, c.relname`;
  return rows.map(({ autovacuum_ms: autovacuum, vacuum_ms: vacuum, ...table }) => ({
    ...table,
    last_autovacuum: isoOf(autovacuum),
    last_vacuum: isoOf(vacuum),
  }));
}

function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

async function readSettings(sql: Sql): Promise<Record<string, string>> {
  const [row] = await sql<[OverridesRow & Record<string, string>]>`
    SELECT current_setting('autovacuum') AS autovacuum,
      current_setting('track_counts') AS track_counts,
      current_setting('autovacuum_vacuum_scale_factor') AS autovacuum_vacuum_scale_factor,
      current_setting('autovacuum_vacuum_cost_limit') AS autovacuum_vacuum_cost_limit,
      current_setting('maintenance_work_mem') AS maintenance_work_mem,
      current_setting('autovacuum_work_mem') AS autovacuum_work_mem, ${overrides(sql)}`;
  const { overrides: _, ...shown } = row;
  const overridden = overriddenBy(row);
  return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, overridden[name] ?? value]));
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
      ${fromUserTables(sql)}
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

interface GeneralRow extends OverridesRow {
  archive_mode: string;
  archive_failing: boolean;
  in_recovery: boolean;
  read_only: string;
  version: string;
  max_wal: string;
}

async function readGeneral(sql: Sql) {
  const [row] = await sql<[GeneralRow]>`
    SELECT current_setting('archive_mode') AS archive_mode,
      coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false)
        OR (current_setting('archive_mode') <> 'off' AND current_setting('archive_command') = ''
          AND coalesce(current_setting('archive_library', true), '') = '') AS archive_failing,
      pg_is_in_recovery() AS in_recovery,
      current_setting('default_transaction_read_only') AS read_only,
      current_setting('server_version') AS version,
      current_setting('max_wal_size') AS max_wal, ${overrides(sql)}
    FROM pg_stat_archiver`;
  const { archive_mode, archive_failing, in_recovery, version } = row;
  const readOnly = overriddenBy(row)['default_transaction_read_only'] ?? row.read_only;
  return {
    archive_mode,
    archive_failing,
    read_only: in_recovery || /^(on|true|yes|1)$/i.test(readOnly),
    version,
    max_wal_bytes: parseDatabaseSize(row.max_wal) ?? 0,
  };
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

interface LossesRow {
  events: number;
  began_ms: number | null;
  ended_ms: number | null;
  reason: string | null;
}

/** Rule `lossesUnreadable`: who may not look, or would have to wait for a lock, says nothing. */
async function readEventLosses(sql: Sql): Promise<EventLosses | 'none' | 'unknown'> {
  try {
    return await sumOfLosses(sql);
  } catch (error) {
    if ([INSUFFICIENT_PRIVILEGE, LOCK_NOT_AVAILABLE].includes(codeOf(error) ?? '')) return 'unknown';
    throw error;
  }
}

async function sumOfLosses(sql: Sql): Promise<EventLosses | 'none' | 'unknown'> {
  const [table] = await sql<[{ readable: boolean | null }]>`
    SELECT has_table_privilege(to_regclass('public.archive_loss'), 'SELECT') AS readable`;
  if (table.readable !== true) return 'unknown';
  const [row] = await sql<[LossesRow]>`
    SELECT coalesce(sum(events), 0)::float8 AS events,
      (extract(epoch FROM min(began)) * 1000)::float8 AS began_ms,
      (extract(epoch FROM max(ended)) * 1000)::float8 AS ended_ms,
      (array_agg(reason ORDER BY events DESC, id DESC))[1] AS reason
    FROM public.archive_loss WHERE ended > now() - interval '24 hours'`;
  const [began, ended] = [isoOf(row.began_ms), isoOf(row.ended_ms)];
  if (began === null || ended === null || row.events === 0) return 'none';
  return { events: row.events, began, ended, reason: row.reason ?? '' };
}

async function readClock(sql: Sql): Promise<number> {
  const [row] = await sql<[{ ms: number }]>`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`;
  return row.ms;
}

async function readVersion(sql: Sql): Promise<string> {
  const [row] = await sql<[{ version: string }]>`SELECT current_setting('server_version') AS version`;
  return row.version.split(' ')[0] ?? row.version;
}
