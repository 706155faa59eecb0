// The statement of a vacuum itself, as the owner of the core's database, on a connection of the Node host. The server goes on with it when
// that process dies; everybody finds it by its application name.

export interface VacuumOrder {
  /** A UUID: the name of the statement. */
  job: string;
  mode: VacuumMode;
  schema: string;
  table: string;
  /** As the reader has seen it: another database, or another table of that name, is refused. */
  oid: VacuumMarks['oid'];
}

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

// What a vacuum has to know of the core's database, read as a role that may only read: its tables, what would be given back, who holds a
// table, and what goes on under the name of a job.

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

// Our own database, as far as health looks at it.

export interface State {
  /** Commits one small row; rejects within a few seconds when that is not possible. */
  writeOnce(): Promise<void>;
}
