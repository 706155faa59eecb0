// Removes our own records of finished job runs after a month: bookkeeping of Holdfast, never anything of the core.

import type { Deps } from '../shared/http/deps.ts';

const KEPT_DAYS = 30;
const DAY_MS = 86_400_000;

export async function run(deps: Deps, now: Date): Promise<{ removed: number }> {
  return { removed: await deps.jobRuns.prune(new Date(now.getTime() - KEPT_DAYS * DAY_MS)) };
}
