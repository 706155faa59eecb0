// Lists, creates and deletes channels.

import { AppError, invalid } from '@holdfast/kit/app-error';
import { CHANNEL_PREFIX } from '@holdfast/kit/names';
import { audited } from '../audit/audited.ts';
import { type PeopleContext, type PeopleDeps, roleGroupsOf } from '../devices/accounts.ts';
import type { Group, GroupName } from '../identity/port.ts';
import { isChannel, readChannelName } from '../identity/rules.ts';
import { placeUngroupedOf } from './place-ungrouped.ts';

/**
 * `name` with or without the prefix. `invalid` for a forbidden name, `conflict` when it is taken,
 * in any case.
 */
export async function createGroup({ deps, actor }: PeopleContext, { name }: { name: string }): Promise<GroupName> {
  const read = readChannelName(name, roleGroupsOf(deps));
  if ('fault' in read) throw invalid('name', read.fault);
  return audited(deps, { actor, action: 'group.create', target: read.name }, () =>
    deps.identity.groups.create(read.name),
  );
}

/** The channel of that id; `not_found` for others, also for the groups that give a role. */
export async function channelOf(deps: Pick<PeopleDeps, 'identity' | 'settings'>, id: string): Promise<Group> {
  const group = await deps.identity.groups.get(id);
  if (group !== undefined && isChannel(group.name, roleGroupsOf(deps))) return group;
  throw new AppError('not_found', 'There is no group with this id. GET /api/groups lists them.');
}

/**
 * The members stay, without it. Those who are in no other join the ungrouped one first, so that the
 * core never gets an empty answer for somebody who is connected: a release ignores that.
 */
export async function deleteGroup({ deps, actor }: PeopleContext, { id }: { id: string }): Promise<void> {
  const { name, members } = await channelOf(deps, id);
  const detail = { id, members: members.length };
  await audited(deps, { actor, action: 'group.delete', target: name, detail }, async () => {
    if (members.length > 0) await placeUngroupedOf(deps, name);
    await deps.identity.groups.delete(id);
  });
}

/**
 * The groups in which people are heard by each other, by name; not those that give a role, nor
 * others of the provider.
 */
export async function listChannels(deps: Pick<PeopleDeps, 'identity' | 'settings'>): Promise<GroupName[]> {
  const roles = roleGroupsOf(deps);
  const found = await deps.identity.groups.list(CHANNEL_PREFIX);
  return found.filter(({ name }) => isChannel(name, roles)).map(({ id, name }) => ({ id, name }));
}

export async function channelNames(deps: Pick<PeopleDeps, 'identity' | 'settings'>): Promise<string[]> {
  return (await listChannels(deps)).map(({ name }) => name);
}
