// The core's database, read only: what health, preview and history want to know of it.

export interface TableStatistics {
  schema: string;
  table: string;
  dead_tuples: number;
  live_tuples: number;
  /** ISO 8601; null when it never happened since the statistics were reset. */
  last_autovacuum: string | null;
  last_vacuum: string | null;
  /** What ALTER TABLE ... SET gave it, by name: `autovacuum_enabled`. */
  options: Record<string, string>;
}

export interface VacuumStatistics {
  /** Every user table, the one with most dead rows first. */
  tables: TableStatistics[];
  /** Settings of autovacuum in force, as `SHOW` prints them, by name. */
  settings: Record<string, string>;
  /** Transactions since the oldest row that is not frozen; at two thousand million the server stops. */
  transaction_age: number;
}

/** Something that keeps dead rows from being removed. */
export interface VacuumHolder {
  kind: 'transaction' | 'prepared transaction' | 'replication slot';
  /** The pid, or the name as SQL quotes it. */
  name: string;
  user: string | null;
  application: string | null;
  /** ISO 8601; null for a slot. */
  since: string | null;
  seconds: number | null;
}

export interface DatabaseSize {
  total_bytes: number;
  /** Tables, indexes and TOAST of every user table. */
  live_bytes: number;
  /** Tables that somebody holds locked (VACUUM FULL, say): their size is what the catalogue says, not the file's. */
  locked_tables: string[];
  /** Null when the role may not see it. */
  wal_bytes: number | null;
  max_wal_bytes: number;
  archive_mode: string;
  /** True when the last try to archive a piece of WAL failed. */
  archive_failing: boolean;
  /** True on a standby, and where writing was switched off. */
  read_only: boolean;
  version: string;
}

/** Events that the embedded core could not store in the last 24 h. */
export interface EventLosses {
  events: number;
  /** ISO 8601: of the first and of the last of them. */
  began: string;
  ended: string;
  /** Of the most of them. */
  reason: string;
}

/** Every call rejects within a few seconds when the server does not answer. */
export interface CoreDatabase {
  vacuumStatistics(): Promise<VacuumStatistics>;
  /** The oldest first, at most five; never the statement that asks. */
  vacuumHolders(): Promise<VacuumHolder[]>;
  /** Where these settings come from, as they count for the owner of the database; one that the server does not know is left out. */
  settingOrigins(names: readonly string[]): Promise<Record<string, SettingOrigin>>;
  server(): Promise<ServerFacts>;
  size(): Promise<DatabaseSize>;
  /** `unknown` where nobody keeps such a list, as in a release, or where the role may not read it. */
  eventLosses(): Promise<EventLosses | 'none' | 'unknown'>;
  /** Whether an event of that uid is in the table `cot_router`; `locked` while somebody holds the table (VACUUM FULL, say). */
  hasEvent(uid: string): Promise<boolean | 'locked'>;
  /** Opens a new connection, as a client would; asked again within two seconds it takes the last success for granted. */
  connect(): Promise<void>;
  /** The server's clock, in milliseconds since 1970. */
  clockMs(): Promise<number>;
  version(): Promise<string>;
}

/** What the server of the core's database does with writes and with WAL: what loses data, and what fills its disk. */
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

/**
 * Where the value of a setting of PostgreSQL comes from, and the commands that take it back there.
 * As pg_settings and pg_db_role_setting tell. Names of roles and databases are quoted as SQL wants them.
 */
export interface SettingOrigin {
  /** `database` and `role` for ALTER DATABASE and ALTER ROLE; else the word of pg_settings, such as `command line`. */
  source: string;
  /** Of a configuration file; null when it is none, or when the role may not see it. */
  file: string | null;
  line: number | null;
  role: string | null;
  database: string | null;
}
