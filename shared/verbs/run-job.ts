// Runs the jobs of the table: for a host that ticks, those that are due; for a host with crons, those of one cron.

import { due, slotStart } from '../domain/due.ts';
import { messageOf } from '../domain/thrown.ts';
import type { Job } from '../ports/job.ts';
import type { JobStatistics } from '../ports/job-statistics.ts';
import { type ClaimedRunDeps, runClaimed, type RunEnd } from './run-claimed.ts';

const MINUTE_SECONDS = 60;

export interface RunJobDeps extends ClaimedRunDeps {
  jobStatistics: JobStatistics;
}

/** A claimed job is looked at this often also between its slots, so that a crashed run is soon taken over. */
const LOOK_AGAIN_SECONDS = 15;

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
    const dueAt = new Date(slotStart(now.getTime(), job.intervalSeconds(deps)));
    return await runClaimed(deps, {
      name: job.name,
      dueAt,
      runner,
      limitSeconds: job.limitSeconds,
      isQuiet: job.intervalSeconds(deps) < MINUTE_SECONDS,
      work: (signal) => job.run(deps, now, signal),
    });
  } catch (error) {
    deps.log.warn('job.not_run', { job: job.name, error: messageOf(error) });
    return job.claim === 'none' ? 'failed' : 'not claimed';
  }
}

export interface Ticker {
  /** Runs what is due, without waiting for what still runs. A job that could not be claimed is tried again after a pause. */
  tick: (now: Date) => void;
  /** Runs the job of that name, due or not. */
  runNow: (name: string, now: Date) => void;
  /** Resolves when nothing of it runs any more. */
  idle: () => Promise<void>;
}

/** For a host that ticks. */
export function ticker<D extends RunJobDeps>(jobs: readonly Job<D>[], deps: D, runner: string): Ticker {
  const lastMs = new Map<string, number>();
  const running = new Map<Promise<void>, Job<D>>();

  function start(job: Job<D>, now: Date): void {
    const run = runJob(job, deps, runner, now).finally(() => running.delete(run));
    running.set(run, job);
  }

  return {
    tick(now) {
      const claimed = new Set([...running.values()].filter(({ claim }) => claim === 'row'));
      for (const job of jobs) {
        const seconds =
          job.claim === 'row' ? Math.min(job.intervalSeconds(deps), LOOK_AGAIN_SECONDS) : job.intervalSeconds(deps);
        if (claimed.has(job) || !due(lastMs.get(job.name), seconds, now.getTime())) continue;
        lastMs.set(job.name, now.getTime());
        start(job, now);
      }
    },
    runNow(name, now) {
      for (const job of jobs.filter((each) => each.name === name)) start(job, now);
    },
    async idle() {
      await Promise.all(running.keys());
    },
  };
}
