// Makes a channel.

import { readChannelName } from '../domain/channels.ts';
import type { GroupName } from '../ports/identity.ts';
import { audited } from './audited.ts';
import { type PeopleContext, roleGroupsOf } from './people.ts';
import { invalid } from './update-user.ts';

/** `name` with or without the prefix. `invalid` for a forbidden name, `conflict` when it is taken, in any case. */
export async function createGroup({ deps, actor }: PeopleContext, { name }: { name: string }): Promise<GroupName> {
  const read = readChannelName(name, roleGroupsOf(deps));
  if ('fault' in read) throw invalid('name', read.fault);
  return audited(deps, { actor, action: 'group.create', target: read.name }, () =>
    deps.identity.groups.create(read.name),
  );
}
