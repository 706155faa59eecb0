// Declares the ports of the database feature: vacuum, growth facts and history, and a test write to
// our own database.

export interface VacuumOrder {
  /** A UUID: the name of the statement. */
  job: string;
  mode: VacuumMode;
  schema: string;
  table: string;
  /** The oid that the reader saw: another database or another table of that name is rejected. */
  oid: VacuumMarks['oid'];
}

/**
 * Vacuums as the owner of the core's database, on a connection of the Node host. The server
 * continues a statement if that process dies; others find it by its application name.
 */
export interface CoreVacuum {
  /**
   * Starts the statement and resolves once it is running or has ended; `VacuumFacts.statement`
   * shows its end for a minute, or until `settle`. Stops waiting for a lock after 5 s (SQLSTATE
   * 55P03). Rejects with `unavailable` without an owner's URL or an answer, `conflict` if one of
   * that job is still running, `upstream` if it is another table.
   */
  begin(order: VacuumOrder): Promise<void>;
  /**
   * Closes the connection of an ended statement, also one of another process; resolves with the
   * server's error message, if this process knows it.
   */
  settle(job: string): Promise<string | null>;
}

export const VACUUM_MODES = ['full', 'standard'] as const;
/**
 * `full` rewrites a table under an exclusive lock and frees disk space; `standard` makes space
 * usable for new rows.
 */
export type VacuumMode = (typeof VACUUM_MODES)[number];

export interface VacuumTable {
  schema: string;
  table: string;
  /** Its files: rows, TOAST and indexes. */
  bytes: number;
  /** Estimate of what VACUUM FULL would free; null if the table was never analyzed. */
  reclaimable_bytes: number | null;
  dead_tuples: number;
  live_tuples: number;
  /**
   * True if the owner of the database may vacuum it; false for tables of extensions with another
   * owner.
   */
  allowed: boolean;
  /**
   * True if it, its TOAST table or an index has its own tablespace, which may be on another disk.
   */
  elsewhere: boolean;
}

/**
 * Values that change when a table is vacuumed: equal marks before and after mean that nothing was
 * done.
 */
export interface VacuumMarks {
  /** Oid of the table; it changes if the table is recreated. */
  oid: number;
  /** Changes if the table is rewritten. */
  filenode: number;
  /** How often it was vacuumed manually without FULL; reset to 0 by a server crash. */
  vacuums: number;
  bytes: number;
  dead_tuples: number;
}

/** A holder of a lock that blocks a vacuum of a table. */
export interface LockHolder {
  /** 0 for a prepared transaction. */
  pid: number;
  user: string;
  /** For a prepared transaction, its quoted name. */
  application: string;
  /** Start of its transaction, ISO 8601; null if unknown. */
  since: string | null;
}

/** The statement of a job, as the server shows it. */
export type VacuumStatement =
  | {
      state: 'running';
      pid: number;
      /** True while it waits for a lock. */
      waits: boolean;
      /** PostgreSQL's name of the phase, or null before the first one. */
      phase: string | null;
      /** 0 to 100 within the phase; null if PostgreSQL reports none. */
      percent: number | null;
    }
  | {
      state: 'ended';
      /** SQLSTATE of its error, or null. */
      error: string | null;
    };

export interface VacuumServer {
  max_wal_bytes: number;
  /** ISO 8601. */
  started_at: string;
}

/** Every call rejects with an AppError `unavailable` if the database is unavailable. */
export interface VacuumFacts {
  /** All tables that can be vacuumed, largest first. Waits for no lock. */
  tables(): Promise<VacuumTable[]>;
  /** Undefined if there is no such table. */
  marks(schema: string, table: string): Promise<VacuumMarks | undefined>;
  /** Holders of locks that block a vacuum of that mode, longest first. */
  holders(mode: VacuumMode, schema: string, table: string): Promise<LockHolder[]>;
  /** Undefined if no statement has the name of that job. */
  statement(job: string): Promise<VacuumStatement | undefined>;
  server(): Promise<VacuumServer>;
}

/** Our own database, for health. */
export interface State {
  /** Commits one small row; rejects within a few seconds if that is not possible. */
  writeOnce(): Promise<void>;
}

export interface MountSample {
  mount: string;
  total_bytes: number;
  free_bytes: number;
  /** True if the files of the core's database are on it; false also if unknown. */
  holds_database: boolean;
  holds_wal: boolean;
}

export interface GrowthSample {
  /** ISO 8601. */
  at: string;
  /** Null if the database was unavailable, or a table was locked and may have been in copy. */
  database_bytes: number | null;
  wal_bytes: number | null;
  max_wal_bytes: number | null;
  mounts: MountSample[];
}

export interface TableDay extends TableSize {
  /** `2026-01-31`, in UTC. */
  day: string;
}

/** Every call rejects with an AppError `unavailable` if our own database is unavailable. */
export interface GrowthHistory {
  keepSample(sample: GrowthSample): Promise<void>;
  /** From that time on, ascending. */
  samples(since: string): Promise<GrowthSample[]>;
  /** Replaces the tables of that day. */
  keepTables(day: string, tables: readonly TableSize[]): Promise<void>;
  /** From that day on, by day and name. */
  tables(sinceDay: string): Promise<TableDay[]>;
  /**
   * Keeps one sample per hour beyond two days, one per day beyond two months, none beyond 400 days,
   * and none from the future. Resolves with the number of removed samples.
   */
  thin(now: string): Promise<number>;
}

export interface TableSize {
  schema: string;
  table: string;
  /** Its files: rows, TOAST and indexes. */
  bytes: number;
  /** Live rows, from the statistics. */
  rows: number;
}

export interface Filler {
  /**
   * A CoT type, `files`, or the UID of a client; `(none)` if missing. One line of at most 200
   * characters.
   */
  name: string;
  /** Share of all bytes of that time, 0 to 1. */
  share: number;
  /** Estimate for the whole time. */
  rows: number;
  bytes: number;
  /** For a UID: its most frequent type, and its callsign if known. */
  cot_type?: string | null;
  callsign?: string | null;
}

/** The largest sources of the last `seconds`, from an even sample of rows. */
export interface Fillers {
  seconds: number;
  /** Number of sampled rows. */
  sampled: number;
  /** Estimates for the whole time. */
  rows: number;
  bytes: number;
  /** The ten with most bytes, largest first. */
  types: Filler[];
  uids: Filler[];
}

/** Every call rejects with an AppError `unavailable` if the database is unavailable. */
export interface GrowthFacts {
  tables(): Promise<TableSize[]>;
  /**
   * Sources of events, chat and files stored in the last `seconds`, at most 86,400. Takes at most 2
   * s.
   */
  fillers(seconds: number): Promise<Fillers>;
}

/** The ports that this feature needs, by their names in Deps. */
export interface DatabasePorts {
  vacuumFacts: VacuumFacts;
  coreVacuum: CoreVacuum;
  growthFacts: GrowthFacts;
  growthHistory: GrowthHistory;
}
