// Runs of jobs, claimed by a row, so that no two processes run the same job at once and a crashed run is taken over.

export interface Claim {
  name: string;
  /** The slot that the run is for. */
  dueAt: Date;
  /** Who runs it: one id per process. */
  runner: string;
  /** From 1; more when earlier runners crashed. */
  attempt: number;
}

export interface JobRuns {
  /**
   * Claims the run of that slot, or takes over an unfinished one whose lease has ended (its own slot is then in the
   * claim). Undefined when the slot is done, or when another runner is at work on this job.
   */
  claim(name: string, dueAt: Date, runner: string, leaseSeconds: number): Promise<Claim | undefined>;
  /** Extends the lease; false when the run belongs to somebody else by now. */
  renew(claim: Claim, leaseSeconds: number): Promise<boolean>;
  /** Ends the run: with its summary, or with the error. False when it belongs to somebody else by now. */
  finish(claim: Claim, outcome: { summary: unknown } | { error: string }): Promise<boolean>;
  /** Summaries of the runs of a job that finished after `since`, newest first. */
  summaries(name: string, since: Date): Promise<{ finishedAt: Date; summary: unknown }[]>;
  /** Removes the records of finished runs that are older than `before`; resolves with their number. */
  prune(before: Date): Promise<number>;
}
