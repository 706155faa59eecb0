// Declares the ports of jobs: scheduled jobs, their runs and statistics, and jobs that people
// request.

import type { Thresholds } from '../settings/status.ts';

interface Repeated<D> {
  name: string;
  /**
   * In UTC: five fields, or six starting with seconds. A host with minute precision drops the
   * seconds.
   */
  cron: string;
  /** The interval of a setting: of the times of `cron`, the first in each interval counts. */
  everySeconds?(thresholds: Thresholds): number;
  /**
   * Runs once. The summary goes to the log and to the run's record. `signal` aborts if the run
   * loses its claim or reaches its limit: it must not change anything after that.
   */
  run(deps: D, now: Date, signal: AbortSignal): Promise<Record<string, unknown>>;
}

/** Runs in every process, without a database; runs may overlap. */
interface Unclaimed {
  claim: 'none';
}

/** Runs in one process at a time, claimed in our own database. */
interface Claimed<D> {
  claim: 'row';
  /** A run that takes longer has failed. */
  limitSeconds: number;
  /** Checked before the claim, so that a run with nothing to do leaves no trace; default: true. */
  isWanted?(deps: D): Promise<boolean>;
}

export type Job<D> = Repeated<D> & (Unclaimed | Claimed<D>);

/** Marks health modules for a new measurement after a change. */
export interface HealthMemory {
  /**
   * Discards the measurement of a module, so that it is due at once. With `begunBeforeMs`, only a
   * measurement that began before that time.
   */
  forget(module: string, begunBeforeMs?: number): void | Promise<void>;
}

/**
 * A run claimed by a row, so that no two processes run the same job, and a crashed run is taken
 * over.
 */
export interface Claim {
  name: string;
  /** The slot that the run is for. */
  dueAt: Date;
  /** The running process: one id per process. */
  runner: string;
  /** Starts at 1; higher after crashed runners. */
  attempt: number;
}

export interface JobRuns {
  /**
   * Claims the run of that slot, or takes over an unfinished one whose lease has expired (the claim
   * has its slot). Undefined if the slot is done, or another runner is running this job.
   */
  claim(name: string, dueAt: Date, runner: string, leaseSeconds: number): Promise<Claim | undefined>;
  /** Extends the lease; false if the run belongs to another process by now. */
  renew(claim: Claim, leaseSeconds: number): Promise<boolean>;
  /** Ends the run with its summary or error. False if it belongs to another process by now. */
  finish(claim: Claim, outcome: { summary: unknown } | { error: string }): Promise<boolean>;
  /** Summaries of the runs of a job that finished after `since`, newest first. */
  summaries(name: string, since: Date): Promise<{ finishedAt: Date; summary: unknown }[]>;
  /**
   * Removes the records of finished runs that are older than `before`; resolves with their number.
   */
  prune(before: Date): Promise<number>;
}

type Maybe<T> = T | Promise<T>;

/** A finished run, successful or not. */
export interface EndedRun {
  job: string;
  failed: boolean;
  /** In milliseconds since 1970. */
  endedMs: number;
  seconds: number;
}

export interface JobFigures {
  job: string;
  /** Its interval here; null if it is not in the table. */
  intervalSeconds: number | null;
  runs: number;
  failures: number;
  /** Failures since the last success. */
  failuresInRow: number;
  /** Milliseconds since 1970 and seconds; null before the first run. */
  lastEndedMs: number | null;
  lastSucceededMs: number | null;
  lastSeconds: number | null;
  /** When it last ended here, or was last seen done or running elsewhere; null before that. */
  lastSeenMs: number | null;
}

export interface JobStatistics {
  /** Counts a run of this process. */
  ended(run: EndedRun): Maybe<void>;
  /** Notes that a due run is done or running in another process. */
  elsewhere(job: string, atMs: number): Maybe<void>;
  figures(): Maybe<JobFigures[]>;
}

/**
 * States of a requested long job: a row in our own database that a scheduled job advances in steps,
 * across restarts.
 */
export const OPS_JOB_STATES = ['queued', 'running', 'succeeded', 'failed', 'interrupted'] as const;
export type OpsJobState = (typeof OPS_JOB_STATES)[number];

export interface OpsJob {
  /** A UUID. */
  id: string;
  /** `retention`, `vacuum`: one of a kind at a time. */
  kind: string;
  state: OpsJobState;
  /** 0 to 1. */
  progress: number;
  /** The current step in words; null if it has none. */
  phase: string | null;
  /** 0 to 100 within the phase; null if unknown. */
  phasePercent: number | null;
  /** Times are ISO 8601. */
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  eta: string | null;
  /** Lines for people, each with its time; the last 200. */
  log: string[];
  /** Plain data. */
  input: unknown;
  /** Plain internal data that the job needs to continue. */
  memory: unknown;
  result: unknown;
  error: string | null;
  /** The user who requested it. */
  actor: string;
}

export interface OpsJobChange {
  state?: OpsJobState;
  progress?: number;
  phase?: string | null;
  phasePercent?: number | null;
  startedAt?: string;
  finishedAt?: string;
  eta?: string | null;
  /** Lines to append. */
  log?: string[];
  memory?: unknown;
  result?: unknown;
  error?: string;
}

/** Every call rejects with an AppError `unavailable` if our own database is unavailable. */
export interface OpsJobs {
  /** Rejects with `conflict` if one of that kind is queued or running. */
  add(job: { id: string; kind: string; actor: string; input: unknown; now: string }): Promise<OpsJob>;
  get(id: string): Promise<OpsJob | undefined>;
  /** Newest first. */
  list(
    filter: { kind?: string; state?: OpsJobState },
    offset: number,
    limit: number,
  ): Promise<{ results: OpsJob[]; count: number }>;
  /** Queued or running, oldest first. */
  open(): Promise<OpsJob[]>;
  /** False if it is no longer queued or running. */
  change(id: string, change: OpsJobChange): Promise<boolean>;
  /** Removes those that ended before; resolves with their number. */
  prune(before: string): Promise<number>;
}

/** The ports that this feature needs, by their names in Deps. */
export interface JobPorts {
  jobRuns: JobRuns;
  jobStatistics: JobStatistics;
  opsJobs: OpsJobs;
}
