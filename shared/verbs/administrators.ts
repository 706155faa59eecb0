// Somebody must always be left who can let others in: the first administrator and the last one are kept.

import { AppError } from '../domain/app-error.ts';
import { ADMIN_ROLE_GROUP, nameKey, WEBADMIN } from '../domain/names.ts';
import { appExpiresOf } from '../domain/people.ts';
import type { Account } from '../ports/identity.ts';
import { isHidden, type PeopleDeps, roleOfAccount } from './people.ts';

const PAGE_SIZE = 100;

/** One change at a time of those after which an administrator may be missing. Never nest it. */
export function amongAdministrators<T>(deps: Pick<PeopleDeps, 'peopleLock'>, work: () => Promise<T>): Promise<T> {
  return deps.peopleLock('administrators', work);
}

/**
 * To be asked within `amongAdministrators`, before somebody is deactivated, given an expiry or loses the role: `what` is
 * that in words. Throws `conflict` for webadmin and for the last active administrator; one who never expires is replaced
 * only by another who never does.
 */
export async function mustNotBeLast(deps: PeopleDeps, account: Account, what: string): Promise<void> {
  if (nameKey(account.username) === WEBADMIN)
    throw new AppError('conflict', `${WEBADMIN} is the first administrator and cannot be ${what}.`);
  if (!isAdministrator(account, deps)) return;
  if (await isAnotherLeft(deps, account)) return;
  throw new AppError(
    'conflict',
    `${account.username} is the last administrator and cannot be ${what}: make another user administrator first, one without an expiry.`,
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
