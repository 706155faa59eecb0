// Deactivates an account whose time has come, hidden ones too. The expiry stays, so that nobody is let in again by mistake.

import { appExpiresOf } from '../domain/people.ts';
import type { Account } from '../ports/identity.ts';
import type { PeopleContext, PeopleDeps } from './people.ts';
import { changeUser } from './update-user.ts';

/** True for an active account whose time is over; text and the like is no time. */
export function isOverdue({ isActive, attributes }: Account, { now }: Pick<PeopleDeps, 'now'>): boolean {
  const expires = appExpiresOf(attributes);
  return isActive && expires !== null && expires * 1000 <= now().getTime();
}

/** Resolves with the account as it is afterwards: unchanged when it is not overdue any more. */
export async function expireUser(context: PeopleContext, { id }: { id: number }): Promise<Account> {
  return changeUser(
    context,
    'user.expire',
    id,
    (account) => (isOverdue(account, context.deps) ? { is_active: false } : undefined),
    { withHidden: true },
  );
}
