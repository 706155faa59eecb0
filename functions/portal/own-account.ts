// Whose portal it is. Accounts that USERS_HIDDEN_PREFIXES hides are no persons and enroll no devices; while the identity
// provider is away nobody knows, and what does not need it is shown all the same.

import type { Deps } from '../../shared/http/deps.ts';
import type { Account } from '../../shared/ports/identity.ts';
import { isHidden } from '../../shared/verbs/people.ts';
import { attempt } from '../pages/form.ts';
import type { PageContext } from '../pages/page-routes.ts';

export type Owner =
  | { kind: 'person'; account: Account }
  | { kind: 'hidden' }
  /** With the reason, a sentence. */
  | { kind: 'unknown'; why: string };

export async function ownerOf(c: PageContext, deps: Deps): Promise<Owner> {
  const { username } = c.get('principal');
  const asked = await attempt(() => deps.identity.accounts.named(username));
  if (asked.refused !== undefined) return { kind: 'unknown', why: asked.refused.message };
  const account = asked.done;
  return account === undefined || isHidden(account, deps) ? { kind: 'hidden' } : { kind: 'person', account };
}
