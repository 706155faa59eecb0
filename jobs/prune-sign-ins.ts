// Removes expired sessions and API tokens.

import type { Deps } from '../shared/http/deps.ts';

export async function run(deps: Deps, now: Date): Promise<{ removed: number }> {
  return { removed: await deps.signIns.prune(now.toISOString()) };
}
