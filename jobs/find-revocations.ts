// Finds certificates that were revoked at the core without Holdfast; skipped while the core is
// unavailable.

import { AppError } from '@holdfast/kit/app-error';
import { findRevocations, removeLeftKeys } from '../shared/devices/revocation/prove.ts';
import type { Deps } from '../shared/http/deps.ts';

export async function run(deps: Deps): Promise<{ found: number | null; keys_removed: number }> {
  const keysRemoved = await removeLeftKeys(deps);
  return { found: await foundBy(deps), keys_removed: keysRemoved };
}

/** Null if the core is unavailable. */
async function foundBy(deps: Deps): Promise<number | null> {
  try {
    return await findRevocations(deps);
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable') return null;
    throw error;
  }
}
