// Runs jobs when their cron fires.

import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { due } from '@holdfast/kit/time';
import { unlessAborted } from '@holdfast/kit/timeout';
import type { Thresholds } from '../settings/status.ts';
import { intervalSeconds, slotOf, startCrons } from './crons.ts';
import type { Claim, Job, JobRuns, JobStatistics } from './port.ts';

/** The dependencies of a claimed run: it claims, works under a renewed lease, and finishes. */
export interface ClaimedRunDeps {
  jobRuns: JobRuns;
  log: Log;
}

export interface ClaimedRun {
  name: string;
  dueAt: Date;
  /** One id per process. */
  runner: string;
  /** A run that takes longer has failed. */
  limitSeconds: number;
  /** True for frequent jobs, of which only failures are logged. */
  isQuiet?: boolean;
  /** `signal` aborts if the claim is lost or the limit is reached. */
  work(signal: AbortSignal): Promise<Record<string, unknown>>;
}

/** The lease and the pauses of a run; shorter in tests. */
export interface Pace {
  leaseSeconds: number;
  renewEveryMs: number;
  /** Between two tries to record the end of a run. */
  finishAgainMs: number;
}

export const PACE: Pace = { leaseSeconds: 30, renewEveryMs: 10_000, finishAgainMs: 2000 };
const MAX_ATTEMPTS = 3;
const FINISH_TRIES = 10;

type Outcome = { summary: Record<string, unknown> } | { error: string };

/** How a run ended here; `elsewhere`: done already, or running in another process. */
export type RunEnd = 'done' | 'failed' | 'elsewhere';

/**
 * A run whose process died is taken over when its lease has expired; one that keeps killing its
 * process is given up. A run that lost its claim has failed here, regardless of its outcome.
 */
export async function runClaimed(
  { jobRuns, log }: ClaimedRunDeps,
  run: ClaimedRun,
  pace: Pace = PACE,
): Promise<RunEnd> {
  const claim = await jobRuns.claim(run.name, run.dueAt, run.runner, pace.leaseSeconds);
  if (claim === undefined) return 'elsewhere';
  const fields = { job: run.name, due_at: claim.dueAt.toISOString() };
  if (claim.attempt > 1) log.warn('job.taken_over', { ...fields, attempt: claim.attempt });
  const losing = new AbortController();
  const renewal = setInterval(() => void renew(claim, jobRuns, log, losing, pace), pace.renewEveryMs);
  try {
    const outcome = claim.attempt > MAX_ATTEMPTS ? givenUp(claim) : await work(run, losing);
    const recorded = await finish(claim, outcome, jobRuns, pace);
    if (recorded === 'lost') log.warn('job.lost', fields);
    else if (recorded === 'not recorded') log.error('job.not_recorded', { ...fields, ...outcome });
    else if ('error' in outcome) log.error('job.failed', { ...fields, error: outcome.error });
    else if (run.isQuiet !== true) log.info('job.done', { ...fields, ...outcome.summary });
    return recorded === 'lost' || 'error' in outcome ? 'failed' : 'done';
  } finally {
    clearInterval(renewal);
  }
}

/** A failed renewal is retried; a rejected one ends the work, as another process has it. */
async function renew(claim: Claim, jobRuns: JobRuns, log: Log, losing: AbortController, pace: Pace): Promise<void> {
  try {
    if (!(await jobRuns.renew(claim, pace.leaseSeconds))) losing.abort(new Error('another process has taken over'));
  } catch (error) {
    log.warn('job.not_renewed', { job: claim.name, error: messageOf(error) });
  }
}

async function work(run: ClaimedRun, losing: AbortController): Promise<Outcome> {
  const { limitSeconds } = run;
  const late = setTimeout(() => losing.abort(new Error(`not done within ${limitSeconds} s`)), limitSeconds * 1000);
  try {
    return { summary: await unlessAborted(losing.signal, () => run.work(losing.signal)) };
  } catch (error) {
    return { error: messageOf(error) };
  } finally {
    clearTimeout(late);
  }
}

/** Retries, so that finished work is not repeated because its end could not be recorded at once. */
async function finish(
  claim: Claim,
  outcome: Outcome,
  jobRuns: JobRuns,
  { finishAgainMs }: Pace,
): Promise<'finished' | 'lost' | 'not recorded'> {
  for (let tries = 1; tries <= FINISH_TRIES; tries++) {
    try {
      return (await jobRuns.finish(claim, outcome)) ? 'finished' : 'lost';
    } catch {
      await new Promise((pause) => setTimeout(pause, finishAgainMs));
    }
  }
  return 'not recorded';
}

function givenUp({ attempt }: Claim): Outcome {
  return { error: `given up: ${attempt - 1} runners died during this run` };
}

const MINUTE_SECONDS = 60;

export interface RunJobDeps extends ClaimedRunDeps {
  jobStatistics: JobStatistics;
  thresholds: Thresholds;
}

/**
 * Runs one job once, and counts it, or notes that it runs elsewhere. Never rejects: errors are
 * logged.
 */
export async function runJob<D extends RunJobDeps>(job: Job<D>, deps: D, runner: string, now: Date): Promise<void> {
  const began = performance.now();
  const end = await attempt(job, deps, runner, now);
  if (end === 'not claimed') return;
  const ms = performance.now() - began;
  const endedMs = now.getTime() + ms;
  try {
    if (end === 'elsewhere') await deps.jobStatistics.elsewhere(job.name, endedMs);
    else await deps.jobStatistics.ended({ job: job.name, failed: end === 'failed', endedMs, seconds: ms / 1000 });
  } catch (error) {
    deps.log.warn('job.not_counted', { job: job.name, error: messageOf(error) });
  }
}

async function attempt<D extends RunJobDeps>(
  job: Job<D>,
  deps: D,
  runner: string,
  now: Date,
): Promise<RunEnd | 'not claimed'> {
  try {
    if (job.claim === 'none') {
      await job.run(deps, now, new AbortController().signal);
      return 'done';
    }
    // Nothing to do counts as done: the job is alive.
    if (job.isWanted !== undefined && !(await job.isWanted(deps))) return 'elsewhere';
    return await runClaimed(deps, {
      name: job.name,
      dueAt: slotOf(job, deps.thresholds, now),
      runner,
      limitSeconds: job.limitSeconds,
      isQuiet: intervalSeconds(job, deps.thresholds) < MINUTE_SECONDS,
      work: (signal) => job.run(deps, now, signal),
    });
  } catch (error) {
    deps.log.warn('job.not_run', { job: job.name, error: messageOf(error) });
    return job.claim === 'none' ? 'failed' : 'not claimed';
  }
}

/**
 * Claimed jobs are also checked then, so that a crashed or unclaimed run does not wait for its next
 * slot.
 */
const LOOK_AGAIN = '*/15 * * * * *';
/** A short delay, so that first requests are served before the first measurements. */
const FIRST_MS = 25;

/** Runs the jobs of a process with second precision. No run waits for another. */
export class JobRunner<D extends RunJobDeps> {
  /** Every cron for which `fired` must be called. */
  readonly crons: readonly string[];
  readonly #jobs: readonly Job<D>[];
  readonly #deps: D;
  readonly #runner: string;
  readonly #running = new Map<Promise<void>, Job<D>>();
  /** When each job was last started. */
  readonly #lastMs = new Map<string, number>();

  /** `runner`: one id per process. */
  constructor(jobs: readonly Job<D>[], deps: D, runner: string) {
    this.#jobs = jobs;
    this.#deps = deps;
    this.#runner = runner;
    this.crons = [...new Set([...jobs.map(({ cron }) => cron), LOOK_AGAIN])];
  }

  /** Runs every job soon, and from then on at the times of its cron. */
  start(stopped: AbortSignal): void {
    const first = setTimeout(() => this.runAll(new Date()), FIRST_MS);
    stopped.addEventListener('abort', () => clearTimeout(first));
    startCrons(this.crons, (cron, now) => this.fired(cron, now), stopped);
  }

  /** Runs the jobs of a cron that has just fired. */
  fired(cron: string, now: Date): void {
    for (const job of this.#jobs) {
      const isTurn = job.cron === cron && this.#isDue(job, now);
      if (isTurn || (cron === LOOK_AGAIN && job.claim === 'row')) this.#run(job, now);
    }
  }

  runAll(now: Date): void {
    for (const job of this.#jobs) this.#run(job, now);
  }

  /** Runs the job of that name, due or not. */
  runNow(name: string, now: Date): void {
    for (const job of this.#jobs) if (job.name === name) this.#run(job, now);
  }

  /** Resolves once no run is active. */
  async idle(): Promise<void> {
    await Promise.all(this.#running.keys());
  }

  #isDue(job: Job<D>, now: Date): boolean {
    const seconds = job.everySeconds?.(this.#deps.thresholds);
    return seconds === undefined || due(this.#lastMs.get(job.name), seconds, now.getTime());
  }

  /** A claimed job does not run twice in one process. */
  #run(job: Job<D>, now: Date): void {
    if (job.claim === 'row' && [...this.#running.values()].includes(job)) return;
    this.#lastMs.set(job.name, now.getTime());
    const run = runJob(job, this.#deps, this.#runner, now).finally(() => this.#running.delete(run));
    this.#running.set(run, job);
  }
}
