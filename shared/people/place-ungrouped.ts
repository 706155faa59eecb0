// Sees to it that every active account that needs a group is in one, and that nobody who is in a
// channel is in the ungrouped group besides: groups are also changed at the provider itself.

import { nameKey, PROBE_GROUP, UNGROUPED_GROUP } from '@holdfast/kit/names';
import { channelsOf, type PeopleDeps } from '../devices/accounts.ts';
import type { Account, AccountQuery } from '../identity/port.ts';
import { joinedGroups, needsGroup } from './channel-membership.ts';

export type PlaceDeps = Pick<PeopleDeps, 'identity' | 'peopleLock' | 'settings'>;

const PAGE_SIZE = 200;

/**
 * Resolves with how many accounts joined and left the ungrouped group. Rejects as the provider
 * does; `signal` stops it between two.
 */
export async function placeUngrouped(
  deps: PlaceDeps,
  signal: AbortSignal,
): Promise<{ joined: string[]; left: string[] }> {
  const joined: string[] = [];
  const left: string[] = [];
  for (const account of await allAccounts(deps, { isActive: true, kinds: ['person', 'service'] })) {
    if (signal.aborted) break;
    const done = isMisplaced(deps, account) ? await placeOne(deps, account.id) : undefined;
    if (done !== undefined) (done === 'joined' ? joined : left).push(account.username);
  }
  return { joined, left };
}

/**
 * For the members of a channel that is about to be deleted: whoever is in no other joins the
 * ungrouped group.
 */
export async function placeUngroupedOf(deps: PlaceDeps, channel: string): Promise<void> {
  for (const account of await allAccounts(deps, { group: channel })) {
    const others = channelsOf(account, deps).filter(({ name }) => name !== channel);
    if (others.length > 0 || !needsGroup(account)) continue;
    for (const group of await joinedGroups(deps, account, []))
      await deps.identity.groups.addMember(group.id, account.id);
  }
}

/** Looks again in its own turn: somebody may be changing the groups of that account. */
async function placeOne(deps: PlaceDeps, id: number): Promise<'joined' | 'left' | undefined> {
  const { accounts, groups } = deps.identity;
  return deps.peopleLock(`channels:${id}`, async () => {
    const account = await accounts.get(id);
    if (account === undefined || !isMisplaced(deps, account)) return undefined;
    const ungrouped = ungroupedOf(account);
    if (ungrouped !== undefined) {
      await groups.removeMember(ungrouped.id, id);
      return 'left';
    }
    for (const group of await joinedGroups(deps, account, [])) await groups.addMember(group.id, id);
    return 'joined';
  });
}

function isMisplaced(deps: PlaceDeps, account: Account): boolean {
  const isAlone = channelsOf(account, deps).length === 0 && needsGroup(account);
  const isInProbeGroup = account.groups.some(({ name }) => nameKey(name) === nameKey(PROBE_GROUP));
  return (isAlone && !isInProbeGroup) !== (ungroupedOf(account) !== undefined);
}

function ungroupedOf({ groups }: Account): Account['groups'][number] | undefined {
  return groups.find(({ name }) => nameKey(name) === nameKey(UNGROUPED_GROUP));
}

/** All pages are read before the first account is changed: a change may move the others. */
async function allAccounts(
  { identity }: PlaceDeps,
  query: Omit<AccountQuery, 'page' | 'pageSize'>,
): Promise<Account[]> {
  const found: Account[] = [];
  for (let page = 1; ; page += 1) {
    const { results, count } = await identity.accounts.list({ ...query, page, pageSize: PAGE_SIZE });
    found.push(...results);
    if (results.length === 0 || found.length >= count) return found;
  }
}
