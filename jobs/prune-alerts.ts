// Removes old alerts from the history: muted ones after a month, the rest after a year.

import { DAY_MS } from '@holdfast/kit/time';
import type { Deps } from '../shared/http/deps.ts';

const SUPPRESSED_DAYS = 30;
const OTHER_DAYS = 365;

export async function run(deps: Deps, now: Date): Promise<{ removed: number }> {
  const before = (days: number): string => new Date(now.getTime() - days * DAY_MS).toISOString();
  return { removed: await deps.alerts.prune(before(SUPPRESSED_DAYS), before(OTHER_DAYS)) };
}
