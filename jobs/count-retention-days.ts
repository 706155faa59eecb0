// Counts the rows of events and chat per day; skipped while the core's database is unavailable.

import { AppError } from '@holdfast/kit/app-error';
import type { Deps } from '../shared/http/deps.ts';
import { countRetentionDays } from '../shared/retention/count-days.ts';

export async function run(deps: Deps, _now: Date, signal: AbortSignal): Promise<Record<string, unknown>> {
  try {
    return { ...(await countRetentionDays(deps, signal)) };
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable') return { days: null, problem: error.message };
    throw error;
  }
}
