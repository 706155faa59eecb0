// Reads the core's database for health: statistics, sizes, the clock. Nothing here waits for a lock
// of the core.

import { AppError, codeOf } from '@holdfast/kit/app-error';
import { parseDatabaseSize } from '@holdfast/kit/format';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Sql } from '@holdfast/kit/postgres';
import { isoOf } from '@holdfast/kit/time';
import type {
  CoreDatabase,
  DatabaseSize,
  EventLosses,
  SettingOrigin,
  TableStatistics,
  VacuumStatistics,
} from './port.ts';
import { readServerFacts, readVacuumHolders } from './server-facts.ts';
import {
  type Current,
  inheritable,
  type InheritableRow,
  overriddenBy,
  overrides,
  type OverridesRow,
  readServerSettings,
  splitAtEquals,
} from './server-settings.ts';
import { bytesOfOwn, fromUserTables, seeingLocks, withOwnTables } from './table-sizes.ts';

const LOCK_NOT_AVAILABLE = '55P03';
const INSUFFICIENT_PRIVILEGE = '42501';

/** Three ways to the same database. */
export interface CoreConnections {
  run: RunSql;
  /** For slow queries on a large database, so that nothing waits behind them. */
  runSizes?: RunSql;
  /** Opens a new connection each time. */
  runFresh?: RunSql;
}

const CONNECTED_FOR_MS = 2000;
/** Pooled connections live for five minutes, and until their last query ends. */
const MAX_LIFETIME_MS = 330_000;

/** Needs a role that can connect; to see the size of WAL it also needs `pg_monitor`. */
export function coreDatabase({ run, runSizes = run, runFresh = run }: CoreConnections): CoreDatabase {
  let connectedMs = Number.NEGATIVE_INFINITY;
  let known: string | undefined;
  let changedMs = Number.NEGATIVE_INFINITY;

  async function connect(): Promise<void> {
    if (performance.now() - connectedMs < CONNECTED_FOR_MS) return;
    await runFresh((sql) => sql`SELECT 1`);
    connectedMs = performance.now();
  }

  /**
   * Pooled connections keep the settings they started with. While some from before a change may
   * live, a fresh connection is used. Rule `keptWhenRefused`: when no fresh one is accepted,
   * `connect` reports it, and the pooled one returns what it has.
   */
  async function runCurrent<T>(read: (sql: Sql) => Promise<Current<T>>, kept = run): Promise<T> {
    const current = await kept(read);
    if (known !== undefined && current.inheritable !== known) changedMs = performance.now();
    known = current.inheritable;
    if (performance.now() - changedMs >= MAX_LIFETIME_MS) return current.found;
    return runFresh(read).then(
      ({ found }) => found,
      (error: unknown) => {
        if (error instanceof AppError && error.code === 'unavailable') return current.found;
        throw error;
      },
    );
  }

  return {
    connect,
    vacuumStatistics: () => runCurrent(readVacuumStatistics),
    vacuumHolders: () => run(readVacuumHolders),
    settingOrigins: (names) => runCurrent((sql) => readOrigins(sql, names)),
    server: () => runCurrent(readServerFacts),
    size: () => runCurrent(readSize, runSizes),
    eventLosses: () => run(readEventLosses),
    hasEvent: (uid) => run((sql) => hasEvent(sql, uid)),
    clockMs: () => run(readClock),
    version: () => run(readVersion),
  };
}

async function readVacuumStatistics(sql: Sql): Promise<Current<VacuumStatistics>> {
  const [tables, { found, inheritable: current }] = await Promise.all([readTables(sql), readSettings(sql)]);
  return { found: { tables, ...found }, inheritable: current };
}

async function readOrigins(sql: Sql, names: readonly string[]): Promise<Current<Record<string, SettingOrigin>>> {
  const { found, ...current } = await readServerSettings(sql, names);
  const origins = Object.entries(found.settings).map(([name, { origin }]) => [name, origin] as const);
  return { found: Object.fromEntries(origins), ...current };
}

type TableRow = Omit<TableStatistics, 'last_autovacuum' | 'last_vacuum' | 'options'> & {
  /** `name=value` */
  options: string[] | null;
  autovacuum_ms: number | null;
  vacuum_ms: number | null;
};

async function readTables(sql: Sql): Promise<TableStatistics[]> {
  const rows = await sql<TableRow[]>`
    SELECT n.nspname AS schema, c.relname AS table,
      pg_stat_get_dead_tuples(c.oid)::float8 AS dead_tuples,
      pg_stat_get_live_tuples(c.oid)::float8 AS live_tuples,
      (extract(epoch FROM pg_stat_get_last_autovacuum_time(c.oid)) * 1000)::float8 AS autovacuum_ms,
      (extract(epoch FROM pg_stat_get_last_vacuum_time(c.oid)) * 1000)::float8 AS vacuum_ms,
      to_json(c.reloptions) AS options
    ${fromUserTables(sql)}
    ORDER BY dead_tuples DESC, n.nspname, c.relname`;
  return rows.map(({ autovacuum_ms: autovacuum, vacuum_ms: vacuum, options, ...table }) => ({
    ...table,
    options: Object.fromEntries((options ?? []).map(splitAtEquals)),
    last_autovacuum: isoOf(autovacuum),
    last_vacuum: isoOf(vacuum),
  }));
}

async function readSettings(sql: Sql): Promise<Current<Pick<VacuumStatistics, 'settings' | 'transaction_age'>>> {
  const [row] = await sql<[OverridesRow & InheritableRow & { age: number } & Record<string, string>]>`
    SELECT current_setting('autovacuum') AS autovacuum,
      current_setting('track_counts') AS track_counts,
      current_setting('autovacuum_vacuum_scale_factor') AS autovacuum_vacuum_scale_factor,
      current_setting('autovacuum_vacuum_cost_limit') AS autovacuum_vacuum_cost_limit,
      current_setting('maintenance_work_mem') AS maintenance_work_mem,
      current_setting('autovacuum_work_mem') AS autovacuum_work_mem,
      current_setting('autovacuum_naptime') AS autovacuum_naptime,
      (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()) AS age, ${overrides(sql)}, ${inheritable(sql)}`;
  const { overrides: _, inheritable: current, age, ...shown } = row;
  const overridden = overriddenBy(row);
  const inForce = Object.entries(shown).map(([name, value]) => [name, overridden[name]?.value ?? value]);
  const settings = Object.fromEntries(inForce) as Record<string, string>;
  return { found: { settings, transaction_age: age }, inheritable: current };
}

async function readSize(sql: Sql): Promise<Current<DatabaseSize>> {
  const [live, { found, ...current }, wal] = await Promise.all([
    seeingLocks(() => measureUnlocked(sql)),
    readGeneral(sql),
    readWalSize(sql),
  ]);
  return { found: { ...live, ...found, wal_bytes: wal }, ...current };
}

async function measureUnlocked(sql: Sql): Promise<Pick<DatabaseSize, 'total_bytes' | 'live_bytes' | 'locked_tables'>> {
  const [row] = await sql<[{ total_bytes: number; live_bytes: number; locked_tables: string[] | null }]>`
    WITH ${withOwnTables(sql)}
    SELECT pg_database_size(current_database())::float8 AS total_bytes,
      coalesce(sum(${bytesOfOwn(sql)}), 0)::float8 AS live_bytes,
      array_to_json(array_agg(nspname || '.' || relname) FILTER (WHERE is_locked)) AS locked_tables
    FROM own`;
  return { ...row, locked_tables: row.locked_tables ?? [] };
}

interface GeneralRow extends OverridesRow, InheritableRow {
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
      current_setting('max_wal_size') AS max_wal, ${overrides(sql)}, ${inheritable(sql)}
    FROM pg_stat_archiver`;
  const { archive_mode, archive_failing, in_recovery, version } = row;
  const readOnly = overriddenBy(row)['default_transaction_read_only']?.value ?? row.read_only;
  const found = {
    archive_mode,
    archive_failing,
    read_only: in_recovery || /^(on|true|yes|1)$/i.test(readOnly),
    version,
    max_wal_bytes: parseDatabaseSize(row.max_wal) ?? 0,
  };
  return { found, inheritable: row.inheritable };
}

/** A role without the permission (rule `walUnreadable`) gets null; the module reports it. */
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

/**
 * Rule `lossesUnreadable`: a role without the permission, or a query that would wait for a lock,
 * returns nothing.
 */
async function hasEvent(sql: Sql, uid: string): Promise<boolean | 'locked'> {
  try {
    const [row] = await sql<{ found: boolean }[]>`SELECT EXISTS (SELECT FROM cot_router WHERE uid = ${uid}) AS found`;
    return row?.found === true;
  } catch (error) {
    if (codeOf(error) === LOCK_NOT_AVAILABLE) return 'locked';
    throw error;
  }
}

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
