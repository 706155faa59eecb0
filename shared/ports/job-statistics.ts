// How often each job ran in this process and how it went, and whether it runs at all, here or elsewhere.

type Maybe<T> = T | Promise<T>;

/** A run that has ended, with success or not. */
export interface EndedRun {
  job: string;
  failed: boolean;
  /** In milliseconds since 1970. */
  endedMs: number;
  seconds: number;
}

export interface JobFigures {
  job: string;
  /** How often it is to run here; null for one that is not in the table. */
  intervalSeconds: number | null;
  runs: number;
  failures: number;
  /** Since the last success; 0 as long as nothing has failed. */
  failuresInRow: number;
  /** Milliseconds since 1970 and seconds; null before the first run. */
  lastEndedMs: number | null;
  lastSucceededMs: number | null;
  lastSeconds: number | null;
  /** When it last ended here, or what is due was last found done or under way; null before that. */
  lastSeenMs: number | null;
}

export interface JobStatistics {
  /** Counts a run; what another process runs is counted there. */
  ended(run: EndedRun): Maybe<void>;
  /** What is due is done already, or another process is at it. */
  elsewhere(job: string, atMs: number): Maybe<void>;
  figures(): Maybe<JobFigures[]>;
}
