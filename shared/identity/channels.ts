// Names of channels: groups of people that a device can talk to. They begin with `core_`; devices see the rest. A suffix
// `_READ` or `_WRITE` makes membership one-way.

import { ADMIN_ROLE_GROUP, CHANNEL_PREFIX, nameKey, PROBE_GROUP, UNGROUPED_GROUP } from '@holdfast/kit/names';
import type { RoleGroups } from '../sign-in/principal.ts';

const REST = /^[A-Za-z0-9._-](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?$/;

/** The whole name of the channel that somebody means, with or without the prefix, or why there is none of that name. */
export function readChannelName(text: string, roles: RoleGroups): { name: string } | { fault: string } {
  const rest = nameKey(text).startsWith(CHANNEL_PREFIX) ? text.slice(CHANNEL_PREFIX.length) : text;
  if (!REST.test(rest))
    return {
      fault: `must be 1 to 64 letters, digits, blanks, dots, underscores or hyphens (${CHANNEL_PREFIX} not counted), without a blank at either end`,
    };
  const name = CHANNEL_PREFIX + rest;
  if (givesRole(text, roles) || givesRole(name, roles))
    return { fault: 'is the name of a group that gives a role: change the role of a user instead' };
  if (isStackOwn(name)) return { fault: 'is a channel that the stack keeps for itself: choose another name' };
  return { name };
}

/** True for a group that people and devices know as a channel. */
export function isChannel(name: string, roles: RoleGroups): boolean {
  return name.startsWith(CHANNEL_PREFIX) && !givesRole(name, roles) && !isStackOwn(name);
}

/** True for the groups that give a role, in any case. */
function givesRole(name: string, { admin, viewer }: RoleGroups): boolean {
  return [ADMIN_ROLE_GROUP, admin, viewer].some((each) => nameKey(each) === nameKey(name));
}

const STACK_OWN = new Set([PROBE_GROUP, UNGROUPED_GROUP].map(withoutDirection));

/** In any direction. */
function isStackOwn(name: string): boolean {
  return STACK_OWN.has(withoutDirection(name));
}

function withoutDirection(name: string): string {
  return nameKey(name).replace(/_(?:read|write)$/, '');
}
