// Sets the password of a user; whatever was signed for the person before ends with it.

import { invalid } from '@holdfast/kit/app-error';
import { audited } from '../audit/audited.ts';
import { mustBeAllowed, type PeopleContext, userOf } from '../devices/accounts.ts';
import type { Account } from '../identity/port.ts';
import { passwordFault } from '../identity/rules.ts';

export interface NewPassword {
  id: number;
  password: string;
  /** Also of a hidden account: for somebody's own. */
  withHidden?: boolean;
}

/** `invalid` for a password that breaks a rule, of ours or of the provider; it is quoted nowhere. */
export async function setUserPassword(
  context: PeopleContext,
  { id, password, withHidden }: NewPassword,
): Promise<void> {
  const { deps, actor } = context;
  const account = await userOf(deps, id, { withHidden: withHidden === true });
  mustBeAllowed(context, account);
  mustFit(account, password);
  const { username } = account;
  const deed = { actor, action: 'user.password', target: username, detail: { id }, endsSignInsOf: username };
  await deps.peopleLock(`password:${id}`, async () => {
    await context.mustStillBeIn?.();
    await audited(deps, deed, () => deps.identity.accounts.setPassword(id, password));
  });
}

function mustFit({ username }: Account, password: string): void {
  const fault = passwordFault(password, username);
  if (fault !== undefined) throw invalid('password', fault);
}
