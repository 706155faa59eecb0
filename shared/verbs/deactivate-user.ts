// Deactivates a user: nothing lets the person in any more, the record is kept. Doing it again does no harm.

import type { Account } from '../ports/identity.ts';
import { mustBeAllowed, type PeopleContext } from './people.ts';
import { changeUser } from './update-user.ts';

export async function deactivateUser(context: PeopleContext, { id }: { id: number }): Promise<Account> {
  return changeUser(context, 'user.deactivate', id, (account) => {
    mustBeAllowed(context, account);
    return { is_active: false };
  });
}
