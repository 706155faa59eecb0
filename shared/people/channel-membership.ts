// Reads and changes a user's channels: names become groups of the provider, and only the
// differences are written.

import { AppError, type FieldError, messageOf } from '@holdfast/kit/app-error';
import { CHANNEL_PREFIX, isServiceAccountName, kindOf, nameKey, UNGROUPED_GROUP } from '@holdfast/kit/names';
import { withTimeout } from '@holdfast/kit/timeout';
import { audited, inSteps, type Progress } from '../audit/audited.ts';
import {
  channelsOf,
  mustBeAllowed,
  type PeopleContext,
  type PeopleDeps,
  roleGroupsOf,
  userOf,
} from '../devices/accounts.ts';
import { ensureGroup } from '../identity/bootstrap.ts';
import { readChannelName } from '../identity/rules.ts';
import type { Account, GroupName } from '../identity/port.ts';

/** The groups of these names, each once; `invalid` names all that are unknown or forbidden. */
export async function channelsNamed(deps: PeopleDeps, names: readonly string[]): Promise<GroupName[]> {
  const roles = roleGroupsOf(deps);
  const faults: FieldError[] = [];
  const chosen = new Map<string, GroupName>();
  const all = names.length === 0 ? [] : await deps.identity.groups.list(CHANNEL_PREFIX);
  for (const [index, text] of names.entries()) {
    const read = readChannelName(text, roles);
    const group = 'fault' in read ? undefined : called(all, read.name);
    if (group !== undefined) chosen.set(group.id, group);
    else {
      const message =
        'fault' in read ? read.fault : `group ${read.name} does not exist; create it with POST /api/groups`;
      faults.push({ path: `groups.${index}`, message });
    }
  }
  if (faults.length === 0) return [...chosen.values()];
  const output = faults.map(({ path, message }) => `${path}: ${message}`).join('; ');
  throw new AppError('invalid', output, { fields: faults });
}

/** Those of these whole names that there still are, and the names of the others. */
export async function channelsThatExist(
  { identity }: PeopleDeps,
  names: readonly string[],
): Promise<{ found: GroupName[]; missing: string[] }> {
  const all = names.length === 0 ? [] : await identity.groups.list(CHANNEL_PREFIX);
  const groups = names.map((name) => called(all, name));
  return {
    found: groups.filter((group) => group !== undefined),
    missing: names.filter((_, index) => groups[index] === undefined),
  };
}

/** Exactly that name, else in another case. */
function called(groups: readonly GroupName[], name: string): GroupName | undefined {
  return groups.find((group) => group.name === name) ?? groups.find((group) => nameKey(group.name) === nameKey(name));
}

/**
 * Programs that administer the core are in all of its groups by that right, and one of the
 * directory would replace those.
 */
export function needsGroup({ kind, username, attributes }: Pick<Account, 'kind' | 'username' | 'attributes'>): boolean {
  if (kind === 'service') return isServiceAccountName(username) && kindOf({ username, attributes }) !== 'admin';
  return kind === 'person';
}

/** What an account that is to be in these channels joins: the ungrouped one when there are none. */
export async function joinedGroups(
  deps: Pick<PeopleDeps, 'identity'>,
  account: Pick<Account, 'kind' | 'username' | 'attributes'>,
  channels: readonly GroupName[],
): Promise<readonly GroupName[]> {
  return channels.length > 0 || !needsGroup(account) ? channels : [await ensureGroup(deps.identity, UNGROUPED_GROUP)];
}

/** Steps to these channels and no others; groups that are no channels stay. */
export async function replaceChannels(
  deps: PeopleDeps,
  account: Account,
  wanted: readonly GroupName[],
  progress: Progress,
): Promise<void> {
  const { groups } = deps.identity;
  const { gone, missing } = await differenceOf(deps, account, wanted);
  await inSteps(progress, [
    ...gone.map((group) => () => groups.removeMember(group.id, account.id)),
    ...missing.map((group) => () => groups.addMember(group.id, account.id)),
  ]);
}

export async function differenceOf(
  deps: PeopleDeps,
  account: Account,
  channels: readonly GroupName[],
): Promise<{ gone: GroupName[]; missing: GroupName[] }> {
  const wanted = await joinedGroups(deps, account, channels);
  const ungrouped = account.groups.filter(({ name }) => nameKey(name) === nameKey(UNGROUPED_GROUP));
  const held = [...channelsOf(account, deps), ...ungrouped];
  const isIn = (groups: readonly GroupName[], { id }: GroupName): boolean => groups.some((group) => group.id === id);
  return {
    gone: held.filter((group) => !isIn(wanted, group)),
    missing: wanted.filter((group) => !isIn(held, group)),
  };
}

/**
 * Puts a user into exactly these channels. Groups that are no channels, among them those that give
 * a role, stay.
 */
export interface WantedGroups {
  id: number;
  /** With or without the prefix; one that is named twice counts once. */
  groups: readonly string[];
}

export async function setUserGroups(context: PeopleContext, { id, groups }: WantedGroups): Promise<Account> {
  const { deps, actor } = context;
  // Two at once would leave the person in the channels of both.
  return deps.peopleLock(`channels:${id}`, async () => {
    const account = await userOf(deps, id);
    mustBeAllowed(context, account);
    const wanted = await channelsNamed(deps, groups);
    const { gone, missing } = await differenceOf(deps, account, wanted);
    if (gone.length + missing.length === 0) return account;
    const { username } = account;
    const detail = { id, groups: wanted.map(({ name }) => name) };
    await audited(deps, { actor, action: 'user.groups', target: username, detail }, (progress) =>
      replaceChannels(deps, account, wanted, progress),
    );
    await deps.authenticator.forget(username);
    await takenConcurrently(context, username);
    return userOf(deps, id);
  });
}

/** Nobody waits longer for what comes by itself. */
const TAKEN_WITHIN_MS = 1_000;

/**
 * By the devices that are connected. A core that cannot do it now does it by itself within 75 s:
 * the change is made.
 */
async function takenConcurrently({ deps }: PeopleContext, username: string): Promise<void> {
  try {
    await withTimeout(TAKEN_WITHIN_MS, 'The core', () => deps.core.regroup(username));
  } catch (error) {
    deps.log.warn('core.regroup.failed', { username, error: messageOf(error) });
  }
}
