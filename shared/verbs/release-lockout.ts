// Forgets the failures of an address, so that it can sign in again at once.

import { AppError } from '../domain/app-error.ts';
import { lockoutAddress } from '../domain/lockout.ts';
import type { Actor, Audit } from '../ports/audit.ts';
import type { Doors } from '../ports/doors.ts';
import { audited } from './audited.ts';

export interface ReleaseLockoutDeps {
  doors: Pick<Doors, 'release'>;
  audit: Pick<Audit, 'intend' | 'conclude'>;
}

/** `address` is one of a locked /64 as well. Rejects with `not_found` when nothing is known of it. */
export async function releaseLockout(deps: ReleaseLockoutDeps, actor: Actor, address: string): Promise<void> {
  const target = lockoutAddress(address);
  await audited(deps, { actor, action: 'lockout.release', target }, async () => {
    if (await deps.doors.release(target)) return;
    throw new AppError(
      'not_found',
      `No failed sign-in is known from ${address}. GET /api/lockouts lists the addresses that are locked.`,
    );
  });
}
