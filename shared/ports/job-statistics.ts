// How often each job ran in this process, and how it went.

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
  runs: number;
  failures: number;
  /** Milliseconds since 1970 and seconds; null before the first run. */
  lastEndedMs: number | null;
  lastSucceededMs: number | null;
  lastSeconds: number | null;
}

export interface JobStatistics {
  /** Counts a run; what another process runs is counted there. */
  ended(run: EndedRun): Maybe<void>;
  figures(): Maybe<JobFigures[]>;
}
