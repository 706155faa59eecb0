// Defines read-only access to the core's database, for health, preview and history.

export interface TableStatistics {
  schema: string;
  table: string;
  dead_tuples: number;
  live_tuples: number;
  /** ISO 8601; null when it never happened since the statistics were reset. */
  last_autovacuum: string | null;
  last_vacuum: string | null;
  /** Table options set with ALTER TABLE ... SET, by name: `autovacuum_enabled`. */
  options: Record<string, string>;
}

export interface VacuumStatistics {
  /** Every user table, most dead rows first. */
  tables: TableStatistics[];
  /** Effective autovacuum settings, as `SHOW` prints them, by name. */
  settings: Record<string, string>;
  /**
   * Transactions since the oldest row that is not frozen; at two thousand million the server stops.
   */
  transaction_age: number;
}

/** A cause that keeps dead rows from being removed. */
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
  /**
   * Tables that are locked (by VACUUM FULL, for example): their size comes from the catalog, not
   * from the file.
   */
  locked_tables: string[];
  /** Null when the role may not see it. */
  wal_bytes: number | null;
  max_wal_bytes: number;
  archive_mode: string;
  /** True when the last attempt to archive a WAL segment failed. */
  archive_failing: boolean;
  /** True on a standby, and when writing was switched off. */
  read_only: boolean;
  version: string;
}

/** Events that the embedded core could not store in the last 24 h. */
export interface EventLosses {
  events: number;
  /** ISO 8601: of the first and of the last of them. */
  began: string;
  ended: string;
  /** Reason for most of them. */
  reason: string;
}

/** Every call rejects within a few seconds when the server does not answer. */
export interface CoreDatabase {
  vacuumStatistics(): Promise<VacuumStatistics>;
  /** Oldest first, at most five; never the statement that asks. */
  vacuumHolders(): Promise<VacuumHolder[]>;
  /**
   * Where these settings come from, as they apply to the owner of the database; one that the server
   * does not know is omitted.
   */
  settingOrigins(names: readonly string[]): Promise<Record<string, SettingOrigin>>;
  server(): Promise<ServerFacts>;
  size(): Promise<DatabaseSize>;
  /** `unknown` when there is no such list, as in a release, or the role may not read it. */
  eventLosses(): Promise<EventLosses | 'none' | 'unknown'>;
  /**
   * True when an event of that uid is in the table `cot_router`; `locked` while the table is locked
   * (by VACUUM FULL, for example).
   */
  hasEvent(uid: string): Promise<boolean | 'locked'>;
  /**
   * Opens a new connection, as a client would; a call within two seconds reuses the last success.
   */
  connect(): Promise<void>;
  /** The server's clock, in milliseconds since 1970. */
  clockMs(): Promise<number>;
  version(): Promise<string>;
}

/**
 * How the server of the core's database handles writes and WAL: what can lose data, and what fills
 * its disk.
 */
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
  /**
   * The first word of archive_command, or archive_library: the rest may contain a password. Empty
   * when nothing is set.
   */
  command: string;
  /** True when the last attempt failed. */
  failing: boolean;
  failed_wal: string | null;
  /** ISO 8601. */
  failed_at: string | null;
  archived_at: string | null;
}

/** A setting as it applies to the owner of the database. */
export interface ServerSetting {
  /** As `SHOW` prints it. */
  value: string;
  origin: SettingOrigin;
}

export interface ServerFacts {
  /** The current role, the database and its owner, as SQL quotes them. */
  role: string;
  database: string;
  owner: string;
  standby: boolean;
  /** Most retained WAL first. */
  slots: ReplicationSlot[];
  archive: WalArchive;
  wal_keep_bytes: number;
  settings: Record<(typeof WATCHED_SETTINGS)[number], ServerSetting>;
  /** Settings that were changed and wait for a restart of the server. */
  pending_restart: string[];
  /** Null when the role may not see it. */
  data_directory: string | null;
  /** Roles with an md5 password that may log in, quoted; null when the role may not see them. */
  md5_roles: string[] | null;
  /** The newest schema migration of a release; null when the database has no such history. */
  schema_version: number | null;
}

export const WATCHED_SETTINGS = [
  'archive_mode',
  'default_transaction_read_only',
  'fsync',
  'full_page_writes',
  'synchronous_commit',
] as const;

/**
 * The source of a PostgreSQL setting, and the commands that reset it there, as pg_settings and
 * pg_db_role_setting report. Role and database names are quoted for SQL.
 */
export interface SettingOrigin {
  /**
   * `database` and `role` for ALTER DATABASE and ALTER ROLE; else the term of pg_settings, such as
   * `command line`.
   */
  source: string;
  /** The configuration file; null when there is none, or when the role may not see it. */
  file: string | null;
  line: number | null;
  role: string | null;
  database: string | null;
}
