// Samples the size of the core's database and the use of the disks once a minute.

import { sampleGrowth } from '../shared/database/growth/sample.ts';
import type { Deps } from '../shared/http/deps.ts';

export async function run(deps: Deps, now: Date, signal: AbortSignal): Promise<Record<string, unknown>> {
  return { ...(await sampleGrowth(deps, now, signal)) };
}
