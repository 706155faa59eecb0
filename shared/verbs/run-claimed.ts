// Runs a job that only one process may run at a time: claim, work under a lease that is renewed, finish. A run whose
// process died is taken over when its lease has ended; one that kills its process again and again is given up.

import { messageOf } from '../domain/thrown.ts';
import type { Claim, JobRuns } from '../ports/job-runs.ts';
import type { Log } from '../ports/log.ts';

export interface ClaimedRunDeps {
  jobRuns: JobRuns;
  log: Log;
}

export interface ClaimedRun {
  name: string;
  dueAt: Date;
  /** One id per process. */
  runner: string;
  work(): Promise<Record<string, unknown>>;
}

export const LEASE_SECONDS = 30;
const RENEW_EVERY_MS = 10_000;
const MOST_ATTEMPTS = 3;

/** `ran`: here and now, with success or not; `elsewhere`: done already, or another process is at it. */
export async function runClaimed({ jobRuns, log }: ClaimedRunDeps, run: ClaimedRun): Promise<'ran' | 'elsewhere'> {
  const claim = await jobRuns.claim(run.name, run.dueAt, run.runner, LEASE_SECONDS);
  if (claim === undefined) return 'elsewhere';
  if (claim.attempt > 1)
    log.warn('job.taken_over', { job: run.name, due_at: claim.dueAt.toISOString(), attempt: claim.attempt });
  const outcome = claim.attempt > MOST_ATTEMPTS ? givenUp(claim) : await workUnderLease(claim, run, jobRuns, log);
  const ours = await jobRuns.finish(claim, outcome);
  const fields = { job: run.name, due_at: claim.dueAt.toISOString() };
  if (!ours) log.warn('job.lost', fields);
  else if ('error' in outcome) log.error('job.failed', { ...fields, error: outcome.error });
  else log.info('job.done', { ...fields, ...outcome.summary });
  return 'ran';
}

type Outcome = { summary: Record<string, unknown> } | { error: string };

async function workUnderLease(claim: Claim, run: ClaimedRun, jobRuns: JobRuns, log: Log): Promise<Outcome> {
  const renewal = setInterval(() => {
    jobRuns.renew(claim, LEASE_SECONDS).catch((error: unknown) => {
      log.warn('job.not_renewed', { job: run.name, error: messageOf(error) });
    });
  }, RENEW_EVERY_MS);
  try {
    return { summary: await run.work() };
  } catch (error) {
    return { error: messageOf(error) };
  } finally {
    clearInterval(renewal);
  }
}

function givenUp({ attempt }: Claim): Outcome {
  return { error: `given up: ${attempt - 1} runners ended in the middle of it` };
}
