// Keeps the history of retention: runs that the core tells of, also those of its schedule, and since when which policy and schedule
// are in force there.

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

/** Files say what the core will take at its next start, not what is in force. */
async function noteInForce(deps: Deps, now: Date): Promise<void> {
  const unit = deps.settings.CORE_RETENTION_UNIT;
  if (unit === undefined) return;
  try {
    const { policy, schedule, from } = await retentionInForce(deps, unit);
    if (from === 'core') await deps.retentionHistory.seenInForce(now.toISOString(), { policy, schedule });
  } catch (error) {
    // Health says so; the next minute it is looked at again.
    if (!(error instanceof AppError)) throw error;
  }
}
