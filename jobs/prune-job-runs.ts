// Removes our own records of finished job runs after a month, and of requested jobs after three;
// nothing of the core.

import { DAY_MS } from '@holdfast/kit/time';
import type { Deps } from '../shared/http/deps.ts';

const KEPT_DAYS = 30;
const OPS_JOBS_KEPT_DAYS = 90;

export async function run(deps: Deps, now: Date): Promise<{ removed: number; ops_jobs_removed: number }> {
  const before = (days: number): Date => new Date(now.getTime() - days * DAY_MS);
  return {
    removed: await deps.jobRuns.prune(before(KEPT_DAYS)),
    ops_jobs_removed: await deps.opsJobs.prune(before(OPS_JOBS_KEPT_DAYS).toISOString()),
  };
}
