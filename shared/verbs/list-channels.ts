// The groups in which people are heard by each other, by name; not those that give a role, nor others of the provider.

import { isChannel } from '../domain/channels.ts';
import { CHANNEL_PREFIX } from '../domain/names.ts';
import type { GroupName } from '../ports/identity.ts';
import { type PeopleDeps, roleGroupsOf } from './people.ts';

export async function listChannels(deps: Pick<PeopleDeps, 'identity' | 'settings'>): Promise<GroupName[]> {
  const roles = roleGroupsOf(deps);
  const found = await deps.identity.groups.list(CHANNEL_PREFIX);
  return found.filter(({ name }) => isChannel(name, roles)).map(({ id, name }) => ({ id, name }));
}

export async function channelNames(deps: Pick<PeopleDeps, 'identity' | 'settings'>): Promise<string[]> {
  return (await listChannels(deps)).map(({ name }) => name);
}
