// Disconnects devices that came while the directory was away, so that they get their channels. While the core is away there are none.

import { AppError } from '@holdfast/kit/app-error';
import { disconnectUnlisted, hasLoggedConnections, type UnlistedRun } from '../shared/devices/connections/unlisted.ts';
import type { Deps } from '../shared/http/deps.ts';

export const isWanted = hasLoggedConnections;

export async function run(deps: Deps, _now: Date, signal: AbortSignal): Promise<UnlistedRun & Record<string, unknown>> {
  try {
    return { ...(await disconnectUnlisted(deps, signal)) };
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable') return { disconnected: [], left: [] };
    throw error;
  }
}
