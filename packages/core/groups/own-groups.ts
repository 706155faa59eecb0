// Reads people's groups from the directory, and a caller's groups with their bit positions and
// switches.

import { ADMIN_ROLE_GROUP, nameKey } from '@holdfast/kit/names';
import { CoreFault, day } from '../http/answers.ts';
import { KeptAnswers } from '../http/kept-answers.ts';
import { isAdmin } from '../http/route.ts';
import type { CoreCaller, CoreDirectory, KnownGroup, Membership, MembershipsOf, Subscription } from '../model/parts.ts';
import type { ActiveGroups, GroupStore } from '../store/groups.ts';

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
    throw new CoreFault('forbidden', `You may not send to group ${name}.`);
  });
}

/**
 * Places of the groups that will see what the caller brings: those of these names, else every one
 * that they may send into and have switched on (an admin: every one). Throws 403 for a name that
 * they may not send to, and if there is none.
 */
export async function sendingPlaces(
  caller: CoreCaller,
  names: readonly string[],
  parts: GroupParts,
): Promise<number[]> {
  const rows = await sendingRows(caller, parts);
  const wanted = [...new Set(names.flatMap((text) => text.split(',')).filter((name) => name !== ''))];
  if (wanted.length > 0) return placesNamed(wanted, rows);
  const active = rows.filter((row) => row.active || isAdmin(caller)).map(({ group }) => group.bitpos);
  if (active.length === 0) throw new CoreFault('forbidden', 'You have no group that you may send to.');
  return [...new Set(active)].toSorted((a, b) => a - b);
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

/**
 * Only certificates with the key usage for channels switch groups: for others every group is always
 * on.
 */
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

export function toGroupView({ group, direction, active }: GroupRow) {
  const { name, created, type, bitpos } = group;
  return { name, direction, created: day(created), type, bitpos, active };
}

/** Places of the groups whose events may be seen. */
export async function visiblePlaces(caller: CoreCaller, parts: GroupParts): Promise<number[] | 'all'> {
  if (isAdmin(caller)) return 'all';
  const rows = await groupsOf(caller, parts);
  return rows.filter(({ direction }) => direction === 'OUT').map(({ group }) => group.bitpos);
}

/** The same, or of the named groups among them. Throws 404 or 403 for others. */
export async function visiblePlacesNamed(
  caller: CoreCaller,
  names: readonly string[],
  parts: GroupParts,
): Promise<number[] | 'all'> {
  if (names.length === 0) return visiblePlaces(caller, parts);
  const rows = (await groupsOf(caller, parts)).filter(({ direction }) => direction === 'OUT');
  const own = new Map(rows.map(({ group }) => [group.name, group.bitpos]));
  return names.map((name) => {
    const place = own.get(name);
    if (place !== undefined) return place;
    if (isAdmin(caller)) throw new CoreFault('not found', `Group ${name} not found.`);
    throw new CoreFault('forbidden', `You are not a member of group ${name}.`);
  });
}

/** Of somebody who is on the stream. */
export function contact({ username, callsign, clientUid, team, role, takClient, takVersion }: Subscription) {
  const takv = takVersion === '' ? takClient : `${takClient}:${takVersion}`;
  return { filterGroups: null, notes: username, callsign, team, role, takv, uid: clientUid };
}

/**
 * The groups of people: as the directory shows them, kept for some seconds, and with directions as
 * devices know them.
 */
export interface PeopleGroupsOptions {
  directory: Pick<CoreDirectory, 'find'>;
  memberships: MembershipsOf;
  now: () => Date;
}

const KEPT_MS = 20_000;
const MAX_KEPT = 10_000;

/** Rejects with an AppError when the directory does not answer. */
export class PeopleGroups {
  readonly #options: PeopleGroupsOptions;
  readonly #kept;

  constructor(options: PeopleGroupsOptions) {
    this.#options = options;
    this.#kept = new KeptAnswers<Membership[] | 'closed' | undefined>({
      keptMs: KEPT_MS,
      most: MAX_KEPT,
      now: options.now,
    });
  }

  /** Undefined for somebody whom the directory does not know. */
  async find(username: string): Promise<Membership[] | undefined> {
    const found = await this.#known(username);
    return found === 'closed' ? this.#options.memberships(undefined) : found;
  }

  /** As `find`; none for somebody whom the directory does not know. */
  async of(username: string): Promise<Membership[]> {
    return (await this.find(username)) ?? this.#options.memberships(undefined);
  }

  /** As `of`; `closed` for somebody whom the directory knows and whose account is not active. */
  async status(username: string): Promise<Membership[] | 'closed'> {
    return (await this.#known(username)) ?? this.#options.memberships(undefined);
  }

  /** What is asked next is asked of the directory. */
  forget(usernames: readonly string[]): void {
    for (const username of usernames) this.#kept.forget(nameKey(username));
  }

  forgetAll(): void {
    this.#kept.clear();
  }

  async #ask(username: string): Promise<Membership[] | 'closed' | undefined> {
    const entry = await this.#options.directory.find(username);
    if (entry === undefined) return undefined;
    return entry.isActive ? this.#options.memberships(entry) : 'closed';
  }

  /** Nobody is kept as unknown: a directory that has just started may not show them yet. */
  async #known(username: string): Promise<Membership[] | 'closed' | undefined> {
    const key = nameKey(username);
    const found = await this.#kept.ask(key, () => this.#ask(username));
    if (found === undefined) this.#kept.forget(key);
    return found;
  }
}

const READS = '_READ';
const WRITES = '_WRITE';

/**
 * From the groups that the directory shows of a person to groups with directions, as devices know
 * them. `prefix` begins the names that are groups of the core (`core_`) and is not part of what
 * devices see. A suffix `_READ` receives only, `_WRITE` sends only. `never` names groups that give
 * a role: they are no groups of the core.
 */
export function membershipsOf(prefix: string, never: readonly string[] = []): MembershipsOf {
  const start = nameKey(prefix);
  const roles = new Set([ADMIN_ROLE_GROUP, ...never].map(nameKey));

  return (entry) => {
    const found = new Map<string, Membership>();
    for (const group of entry?.groups ?? []) {
      const key = nameKey(group);
      if (!key.startsWith(start) || roles.has(key) || key.includes('\0')) continue;
      for (const membership of read(group.slice(prefix.length)))
        found.set(`${membership.direction} ${membership.name}`, membership);
    }
    return [...found.values()];
  };
}

function read(name: string): Membership[] {
  for (const [suffix, direction] of [
    [READS, 'OUT'],
    [WRITES, 'IN'],
  ] as const)
    if (name.endsWith(suffix)) return named(name.slice(0, -suffix.length)).map((group) => ({ name: group, direction }));
  return named(name).flatMap(both);
}

/** Nothing is left of a name that is all prefix and suffix. */
function named(name: string): string[] {
  return name === '' ? [] : [name];
}

function both(name: string): Membership[] {
  return [
    { name, direction: 'IN' },
    { name, direction: 'OUT' },
  ];
}
