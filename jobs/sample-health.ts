// Notes where every health module stands, once in five minutes, and reads back after a start what was noted before.

import { sampleHealth } from '../shared/health/sample.ts';
import type { Deps } from '../shared/http/deps.ts';

export async function run(deps: Deps, now: Date): Promise<Record<string, unknown>> {
  return { ...(await sampleHealth(deps, now)) };
}
