// A thing that Holdfast does again and again by itself.

import type { Thresholds } from '../settings/status.ts';

interface Repeated<D> {
  name: string;
  /** In UTC: five fields, or six that begin with the seconds. A host that knows minutes only drops the seconds. */
  cron: string;
  /** A setting that says how often: of the times of `cron` the first in each so many seconds counts. */
  everySeconds?(thresholds: Thresholds): number;
  /**
   * One run. The summary goes to the log and to the record of the run. `signal` aborts when the run has lost its claim or
   * reached its limit: nothing more may be changed then.
   */
  run(deps: D, now: Date, signal: AbortSignal): Promise<Record<string, unknown>>;
}

/** Every process runs it for itself, without a database, and runs may overlap. */
interface Unclaimed {
  claim: 'none';
}

/** One process at a time, claimed in our own database. */
interface Claimed<D> {
  claim: 'row';
  /** A run that takes longer has failed. */
  limitSeconds: number;
  /** Asked before a run is claimed, so that one that would find nothing to do leaves no trace; default: always. */
  isWanted?(deps: D): Promise<boolean>;
}

export type Job<D> = Repeated<D> & (Unclaimed | Claimed<D>);

/** What a change makes stale in health: measured again soon. */
export interface HealthMemory {
  /**
   * What was measured of a module before counts no more: it is due at once. With `begunBeforeMs` only a measurement that began
   * before that time.
   */
  forget(module: string, begunBeforeMs?: number): void | Promise<void>;
}

/**
 * Runs of jobs, claimed by a row, so that no two processes run the same job at once and a crashed run is taken over.
 */
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

type Maybe<T> = T | Promise<T>;

/**
 * How often each job ran in this process and how it went, and whether it runs at all, here or elsewhere.
 * A run that has ended, with success or not.
 */
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

/**
 * Long work that somebody has asked for: a row in our own database, carried on step by step by a job, so that it survives restarts.
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
  /** What it is at just now, in words; null when it does not say. */
  phase: string | null;
  /** 0 to 100 within the phase; null where nobody knows. */
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
  /** Plain data that the job itself needs to go on; shown to nobody. */
  memory: unknown;
  result: unknown;
  error: string | null;
  /** Who has asked for it. */
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
  /** Lines that are added. */
  log?: string[];
  memory?: unknown;
  result?: unknown;
  error?: string;
}

/** Every call rejects with an AppError `unavailable` when our own database does not answer. */
export interface OpsJobs {
  /** `conflict` when one of that kind is queued or running. */
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
  /** False when it is neither queued nor running any more. */
  change(id: string, change: OpsJobChange): Promise<boolean>;
  /** Removes those that ended before; resolves with their number. */
  prune(before: string): Promise<number>;
}

/** What this feature asks of the outside, by the names in Deps. */
export interface JobPorts {
  jobRuns: JobRuns;
  jobStatistics: JobStatistics;
  opsJobs: OpsJobs;
}
