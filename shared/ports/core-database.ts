// The core's database, read only: what health, preview and history want to know of it.

import type { SettingOrigin } from '../domain/setting-origin.ts';
import type { ServerFacts } from './server-facts.ts';

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
