// Deletes a service account: deactivated, its certificate revoked, its right taken; the record is kept.

import { kindOf } from '@holdfast/kit/names';
import { audited, type Progress } from '../../audit/audited.ts';
import { mustBeAllowed, mustBeAllowedKind } from '../../devices/accounts.ts';
import { certificatesOfUser } from '../../devices/certificates/of-user.ts';
import type { Account } from '../../identity/port.ts';
import { changeDetail, makeChange } from '../user-change.ts';
import {
  mustNotBeOwn,
  oneAtATime,
  type ServiceAccountContext,
  type ServiceAccountDeps,
  serviceAccountOf,
  type ShownServiceAccount,
  shownServiceAccount,
} from './service-accounts.ts';

/** Again on one that is deactivated: it heals what a broken one has left. */
export async function deleteServiceAccount(
  context: ServiceAccountContext,
  { id }: { id: number },
): Promise<ShownServiceAccount> {
  const { deps, actor } = context;
  const { username } = await serviceAccountOf(deps, id);
  mustNotBeOwn(username);
  return oneAtATime(deps, username, async () => {
    await context.mustStillBeIn?.();
    const account = await serviceAccountOf(deps, id);
    mustBeAllowed(context, account);
    mustBeAllowedKind(context, kindOf(account));
    const detail = changeDetail(account, { is_active: false });
    const deed = { actor, action: 'service_account.delete', target: username, detail, endsSignInsOf: username };
    const ended = await audited(deps, deed, (progress) => endServiceAccount(deps, account, progress));
    // What is done stays done when the core cannot be asked any more.
    const { certs } = await certificatesOfUser(deps, ended).catch(() => ({ certs: [] }));
    return shownServiceAccount(deps, ended, certs);
  });
}

/** Can be done again and again. */
export async function endServiceAccount(
  deps: ServiceAccountDeps,
  account: Account,
  progress: Progress,
): Promise<Account> {
  const ended = await makeChange(deps, account, { is_active: false }, progress);
  if (kindOf(account) === 'admin') await deps.adminGrants.take(account.username);
  return ended;
}
