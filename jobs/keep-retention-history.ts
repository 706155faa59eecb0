// Keeps the retention history: runs of the core, including scheduled ones, and when policy and
// schedule came into force.

import { AppError } from '@holdfast/kit/app-error';
import type { Deps } from '../shared/http/deps.ts';
import { retentionInForce } from '../shared/retention/in-force.ts';
import { keepRetentionHistory } from '../shared/retention/keep-history.ts';

export interface HistorySummary extends Record<string, unknown> {
  kept: number;
  up_to_date: boolean;
}

export async function run(deps: Deps, now: Date): Promise<HistorySummary> {
  const { kept, upToDate } = await deps.together('retention.history', () => keepRetentionHistory(deps));
  await noteInForce(deps, now);
  return { kept, up_to_date: upToDate };
}

/** Skips the files, which have the values for the core's next start, not those in force. */
async function noteInForce(deps: Deps, now: Date): Promise<void> {
  const unit = deps.settings.CORE_RETENTION_UNIT;
  if (unit === undefined) return;
  try {
    const { policy, schedule, from } = await retentionInForce(deps, unit);
    if (from === 'core') await deps.retentionHistory.seenInForce(now.toISOString(), { policy, schedule });
  } catch (error) {
    // Health reports it, and the next run retries.
    if (!(error instanceof AppError)) throw error;
  }
}
