// Reads how the database server handles writes and WAL, as a role with few permissions: anything it
// may not see is null.

import { parseDatabaseSize } from '@holdfast/kit/format';
import type { Sql } from '@holdfast/kit/postgres';
import { isoOf } from '@holdfast/kit/time';
import { type ReplicationSlot, type ServerFacts, type VacuumHolder, WATCHED_SETTINGS } from './port.ts';
import { type Current, readServerSettings } from './server-settings.ts';

export async function readServerFacts(sql: Sql): Promise<Current<ServerFacts>> {
  const [general, slots, md5Roles, schema, { found, inheritable }] = await Promise.all([
    readGeneral(sql),
    readSlots(sql),
    readMd5Roles(sql),
    readSchemaVersion(sql),
    readServerSettings(sql, [...WATCHED_SETTINGS, 'data_directory']),
  ]);
  const { data_directory: directory, ...watched } = found.settings;
  const facts = {
    ...general,
    slots,
    settings: watched as ServerFacts['settings'],
    pending_restart: found.pending,
    data_directory: directory?.value ?? null,
    md5_roles: md5Roles,
    schema_version: schema,
  };
  return { found: facts, inheritable };
}

interface GeneralRow {
  role: string;
  database: string;
  owner: string;
  standby: boolean;
  wal_keep: string;
  mode: string;
  command: string;
  library: string;
  failing: boolean;
  failed_wal: string | null;
  failed_ms: number | null;
  archived_ms: number | null;
}

async function readGeneral(
  sql: Sql,
): Promise<Pick<ServerFacts, 'role' | 'database' | 'owner' | 'standby' | 'wal_keep_bytes' | 'archive'>> {
  const [row] = await sql<[GeneralRow]>`
    SELECT quote_ident(session_user) AS role, quote_ident(current_database()) AS database,
      (SELECT quote_ident(pg_get_userbyid(datdba)) FROM pg_database WHERE datname = current_database()) AS owner,
      pg_is_in_recovery() AS standby, current_setting('wal_keep_size') AS wal_keep,
      current_setting('archive_mode') AS mode, current_setting('archive_command') AS command,
      coalesce(current_setting('archive_library', true), '') AS library,
      coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) AS failing,
      last_failed_wal AS failed_wal, (extract(epoch FROM last_failed_time) * 1000)::float8 AS failed_ms,
      (extract(epoch FROM last_archived_time) * 1000)::float8 AS archived_ms
    FROM pg_stat_archiver`;
  const { mode, failing, failed_wal } = row;
  return {
    role: row.role,
    database: row.database,
    owner: row.owner,
    standby: row.standby,
    wal_keep_bytes: parseDatabaseSize(row.wal_keep) ?? 0,
    archive: {
      mode,
      command: commandWord(mode, row),
      failing,
      failed_wal,
      failed_at: isoOf(row.failed_ms),
      archived_at: isoOf(row.archived_ms),
    },
  };
}

/** While archiving is off, the server shows `(disabled)` instead of the command. */
function commandWord(mode: string, { command, library }: Pick<GeneralRow, 'command' | 'library'>): string {
  if (mode === 'off') return '';
  return library === '' ? (command.trim().split(/\s+/)[0] ?? '') : library;
}

/** A role without the permission (rule `passwordsUnreadable`) gets null. */
async function readMd5Roles(sql: Sql): Promise<string[] | null> {
  const [may] = await sql<[{ reads: boolean }]>`SELECT has_table_privilege('pg_authid', 'SELECT') AS reads`;
  if (!may.reads) return null;
  const rows = await sql<{ name: string }[]>`
    SELECT quote_ident(rolname) AS name FROM pg_authid WHERE rolcanlogin AND rolpassword LIKE 'md5%' ORDER BY 1 LIMIT 20`;
  return rows.map(({ name }) => name);
}

/** Of the history that a release's schema tool keeps. Rule `historyUnreadable`: else null. */
async function readSchemaVersion(sql: Sql): Promise<number | null> {
  const [table] = await sql<[{ readable: boolean }]>`
    SELECT count(*) = 2 AND coalesce(has_table_privilege(to_regclass('public.schema_version'), 'SELECT'), false) AS readable
    FROM pg_attribute
    WHERE attrelid = to_regclass('public.schema_version') AND attname IN ('version', 'success') AND NOT attisdropped`;
  if (!table.readable) return null;
  const [row] = await sql<[{ newest: number | null }]>`
    SELECT max(CASE WHEN version ~ '^[0-9]{1,6}$' THEN version::int END) AS newest FROM public.schema_version WHERE success`;
  return row.newest;
}

async function readSlots(sql: Sql): Promise<ReplicationSlot[]> {
  return sql<ReplicationSlot[]>`
    SELECT quote_literal(slot_name) AS name, active, wal_status,
      pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END,
        restart_lsn)::float8 AS retained_bytes
    FROM pg_replication_slots ORDER BY retained_bytes DESC NULLS LAST, slot_name LIMIT 20`;
}

/**
 * Finds what keeps dead rows from being removed: the oldest transactions, prepared ones, and
 * replication slots.
 */
interface HolderRow extends Omit<VacuumHolder, 'since'> {
  since_ms: number | null;
}

/**
 * Transactions of another database have no effect here; a standby's reads do (walsender), whatever
 * their database. A vacuum blocks no other one. The statement that asks also has a transaction and
 * is excluded.
 */
export async function readVacuumHolders(sql: Sql): Promise<VacuumHolder[]> {
  const rows = await sql<HolderRow[]>`
    SELECT kind, name, "user", application, (extract(epoch FROM since) * 1000)::float8 AS since_ms,
      extract(epoch FROM clock_timestamp() - since)::float8 AS seconds
    FROM (
      SELECT 'transaction' AS kind, pid::text AS name, usename::text AS "user", application_name AS application,
        coalesce(xact_start, backend_start) AS since,
        greatest(age(backend_xmin), age(backend_xid)) AS age
      FROM pg_stat_activity
      WHERE (datname = current_database() OR backend_type = 'walsender') AND pid <> pg_backend_pid()
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
        AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
      UNION ALL
      SELECT 'prepared transaction', quote_literal(gid), owner::text, NULL, prepared, age(transaction)
      FROM pg_prepared_xacts WHERE database = current_database()
      UNION ALL
      SELECT 'replication slot', quote_literal(slot_name), NULL, NULL, NULL, age(xmin)
      FROM pg_replication_slots WHERE xmin IS NOT NULL
    ) AS each
    ORDER BY age DESC, since LIMIT 5`;
  return rows.map(({ since_ms: since, ...row }) => ({ ...row, since: isoOf(since) }));
}
