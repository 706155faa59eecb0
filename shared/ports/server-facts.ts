// What the server of the core's database does with writes and with WAL: what loses data, and what fills its disk.

import type { SettingOrigin } from '../domain/setting-origin.ts';

export interface ReplicationSlot {
  /** As SQL quotes it. */
  name: string;
  active: boolean;
  /** WAL that is kept for it; null when it keeps none. */
  retained_bytes: number | null;
  /** reserved, extended, unreserved or lost. */
  wal_status: string | null;
}

export interface WalArchive {
  mode: string;
  /** The first word of archive_command, or archive_library: the rest may hold a password. Empty when nothing is set. */
  command: string;
  /** True when the last try failed. */
  failing: boolean;
  failed_wal: string | null;
  /** ISO 8601. */
  failed_at: string | null;
  archived_at: string | null;
}

/** A setting as it counts for the owner of the database. */
export interface ServerSetting {
  /** As `SHOW` prints it. */
  value: string;
  origin: SettingOrigin;
}

export interface ServerFacts {
  /** Who asks, the database and its owner, as SQL quotes them. */
  role: string;
  database: string;
  owner: string;
  standby: boolean;
  /** The one that keeps most WAL first. */
  slots: ReplicationSlot[];
  archive: WalArchive;
  wal_keep_bytes: number;
  settings: Record<(typeof WATCHED_SETTINGS)[number], ServerSetting>;
  /** Settings that were changed and wait for a restart of the server. */
  pending_restart: string[];
  /** Null when the role may not see it. */
  data_directory: string | null;
}

export const WATCHED_SETTINGS = [
  'archive_mode',
  'default_transaction_read_only',
  'fsync',
  'full_page_writes',
  'synchronous_commit',
] as const;
