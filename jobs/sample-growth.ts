// Notes how large the core's database is and how full the disks are, once a minute.

import { sampleGrowth } from '../shared/database/growth/sample.ts';
import type { Deps } from '../shared/http/deps.ts';

export async function run(deps: Deps, now: Date, signal: AbortSignal): Promise<Record<string, unknown>> {
  return { ...(await sampleGrowth(deps, now, signal)) };
}
