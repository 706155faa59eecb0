// Runs one step of the requested retention run, every few seconds while there is one.

import type { Deps } from '../shared/http/deps.ts';
import type { Step } from '../shared/jobs/followed-job.ts';
import { carryOnRetention } from '../shared/retention/carry-on.ts';
import { openRetentionJob } from '../shared/retention/jobs.ts';

export async function isWanted({ opsJobs }: Deps): Promise<boolean> {
  return (await openRetentionJob(opsJobs)) !== undefined;
}

export async function run(deps: Deps): Promise<{ step: Step }> {
  return { step: await carryOnRetention(deps) };
}
