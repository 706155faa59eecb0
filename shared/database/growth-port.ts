// What Holdfast remembers of growth: samples of the core's database and of the disks, and the size of each table once a day.

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
export interface GrowthBook {
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

// How large the core's tables are and what fills them, read as a role that may only read. Nothing here reads a whole table or waits for a
// lock.

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
