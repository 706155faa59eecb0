// Disconnects devices that connected while the directory was unavailable, so that they get their
// channels. Skipped while the core is unavailable.

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
