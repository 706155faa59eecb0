// What Holdfast remembers of growth: samples of the core's database and of the disks, and the size of each table once a day.

import type { TableSize } from './growth-facts.ts';

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
