// Changes a user: shown name, address, activity, expiry and role, in one deed. Everything is checked before anything is
// changed.

import { AppError } from '../domain/app-error.ts';
import { appExpiresOf, readExpiry } from '../domain/people.ts';
import type { Role } from '../domain/principal.ts';
import type { Account } from '../ports/identity.ts';
import { amongAdministrators } from './administrators.ts';
import { audited } from './audited.ts';
import { mustBeAllowed, type PeopleContext, type PeopleDeps, roleOfAccount, userOf } from './people.ts';
import {
  changeDetail,
  concernsAdministrators,
  endsSignIns,
  makeChange,
  mustKeepAdministrators,
  type UserChange,
} from './user-change.ts';

export interface UserUpdate {
  id: number;
  name?: string | undefined;
  email?: string | undefined;
  is_active?: boolean | undefined;
  /** ISO 8601 in the future; null takes it away. */
  expires_at?: string | null | undefined;
  role?: Role | undefined;
}

/** Resolves with the account as it is afterwards. */
export async function updateUser(context: PeopleContext, { id, ...update }: UserUpdate): Promise<Account> {
  const change = changeOf(context.deps, update);
  return changeUser(context, 'user.update', id, (account) => {
    mustBeAllowed(context, account, { setsRole: change.role !== undefined });
    mustNotBeExpired(context.deps, account, change);
    return whatDiffers(context.deps, account, change);
  });
}

/**
 * One deed of that name, decided by what the account is when its turn has come; undefined changes nothing. Also behind
 * deactivation and expiry.
 */
export async function changeUser(
  context: PeopleContext,
  action: string,
  id: number,
  decide: (account: Account) => UserChange | undefined,
  { withHidden = false }: { withHidden?: boolean } = {},
): Promise<Account> {
  const { deps } = context;
  const account = await userOf(deps, id, { withHidden });
  const change = decide(account);
  if (change === undefined) return account;
  if (!concernsAdministrators(account, change, deps)) return carryOut(context, action, account, change);
  return amongAdministrators(deps, async () => {
    await context.mustStillBeIn?.();
    const now = await userOf(deps, id, { withHidden });
    const decided = decide(now);
    if (decided === undefined) return now;
    await mustKeepAdministrators(deps, now, decided);
    return carryOut(context, action, now, decided);
  });
}

async function carryOut(
  { deps, actor }: PeopleContext,
  action: string,
  account: Account,
  change: UserChange,
): Promise<Account> {
  const { username } = account;
  const endsSignInsOf = endsSignIns(account, change, deps) ? username : undefined;
  const detail = changeDetail(account, change);
  const changed = await audited(deps, { actor, action, target: username, detail, endsSignInsOf }, (progress) =>
    makeChange(deps, account, change, progress),
  );
  if (endsSignInsOf === undefined) await deps.doors.forget(username);
  return changed;
}

function changeOf({ now }: PeopleDeps, { expires_at: expiresAt, ...update }: Omit<UserUpdate, 'id'>): UserChange {
  if (expiresAt === undefined) return update;
  if (expiresAt === null) return { ...update, app_expires: null };
  const read = readExpiry(expiresAt, now());
  if ('fault' in read) throw invalid('expires_at', read.fault);
  return { ...update, app_expires: read.seconds };
}

/** An error about one member of the input. */
export function invalid(path: string, fault: string): AppError {
  return new AppError('invalid', `${path}: ${fault}`, { fields: [{ path, message: fault }] });
}

/** Whoever is active again must not be taken away by the next run of the expiry job. */
function mustNotBeExpired({ now }: PeopleDeps, account: Account, change: UserChange): void {
  const expires = appExpiresOf(account.attributes);
  if (change.is_active !== true || change.app_expires !== undefined || expires === null) return;
  if (expires * 1000 > now().getTime()) return;
  const when = new Date(expires * 1000).toISOString();
  throw new AppError(
    'conflict',
    `${account.username} has expired (${when}): give a new expires_at in the future, or null for none, with is_active.`,
  );
}

/** Undefined when everything is so already. A deactivation is repeated: it heals what a broken one has left. */
function whatDiffers(deps: PeopleDeps, account: Account, change: UserChange): UserChange | undefined {
  const differing: UserChange = {
    ...(change.name === undefined || change.name === account.name ? {} : { name: change.name }),
    ...(change.email === undefined || change.email === account.email ? {} : { email: change.email }),
    ...(change.is_active === undefined || (change.is_active && account.isActive)
      ? {}
      : { is_active: change.is_active }),
    ...(change.app_expires === undefined || isSameExpiry(account, change.app_expires)
      ? {}
      : { app_expires: change.app_expires }),
    ...(change.role === undefined || change.role === roleOfAccount(account, deps) ? {} : { role: change.role }),
  };
  return Object.keys(differing).length === 0 ? undefined : differing;
}

/** Null also clears what is no time. */
function isSameExpiry({ attributes }: Account, wanted: number | null): boolean {
  return wanted === null ? attributes['app_expires'] === undefined : appExpiresOf(attributes) === wanted;
}
