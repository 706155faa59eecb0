// The groups of whoever asks: rows with their places and whether they are switched on.

import { CoreFault, day } from '../http/answers.ts';
import { isAdmin } from '../http/route.ts';
import type { CoreCaller, KnownGroup, Membership, Subscription } from '../model/parts.ts';
import type { ActiveGroups, GroupStore } from '../store/groups.ts';
import type { PeopleGroups } from './people-groups.ts';

export const GROUP_TYPE = 'com.bbn.marti.remote.groups.Group';

export interface GroupRow {
  group: KnownGroup;
  direction: Membership['direction'];
  active: boolean;
}

/** What the groups of somebody are read from. */
export interface GroupParts {
  people: PeopleGroups;
  groups: GroupStore;
  activeGroups: ActiveGroups;
}

/** One row for each group and direction; an admin has every group that is known, OUT. */
export async function groupsOf(caller: CoreCaller, parts: GroupParts): Promise<GroupRow[]> {
  if (!isAdmin(caller)) return rowsOf(caller.username, await parts.people.of(caller.username), parts, followed(caller));
  const known = await parts.groups.list();
  const isActive = await switches(caller.username, parts, followed(caller));
  return known.map((group) => ({ group, direction: 'OUT', active: isActive({ name: group.name, direction: 'OUT' }) }));
}

/** The rows of the groups that the caller may send into: an admin into every one. */
export async function sendingRows(caller: CoreCaller, parts: GroupParts): Promise<GroupRow[]> {
  const rows = await groupsOf(caller, parts);
  return rows.filter(({ direction }) => direction === 'IN' || isAdmin(caller));
}

/** Places of the groups of these names. Throws 403 for a name that is in none of the rows. */
export function placesNamed(names: readonly string[], rows: readonly GroupRow[]): number[] {
  const places = new Map(rows.map(({ group }) => [group.name, group.bitpos]));
  return names.map((name) => {
    const place = places.get(name);
    if (place !== undefined) return place;
    throw new CoreFault('forbidden', `The group ${name} is none that you may send into.`);
  });
}

/** The rows of somebody with these memberships; new groups get their places. */
export async function rowsOf(
  username: string,
  memberships: readonly Membership[],
  parts: GroupParts,
  followSwitches: boolean,
): Promise<GroupRow[]> {
  const known = await parts.groups.ensure(memberships.map(({ name }) => name));
  return rowsAmong(known, memberships, await switches(username, parts, followSwitches));
}

/** The memberships in groups that are known, by place. */
export function rowsAmong(
  known: readonly KnownGroup[],
  memberships: readonly Membership[],
  isActive: (membership: Membership) => boolean,
): GroupRow[] {
  const byName = new Map(known.map((group) => [group.name, group]));
  const rows = memberships.flatMap(({ name, direction }) => {
    const group = byName.get(name);
    return group === undefined ? [] : [{ group, direction, active: isActive({ name, direction }) }];
  });
  return rows.toSorted((a, b) => a.group.bitpos - b.group.bitpos || a.direction.localeCompare(b.direction));
}

/** Only certificates with the key usage for channels switch groups: for others every group is always on. */
function followed({ certificate }: CoreCaller): boolean {
  return certificate?.channels ?? true;
}

async function switches(
  username: string,
  { activeGroups }: GroupParts,
  follow: boolean,
): Promise<(membership: Membership) => boolean> {
  if (!follow) return () => true;
  const states = await activeGroups.of(username);
  const off = new Set(states.filter(({ enabled }) => !enabled).map(({ name, direction }) => `${direction} ${name}`));
  return ({ name, direction }) => !off.has(`${direction} ${name}`);
}

export function shownGroup({ group, direction, active }: GroupRow) {
  const { name, created, type, bitpos } = group;
  return { name, direction, created: day(created), type, bitpos, active };
}

/** Places of the groups whose events may be seen. */
export async function visiblePlaces(caller: CoreCaller, parts: GroupParts): Promise<number[] | 'all'> {
  if (isAdmin(caller)) return 'all';
  const rows = await groupsOf(caller, parts);
  return rows.filter(({ direction }) => direction === 'OUT').map(({ group }) => group.bitpos);
}

/** Of somebody who is on the stream. */
export function contact({ username, callsign, clientUid, team, role, takClient, takVersion }: Subscription) {
  const takv = takVersion === '' ? takClient : `${takClient}:${takVersion}`;
  return { filterGroups: null, notes: username, callsign, team, role, takv, uid: clientUid };
}
