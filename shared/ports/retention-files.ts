// The retention files of the core ({data_dir}/conf/retention) and its retention log. What the variables of the settings say is
// written there before the core starts; while it runs it reads them no more.

import type { RetentionUnit } from '../domain/retention.ts';
import type { CoreRetentionPolicy } from './core-retention.ts';

/** What the settings ask for: undefined where a variable is unset. */
export interface WantedRetention {
  /** Days. */
  cot: number | undefined;
  geochat: number | undefined;
  /** Quartz. */
  cron: string | undefined;
  /** Must be set when one of the others is. */
  unit: RetentionUnit | undefined;
}

export interface RetentionFileContents {
  /** In the unit of the core. A file that is missing keeps everything. */
  policy: CoreRetentionPolicy;
  exemptKeywords: string[];
  /** The core's own cron, or `-`. */
  schedule: string;
}

export interface SyncedRetention {
  /** Names of the files that were written. */
  written: string[];
  /** What was done, in sentences: set, undone, left as a person has it. */
  said: string[];
}

/** Rejects with an AppError that names the file: `invalid` when it cannot be read as what it is, `unavailable` for the disk. */
export interface RetentionFiles {
  read(): Promise<RetentionFileContents>;
  /** Writes what is missing or different, each file whole or not at all; a crash at any moment is made good by the next call. */
  sync(wanted: WantedRetention): Promise<SyncedRetention>;
  /** The last lines of the retention log of a release, oldest first; undefined when there is none. */
  log(): Promise<string[] | undefined>;
}
