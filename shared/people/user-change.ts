// A change of a user as it stands in the audit log before it is made, and the steps that make it
// so. Every step can be repeated: after a crash a job does them all again.

import { AppError } from '@holdfast/kit/app-error';
import type { Attributes } from '@holdfast/kit/json';
import { ADMIN_ROLE_GROUP, nameKey, WEBADMIN } from '@holdfast/kit/names';
import { inSteps, type Progress } from '../audit/audited.ts';
import { isHidden, type PeopleDeps, roleOfAccount } from '../devices/accounts.ts';
import { revokeCertificatesOf } from '../devices/revocation/cancel-access.ts';
import type { Account, GroupName } from '../identity/port.ts';
import { appExpiresOf, EXPIRES } from '../identity/rules.ts';
import type { Role } from '../sign-in/rules.ts';

const PAGE_SIZE = 100;

/** One change at a time of those after which an administrator may be missing. Never nest it. */
export function amongAdministrators<T>(deps: Pick<PeopleDeps, 'peopleLock'>, work: () => Promise<T>): Promise<T> {
  return deps.peopleLock('administrators', work);
}

/**
 * To be asked within `amongAdministrators`, before somebody is deactivated, given an expiry or
 * loses the role: `what` is that in words. Throws `conflict` for webadmin and for the last active
 * administrator; one who never expires is replaced only by another who never does.
 */
export async function mustNotBeLast(deps: PeopleDeps, account: Account, what: string): Promise<void> {
  if (nameKey(account.username) === WEBADMIN)
    throw new AppError('conflict', `${WEBADMIN} is the first administrator and cannot be ${what}.`);
  if (!isAdministrator(account, deps)) return;
  if (await isAnotherLeft(deps, account)) return;
  throw new AppError(
    'conflict',
    `${account.username} is the last administrator and cannot be ${what}. Make another user an administrator first, without an expiry.`,
  );
}

/** One of the people, who can sign in now. */
function isAdministrator(account: Account, deps: PeopleDeps): boolean {
  return account.isActive && roleOfAccount(account, deps) === 'admin' && !isHidden(account, deps);
}

function neverExpires({ attributes }: Account): boolean {
  return appExpiresOf(attributes) === null;
}

async function isAnotherLeft(deps: PeopleDeps, account: Account): Promise<boolean> {
  const isEnough = (other: Account): boolean =>
    other.id !== account.id && isAdministrator(other, deps) && (!neverExpires(account) || neverExpires(other));
  for (const name of await administratorGroups(deps)) {
    for (let page = 1; ; page += 1) {
      const query = { page, pageSize: PAGE_SIZE, group: name, isActive: true, kinds: ['person'] } as const;
      const { results, count } = await deps.identity.accounts.list(query);
      if (results.some(isEnough)) return true;
      if (page * PAGE_SIZE >= count) break;
    }
  }
  return false;
}

/** As the provider spells them. */
async function administratorGroups({ identity, settings }: PeopleDeps): Promise<string[]> {
  const wanted = new Set([ADMIN_ROLE_GROUP, settings.ADMIN_GROUP].map(nameKey));
  const found = await Promise.all([...wanted].map((name) => identity.groups.list(name)));
  return found.flat().flatMap(({ name }) => (wanted.has(nameKey(name)) ? [name] : []));
}

/** What is not named stays. */
export interface UserChange {
  name?: string | undefined;
  email?: string | undefined;
  is_active?: boolean | undefined;
  /** Seconds of Unix time; null: none. */
  app_expires?: number | null | undefined;
  role?: Role | undefined;
}

/** The change for the audit log. */
export function changeDetail(account: Account, change: UserChange): Attributes {
  const entries = Object.entries(change).filter((entry): entry is [string, string | number | boolean | null] => {
    return entry[1] !== undefined;
  });
  return { id: account.id, change: Object.fromEntries(entries) };
}

/** True when what was signed for the person must end with the change. */
export function endsSignIns(account: Account, change: UserChange, deps: PeopleDeps): boolean {
  return change.is_active === false || isDemotion(account, change, deps);
}

const RANK: Record<Role, number> = { none: 0, viewer: 1, admin: 2 };

function isDemotion(account: Account, { role }: UserChange, deps: PeopleDeps): boolean {
  return role !== undefined && RANK[role] < RANK[roleOfAccount(account, deps)];
}

/** True when the change must be checked and made among administrators. */
export function concernsAdministrators(account: Account, change: UserChange, deps: PeopleDeps): boolean {
  return change.role !== undefined || roleOfAccount(account, deps) === 'admin';
}

/** Throws `conflict` when the change would take the last administrator away. */
export async function mustKeepAdministrators(deps: PeopleDeps, account: Account, change: UserChange): Promise<void> {
  if (change.is_active === false) await mustNotBeLast(deps, account, 'deactivated');
  if (typeof change.app_expires === 'number') await mustNotBeLast(deps, account, 'given an expiry');
  if (isDemotion(account, change, deps)) await mustNotBeLast(deps, account, 'demoted');
}

/**
 * Makes the change, and resolves with the account as it is then. What takes rights away comes
 * before what gives them, and nobody is active before the new expiry stands.
 */
export async function makeChange(
  deps: PeopleDeps,
  account: Account,
  change: UserChange,
  progress: Progress,
): Promise<Account> {
  const { accounts } = deps.identity;
  const { id } = account;
  let latest = account;
  const keep = async (changed: Promise<Account>): Promise<void> => {
    latest = await changed;
  };
  const { name, email, is_active: isActive, app_expires: expires, role } = change;
  const first = {
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
    ...(isActive === false ? { isActive } : {}),
  };
  const steps: (() => Promise<unknown>)[] = [];
  if (Object.keys(first).length > 0) steps.push(() => keep(accounts.change(id, first)));
  // Nothing waits for the end of the change: from here on this process asks the directory anew.
  if (isActive === false) steps.push(async () => deps.authenticator.forget(account.username));
  if (isActive === false) steps.push(() => revokeAccess(deps, account));
  if (expires !== undefined) steps.push(() => keep(accounts.changeAttributes(id, { [EXPIRES]: expires })));
  if (role !== undefined) steps.push(() => giveRole(deps, account, role));
  if (isActive === true) steps.push(() => keep(accounts.change(id, { isActive })));
  await inSteps(progress, steps);
  return role === undefined ? latest : ((await accounts.get(id)) ?? latest);
}

/**
 * What lets a person in besides the password. App passwords first: with one a new certificate could
 * be enrolled.
 */
async function revokeAccess(deps: PeopleDeps, { username }: Account): Promise<void> {
  const { appPasswords } = deps.identity;
  for (const { identifier } of await appPasswords.list(username)) await appPasswords.delete(identifier);
  await revokeCertificatesOf(deps, username);
}

async function giveRole(deps: PeopleDeps, account: Account, role: Role): Promise<void> {
  const { groups } = deps.identity;
  const { ADMIN_GROUP, VIEWER_GROUP } = deps.settings;
  const [admin, viewer, coreAdmin] = [ADMIN_GROUP, VIEWER_GROUP, ADMIN_ROLE_GROUP].map(nameKey);
  const wanted = role === 'none' ? undefined : role === 'admin' ? admin : viewer;
  const unwanted = new Set([admin, viewer, ...(role === 'admin' ? [] : [coreAdmin])]);
  const isHeld = (key: string | undefined): boolean => account.groups.some(({ name }) => nameKey(name) === key);
  for (const { id, name } of account.groups)
    if (nameKey(name) !== wanted && unwanted.has(nameKey(name))) await groups.removeMember(id, account.id);
  if (wanted === undefined || isHeld(wanted)) return;
  if (role === 'admin' && isHeld(coreAdmin)) return;
  const name = role === 'admin' ? ADMIN_GROUP : VIEWER_GROUP;
  await groups.addMember((await roleGroup(deps, name)).id, account.id);
}

async function roleGroup({ identity }: PeopleDeps, name: string): Promise<GroupName> {
  const found = (await identity.groups.list(name)).find((each) => nameKey(each.name) === nameKey(name));
  if (found !== undefined) return found;
  throw new AppError(
    'conflict',
    `The group ${name}, which grants the role, is missing. Restart the stack to create it.`,
  );
}
