// Runs the jobs of the table: for a host that ticks, those that are due; for a host with crons, those of one cron.

import { due, slotStart } from '../domain/due.ts';
import { messageOf } from '../domain/thrown.ts';
import type { Job } from '../ports/job.ts';
import { type ClaimedRunDeps, runClaimed } from './run-claimed.ts';

/** A claimed job is looked at this often also between its slots, so that a crashed run is soon taken over. */
const LOOK_AGAIN_SECONDS = 15;

/** One run of one job. Never rejects: what goes wrong is logged. */
export async function runJob<D extends ClaimedRunDeps>(job: Job<D>, deps: D, runner: string, now: Date): Promise<void> {
  try {
    if (job.claim === 'none') {
      await job.run(deps, now, new AbortController().signal);
      return;
    }
    const dueAt = new Date(slotStart(now.getTime(), job.intervalSeconds(deps)));
    await runClaimed(deps, {
      name: job.name,
      dueAt,
      runner,
      limitSeconds: job.limitSeconds,
      work: (signal) => job.run(deps, now, signal),
    });
  } catch (error) {
    deps.log.warn('job.not_run', { job: job.name, error: messageOf(error) });
  }
}

/**
 * For a host that ticks: runs what is due at each tick, without waiting for what still runs. A job that could not be
 * claimed is tried again after a pause.
 */
export function ticker<D extends ClaimedRunDeps>(
  jobs: readonly Job<D>[],
  deps: D,
  runner: string,
): (now: Date) => void {
  const lastMs = new Map<string, number>();
  const running = new Set<string>();

  async function runClaimedJob(job: Job<D>, now: Date): Promise<void> {
    running.add(job.name);
    await runJob(job, deps, runner, now);
    running.delete(job.name);
  }

  return function tick(now) {
    for (const job of jobs) {
      const seconds =
        job.claim === 'row' ? Math.min(job.intervalSeconds(deps), LOOK_AGAIN_SECONDS) : job.intervalSeconds(deps);
      if (running.has(job.name) || !due(lastMs.get(job.name), seconds, now.getTime())) continue;
      lastMs.set(job.name, now.getTime());
      if (job.claim === 'none') void runJob(job, deps, runner, now);
      else void runClaimedJob(job, now);
    }
  };
}
