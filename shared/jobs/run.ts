// Runs the jobs of the table whose cron has fired.

import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { due } from '@holdfast/kit/time';
import { unlessAborted } from '@holdfast/kit/timeout';
import type { Thresholds } from '../settings/status.ts';
import { intervalSeconds, slotOf, startCrons } from './crons.ts';
import type { Claim, Job, JobRuns, JobStatistics } from './port.ts';

/**
 * Runs a job that only one process may run at a time: claim, work under a lease that is renewed, finish. A run whose
 * process died is taken over when its lease has ended; one that kills its process again and again is given up.
 */
export interface ClaimedRunDeps {
  jobRuns: JobRuns;
  log: Log;
}

export interface ClaimedRun {
  name: string;
  dueAt: Date;
  /** One id per process. */
  runner: string;
  /** The run has failed when it takes longer. */
  limitSeconds: number;
  /** It runs so often that a line each time would hide the others: the log says only how it failed. */
  isQuiet?: boolean;
  /** `signal` aborts when the claim is lost or the limit is reached. */
  work(signal: AbortSignal): Promise<Record<string, unknown>>;
}

/** How long a claim holds without renewal, and the pauses; shorter in tests. */
export interface Pace {
  leaseSeconds: number;
  renewEveryMs: number;
  /** Between two tries to write down that a run is finished. */
  finishAgainMs: number;
}

export const PACE: Pace = { leaseSeconds: 30, renewEveryMs: 10_000, finishAgainMs: 2000 };
const MAX_ATTEMPTS = 3;
const FINISH_TRIES = 10;

type Outcome = { summary: Record<string, unknown> } | { error: string };

/** How a run ended here; `elsewhere`: done already, or another process is at it. */
export type RunEnd = 'done' | 'failed' | 'elsewhere';

/** A run whose claim was lost has failed here, whatever it brought. */
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

/** A renewal that fails is tried again; one that is refused ends the work, for somebody else has it. */
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

/** Work that is done is not done again because its end could not be written down at once. */
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
  return { error: `given up: ${attempt - 1} runners ended in the middle of it` };
}

const MINUTE_SECONDS = 60;

export interface RunJobDeps extends ClaimedRunDeps {
  jobStatistics: JobStatistics;
  thresholds: Thresholds;
}

/** One run of one job, counted when it ran here, noted when another process has it. Never rejects: what goes wrong is logged. */
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
    // Nothing to do is as good as done: the job is seen to be alive.
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

/** Claimed jobs are also looked at then, so that a crashed run, or one that could not be claimed, does not wait for its next slot. */
const LOOK_AGAIN = '*/15 * * * * *';
/** The first requests are answered before the first measurements take the processor. */
const FIRST_MS = 25;

/** The jobs of a process that knows seconds. No run waits for another. */
export class JobRunner<D extends RunJobDeps> {
  /** Every cron that `fired` is to be called for. */
  readonly crons: readonly string[];
  readonly #jobs: readonly Job<D>[];
  readonly #deps: D;
  readonly #runner: string;
  readonly #running = new Map<Promise<void>, Job<D>>();
  /** When jobs that a setting times were last started. */
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

  /** Resolves when nothing of it runs any more. */
  async idle(): Promise<void> {
    await Promise.all(this.#running.keys());
  }

  #isDue(job: Job<D>, now: Date): boolean {
    const seconds = job.everySeconds?.(this.#deps.thresholds);
    return seconds === undefined || due(this.#lastMs.get(job.name), seconds, now.getTime());
  }

  /** One that must be claimed does not run twice in one process either. */
  #run(job: Job<D>, now: Date): void {
    if (job.claim === 'row' && [...this.#running.values()].includes(job)) return;
    this.#lastMs.set(job.name, now.getTime());
    const run = runJob(job, this.#deps, this.#runner, now).finally(() => this.#running.delete(run));
    this.#running.set(run, job);
  }
}
