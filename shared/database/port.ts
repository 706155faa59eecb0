// The outside of the database feature: the vacuum statement and what it must know, the growth of the core's database and what is
// remembered of it, and a write to our own database.

export interface VacuumOrder {
  /** A UUID: the name of the statement. */
  job: string;
  mode: VacuumMode;
  schema: string;
  table: string;
  /** As the reader has seen it: another database, or another table of that name, is refused. */
  oid: VacuumMarks['oid'];
}

/**
 * As the owner of the core's database, on a connection of the Node host. The server goes on with a statement when that process
 * dies; everybody finds it by its application name.
 */
export interface CoreVacuum {
  /**
   * Begins the statement and resolves once it runs or has ended; its end is told by `VacuumFacts.statement`, for a minute or until `settle`.
   * Gives up waiting for a lock after 5 s (SQLSTATE 55P03). Rejects with `unavailable` when nobody may begin one (no owner's URL, no answer),
   * `conflict` when one of that job still runs, `upstream` when the table is another one.
   */
  begin(order: VacuumOrder): Promise<void>;
  /** Ends the connection of a statement that has ended; resolves with what the server has said of its error, if this process knows. */
  settle(job: string): Promise<string | null>;
}

export const VACUUM_MODES = ['full', 'standard'] as const;
/** `full` rewrites a table and gives its room back to the disk, under an exclusive lock; `standard` makes it usable for later rows. */
export type VacuumMode = (typeof VACUUM_MODES)[number];

export interface VacuumTable {
  schema: string;
  table: string;
  /** Its files: rows, TOAST and indexes. */
  bytes: number;
  /** What VACUUM FULL would give back to the disk, estimated; null when the table was never analysed. */
  reclaimable_bytes: number | null;
  dead_tuples: number;
  live_tuples: number;
  /** The owner of the database may vacuum it; false for tables of an extension that belong to somebody else. */
  allowed: boolean;
  /** It, its TOAST table or an index lies in a tablespace of its own, so on another disk perhaps. */
  elsewhere: boolean;
}

/** What changes when a table was vacuumed: the same marks before and after mean that nothing was done. */
export interface VacuumMarks {
  /** Of the table in the catalogue; another one: it was made anew. */
  oid: number;
  /** Another one: the table was rewritten. */
  filenode: number;
  /** How often it was vacuumed by hand, without FULL; counted from 0 again when the server has crashed. */
  vacuums: number;
  bytes: number;
  dead_tuples: number;
}

/** Somebody who holds a lock on a table that keeps a vacuum out. */
export interface LockHolder {
  /** 0: a prepared transaction. */
  pid: number;
  user: string;
  /** Of a prepared transaction the literal of its name. */
  application: string;
  /** ISO 8601: since when its transaction runs; null when it cannot be seen. */
  since: string | null;
}

/** The statement of a job, as the server shows it to everybody. */
export type VacuumStatement =
  | {
      state: 'running';
      pid: number;
      /** It waits for a lock. */
      waits: boolean;
      /** PostgreSQL's own word, or null before the first one. */
      phase: string | null;
      /** 0 to 100 within the phase; null where PostgreSQL gives none. */
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

/** Every call rejects with an AppError `unavailable` when the database does not answer. */
export interface VacuumFacts {
  /** Every table that can be vacuumed, the largest first. Waits for no lock. */
  tables(): Promise<VacuumTable[]>;
  /** Undefined when there is no such table. */
  marks(schema: string, table: string): Promise<VacuumMarks | undefined>;
  /** Whose locks a vacuum of that mode would have to wait for, the one that has held longest first. */
  holders(mode: VacuumMode, schema: string, table: string): Promise<LockHolder[]>;
  /** Undefined when nothing goes on under the name of that job. */
  statement(job: string): Promise<VacuumStatement | undefined>;
  server(): Promise<VacuumServer>;
}

/** Our own database, as far as health looks at it. */
export interface State {
  /** Commits one small row; rejects within a few seconds when that is not possible. */
  writeOnce(): Promise<void>;
}

export interface MountSample {
  mount: string;
  total_bytes: number;
  free_bytes: number;
  /** The files of the core's database lie on it; false also where that is not known. */
  holds_database: boolean;
  holds_wal: boolean;
}

export interface GrowthSample {
  /** ISO 8601. */
  at: string;
  /** Null while the database was away, or a table of it was locked and may have been copied. */
  database_bytes: number | null;
  wal_bytes: number | null;
  max_wal_bytes: number | null;
  mounts: MountSample[];
}

export interface TableDay extends TableSize {
  /** `2026-01-31`, in UTC. */
  day: string;
}

/** Every call rejects with an AppError `unavailable` when our own database does not answer. */
export interface GrowthHistory {
  keepSample(sample: GrowthSample): Promise<void>;
  /** From that time on, ascending. */
  samples(since: string): Promise<GrowthSample[]>;
  /** Replaces what is known of that day. */
  keepTables(day: string, tables: readonly TableSize[]): Promise<void>;
  /** From that day on, by day and name. */
  tables(sinceDay: string): Promise<TableDay[]>;
  /**
   * Of samples older than two days one an hour stays, older than two months one a day, and nothing older than 400 days or of the
   * future. Resolves with the number of samples that were removed.
   */
  thin(now: string): Promise<number>;
}

export interface TableSize {
  schema: string;
  table: string;
  /** Its files: rows, TOAST and indexes. */
  bytes: number;
  /** Live rows, as the statistics have them. */
  rows: number;
}

export interface Filler {
  /** A CoT type or `files`, or the UID of a client; `(none)` where there is none. At most 200 characters on one line. */
  name: string;
  /** Of the bytes of all that came in that time, 0 to 1. */
  share: number;
  /** An estimate for the whole time. */
  rows: number;
  bytes: number;
  /** Of a UID: the type that it sends most, and its callsign where one is known. */
  cot_type?: string | null;
  callsign?: string | null;
}

/** What came in the last `seconds`, from rows that were taken evenly out of that time. */
export interface Fillers {
  seconds: number;
  /** Rows that were looked at. */
  sampled: number;
  /** Estimates for the whole time. */
  rows: number;
  bytes: number;
  /** The ten that took most bytes, largest first. */
  types: Filler[];
  uids: Filler[];
}

/** Every call rejects with an AppError `unavailable` when the database does not answer. */
export interface GrowthFacts {
  tables(): Promise<TableSize[]>;
  /** Of the events, chat and files that the core has stored in the last `seconds`; at most 86,400. Waits no longer than 2 s. */
  fillers(seconds: number): Promise<Fillers>;
}

/** What this feature asks of the outside, by the names in Deps. */
export interface DatabasePorts {
  vacuumFacts: VacuumFacts;
  coreVacuum: CoreVacuum;
  growthFacts: GrowthFacts;
  growthHistory: GrowthHistory;
}
