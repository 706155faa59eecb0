// Finds what was revoked at the core past Holdfast. While the core is away there is nothing to find.

import { AppError } from '@holdfast/kit/app-error';
import { findRevocations, removeLeftKeys } from '../shared/devices/revocation/prove.ts';
import type { Deps } from '../shared/http/deps.ts';

export async function run(deps: Deps): Promise<{ found: number | null; keys_removed: number }> {
  const keysRemoved = await removeLeftKeys(deps);
  return { found: await foundBy(deps), keys_removed: keysRemoved };
}

/** Null: the core is away. */
async function foundBy(deps: Deps): Promise<number | null> {
  try {
    return await findRevocations(deps);
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable') return null;
    throw error;
  }
}
