// Samples the state of every health module every five minutes, and reads earlier samples after a
// start.

import { sampleHealth } from '../shared/health/sample.ts';
import type { Deps } from '../shared/http/deps.ts';

export async function run(deps: Deps, now: Date): Promise<Record<string, unknown>> {
  return { ...(await sampleHealth(deps, now)) };
}
