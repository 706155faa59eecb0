// Runs one step of the requested vacuum, every few seconds while there is one.

import { carryOnVacuum } from '../shared/database/vacuum/carry-on.ts';
import { openVacuumJob } from '../shared/database/vacuum/jobs.ts';
import type { Step } from '../shared/database/vacuum/work.ts';
import type { Deps } from '../shared/http/deps.ts';

export async function isWanted({ opsJobs }: Deps): Promise<boolean> {
  return (await openVacuumJob(opsJobs)) !== undefined;
}

export async function run(deps: Deps, _now: Date, signal?: AbortSignal): Promise<{ step: Step }> {
  return { step: await carryOnVacuum(deps, signal) };
}
