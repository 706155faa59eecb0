// What the server of the core's database does with writes and with WAL, read as a role that may little: what it may not see
// is null.

import { parseDatabaseSize } from '../domain/database-size.ts';
import { type ReplicationSlot, type ServerFacts, WATCHED_SETTINGS } from '../ports/server-facts.ts';
import { isoOf } from './epoch-time.ts';
import type { Sql } from './postgres.ts';
import { type Current, readServerSettings } from './server-settings.ts';

export async function readServerFacts(sql: Sql): Promise<Current<ServerFacts>> {
  const [general, slots, { found, inheritable }] = await Promise.all([
    readGeneral(sql),
    readSlots(sql),
    readServerSettings(sql, [...WATCHED_SETTINGS, 'data_directory']),
  ]);
  const { data_directory: directory, ...watched } = found.settings;
  const facts = {
    ...general,
    slots,
    settings: watched as ServerFacts['settings'],
    pending_restart: found.pending,
    data_directory: directory?.value ?? null,
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

async function readSlots(sql: Sql): Promise<ReplicationSlot[]> {
  return sql<ReplicationSlot[]>`
    SELECT quote_literal(slot_name) AS name, active, wal_status,
      pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END,
        restart_lsn)::float8 AS retained_bytes
    FROM pg_replication_slots ORDER BY retained_bytes DESC NULLS LAST, slot_name LIMIT 20`;
}
