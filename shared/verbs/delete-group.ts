// Deletes a channel; its members stay, without it. Those who are in no other join the ungrouped one first, so that the core
// never gets an empty answer for somebody who is connected: a release ignores that.

import { AppError } from '../domain/app-error.ts';
import { isChannel } from '../domain/channels.ts';
import type { Group } from '../ports/identity.ts';
import { audited } from './audited.ts';
import { placeUngroupedOf } from './place-ungrouped.ts';
import { type PeopleContext, type PeopleDeps, roleGroupsOf } from './people.ts';

/** The channel of that id; `not_found` for others, also for the groups that give a role. */
export async function channelOf(deps: Pick<PeopleDeps, 'identity' | 'settings'>, id: string): Promise<Group> {
  const group = await deps.identity.groups.get(id);
  if (group !== undefined && isChannel(group.name, roleGroupsOf(deps))) return group;
  throw new AppError('not_found', 'There is no group of this id; GET /api/groups lists them.');
}

export async function deleteGroup({ deps, actor }: PeopleContext, { id }: { id: string }): Promise<void> {
  const { name, members } = await channelOf(deps, id);
  const detail = { id, members: members.length };
  await audited(deps, { actor, action: 'group.delete', target: name, detail }, async () => {
    if (members.length > 0) await placeUngroupedOf(deps, name);
    await deps.identity.groups.delete(id);
  });
}
