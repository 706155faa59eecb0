// Runs one step of the requested simulation, every few seconds while there is one.

import type { Deps } from '../shared/http/deps.ts';
import type { Step } from '../shared/jobs/followed-job.ts';
import { openJob } from '../shared/jobs/ordered-jobs.ts';
import { carryOnSimulation } from '../shared/simulation/carry-on.ts';
import { SIMULATION_JOB } from '../shared/simulation/jobs.ts';

export async function isWanted({ opsJobs }: Deps): Promise<boolean> {
  return (await openJob(opsJobs, SIMULATION_JOB)) !== undefined;
}

export async function run(deps: Deps, _now: Date, signal: AbortSignal): Promise<{ step: Step }> {
  return { step: await carryOnSimulation(deps, signal) };
}
