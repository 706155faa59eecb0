// Changes a user: shown name, address, activity, expiry and role; everything is checked before
// anything is changed. After a deactivation nothing lets the person in any more, and the record is
// kept. Doing it again does no harm.

import { AppError, invalid } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { audited } from '../audit/audited.ts';
import { mustBeAllowed, type PeopleContext, type PeopleDeps, roleOfAccount, userOf } from '../devices/accounts.ts';
import { isUnavailable } from '../devices/certificates/while-core-is-unavailable.ts';
import type { Account, Identity } from '../identity/port.ts';
import { appExpiresOf, EXPIRES, readExpiry } from '../identity/rules.ts';
import type { Role } from '../sign-in/rules.ts';
import {
  amongAdministrators,
  changeDetail,
  concernsAdministrators,
  endsSignIns,
  makeChange,
  mustKeepAdministrators,
  type UserChange,
} from './user-change.ts';

/**
 * Changes a user: shown name, address, activity, expiry and role, in one deed. Everything is
 * checked before anything is changed.
 */
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
 * One deed of that name, decided by what the account is when its turn has come; undefined changes
 * nothing. Also behind deactivation and expiry.
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
  if (endsSignInsOf === undefined) await deps.authenticator.forget(username);
  return changed;
}

function changeOf({ now }: PeopleDeps, { expires_at: expiresAt, ...update }: Omit<UserUpdate, 'id'>): UserChange {
  if (expiresAt === undefined) return update;
  if (expiresAt === null) return { ...update, app_expires: null };
  const read = readExpiry(expiresAt, now());
  if ('fault' in read) throw invalid('expires_at', read.fault);
  return { ...update, app_expires: read.seconds };
}

/** Whoever is active again must not be taken away by the next run of the expiry job. */
function mustNotBeExpired({ now }: PeopleDeps, account: Account, change: UserChange): void {
  const expires = appExpiresOf(account.attributes);
  if (change.is_active !== true || change.app_expires !== undefined || expires === null) return;
  if (expires * 1000 > now().getTime()) return;
  const when = new Date(expires * 1000).toISOString();
  throw new AppError(
    'conflict',
    `${account.username} has expired (${when}): send a new expires_at in the future, or null for never, together with is_active.`,
  );
}

/**
 * Undefined when everything is so already. A deactivation is repeated: it heals what a broken one
 * has left.
 */
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

export async function deactivateUser(context: PeopleContext, { id }: { id: number }): Promise<Account> {
  return changeUser(context, 'user.deactivate', id, (account) => {
    mustBeAllowed(context, account);
    return { is_active: false };
  });
}

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

interface Deps {
  identity: { accounts: Pick<Identity['accounts'], 'list' | 'named'> };
}

const MOST = 200;

/**
 * Asked in one call for everybody, where they are few: a list of certificates needs no call per
 * row. `named` as the port has it, for those who have an end; undefined for everybody else, and
 * while the provider is away.
 */
export function expiringAccounts({ identity }: Deps): { accounts: Pick<Identity['accounts'], 'named'> } {
  let requested: Promise<ReadonlyMap<string, Account> | undefined> | undefined;

  async function all(): Promise<ReadonlyMap<string, Account> | undefined> {
    const found = await identity.accounts.list({ attributes: { [`${EXPIRES}__gt`]: 0 }, page: 1, pageSize: MOST });
    return found.count > found.results.length
      ? undefined
      : new Map(found.results.map((each) => [nameKey(each.username), each]));
  }

  return {
    accounts: {
      named: async (username) => {
        try {
          const known = await (requested ??= all());
          return known === undefined ? await identity.accounts.named(username) : known.get(nameKey(username));
        } catch (error) {
          if (isUnavailable(error)) return undefined;
          throw error;
        }
      },
    },
  };
}
