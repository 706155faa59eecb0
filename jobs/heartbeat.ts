// Sends a heartbeat to an external monitor while the overall status can be computed.

import type { Deps } from '../shared/http/deps.ts';

export async function run(deps: Deps): Promise<{ beat: boolean }> {
  if (deps.heartbeat === undefined || !(await deps.health.isComplete())) return { beat: false };
  await deps.heartbeat.beat();
  return { beat: true };
}
