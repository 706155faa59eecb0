// Notes where every health module stands, once in five minutes, and reads back after a start what was noted before.

import type { Deps } from '../shared/http/deps.ts';
import { sampleHealth } from '../shared/verbs/sample-health.ts';

export async function run(deps: Deps, now: Date): Promise<Record<string, unknown>> {
  return { ...(await sampleHealth(deps, now)) };
}
