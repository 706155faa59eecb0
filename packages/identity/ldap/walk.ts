// Reads the entries below a name from the store, in a fixed order, as far as the reader may see
// them.

import { nameKey } from '../model/names.ts';
import type { GroupsWhere, PeopleWhere, Person, Roster, TreeGroup } from '../model/roster.ts';
import { baseEntry, containerEntry, groupEntry, userEntry, virtualGroupEntry } from './entries.ts';
import type { Entry } from './entry.ts';
import type { Filter } from './filter.ts';
import type { Scope } from './message.ts';
import { attributeKey, CLASSES } from './schema.ts';
import { type Container, type Place, placeOf, readName, type Tree } from './tree.ts';

/**
 * What a filter says before anything is read: which kinds of entries can match it at all, and what
 * must hold for every match. False only when no entry of exactly these classes can match.
 */
export function canMatch(filter: Filter, classes: readonly string[]): boolean {
  return canBe(true, filter, new Set(classes.map((name) => name.toLowerCase())));
}

/**
 * What cannot be told of an entry is neither true nor false: it never makes anything possible that
 * is not said here.
 */
function canBe(truth: boolean, filter: Filter, classes: ReadonlySet<string>): boolean {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return truth === (filter.kind === 'and')
        ? filter.parts.every((part) => canBe(truth, part, classes))
        : filter.parts.some((part) => canBe(truth, part, classes));
    case 'not':
      return canBe(!truth, filter.part, classes);
    case 'present':
      return attributeKey(filter.attribute) !== 'objectclass' || truth;
    case 'equal':
      if (attributeKey(filter.attribute) !== 'objectclass' || filter.value === undefined) return true;
      return classes.has(filter.value.toLowerCase()) === truth;
    case 'substring':
    case 'atLeast':
    case 'atMost':
    case 'extensible':
    default:
      return true;
  }
}

/**
 * Values that every match must have, by attribute in lower case; only what the whole filter
 * demands.
 */
export function demanded(filter: Filter): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  collect(filter, found);
  return found;
}

function collect(filter: Filter, found: Map<string, string>): void {
  if (filter.kind === 'equal' && filter.value !== undefined) found.set(attributeKey(filter.attribute), filter.value);
  else if (filter.kind === 'and') for (const part of filter.parts) collect(part, found);
  else if (filter.kind === 'or' && filter.parts.length === 1 && filter.parts[0] !== undefined) {
    collect(filter.parts[0], found);
  }
}

/** Who reads: the service account sees everything, a person only itself. */
export interface Viewer {
  tree: Tree;
  person: Person;
  everything: boolean;
}

/**
 * Where a walk goes on: with the entries of this stage whose key is above `after`, then with the
 * later stages.
 */
export interface Position {
  stage: number;
  after: number;
}

export interface Found {
  entry: Entry;
  stage: number;
  key: number;
}

export interface Walk {
  roster: Roster;
  viewer: Viewer;
  place: Place;
  /** The entry at the place. */
  itself: Entry;
  scope: Scope;
  filter: Filter;
  from: Position;
  /** Entries that the reader still takes; the first batches are no larger than that. */
  wanted: number;
}

const BATCH = 500;
const SMALL_BATCH = 16;

const BASE = 0;
const STAGES: Record<Container, { unit: number; leaves: number }> = {
  users: { unit: 1, leaves: 2 },
  groups: { unit: 3, leaves: 4 },
  'virtual-groups': { unit: 5, leaves: 6 },
};
const CONTAINERS = Object.keys(STAGES) as Container[];
const ONE_LEAF = 7;
export const LAST_STAGE = ONE_LEAF;

/** The entry at a place; undefined when there is none or the reader may not see it. */
export async function entryAt(roster: Roster, viewer: Viewer, place: Place): Promise<Entry | undefined> {
  const { tree } = viewer;
  if (place.at === 'base') return baseEntry(tree);
  if (place.at === 'container') return containerEntry(tree, place.container);
  if (place.container === 'groups') return groupAt(roster, viewer, place.label);
  const own = sameName(place.label, viewer.person.username);
  if (!own && !viewer.everything) return undefined;
  const person = own ? viewer.person : await roster.person(place.label);
  if (person === undefined) return undefined;
  return place.container === 'users' ? userEntry(tree, person) : virtualGroupEntry(tree, person);
}

async function groupAt(roster: Roster, viewer: Viewer, name: string): Promise<Entry | undefined> {
  const where: GroupsWhere = viewer.everything ? { name } : { name, member: viewer.person.username };
  for await (const group of groups(roster, where, 0, SMALL_BATCH)) {
    const members = visibleMembers(viewer, group);
    if (sameName(group.name, name)) return members && groupEntry(viewer.tree, group, members);
  }
  return undefined;
}

async function* groups(roster: Roster, where: GroupsWhere, after: number, batch: number): AsyncGenerator<TreeGroup> {
  for (let last = after; ;) {
    const found = await roster.groups(where, last, batch);
    yield* found;
    if (found.length < batch) return;
    last = found.at(-1)?.numPk ?? last;
  }
}

/** Undefined for a group that the reader may not see. */
function visibleMembers(viewer: Viewer, group: TreeGroup): string[] | undefined {
  if (viewer.everything) return group.members.map(({ username }) => username);
  const { username } = viewer.person;
  return group.members.some((member) => sameName(member.username, username)) ? [username] : undefined;
}

function sameName(a: string, b: string): boolean {
  return nameKey(a) === nameKey(b);
}

/** The entries of a scope in batches; the filter only decides what is not worth reading. */
export async function* walk(walk: Walk): AsyncGenerator<Found[]> {
  const { place, scope, viewer, from } = walk;
  const itself = scope === 'base' || scope === 'subtree';
  if (place.at === 'leaf') {
    if (itself && reaches(from, ONE_LEAF)) yield [{ entry: walk.itself, stage: ONE_LEAF, key: 1 }];
    return;
  }
  if (place.at === 'base' && itself && reaches(from, BASE)) {
    yield [{ entry: walk.itself, stage: BASE, key: 1 }];
  }
  for (const container of place.at === 'base' ? CONTAINERS : [place.container]) {
    const { unit, leaves } = STAGES[container];
    const showUnit = place.at === 'base' ? scope !== 'base' : itself;
    if (showUnit && reaches(from, unit)) yield [{ entry: containerEntry(viewer.tree, container), stage: unit, key: 1 }];
    const showLeaves = place.at === 'base' ? scope === 'subtree' || scope === 'children' : scope !== 'base';
    if (showLeaves && from.stage <= leaves) {
      yield* leavesOf(walk, container, from.stage === leaves ? from.after : 0);
    }
  }
}

function reaches(from: Position, stage: number): boolean {
  return from.stage < stage || (from.stage === stage && from.after < 1);
}

async function* leavesOf(walk: Walk, container: Container, after: number): AsyncGenerator<Found[]> {
  const { viewer, filter } = walk;
  if (!canMatch(filter, CLASSES[container === 'users' ? 'user' : container === 'groups' ? 'group' : 'virtualGroup'])) {
    return;
  }
  const demands = demanded(filter);
  if (container === 'groups') yield* groupLeaves(walk, groupsWhere(viewer, demands), after);
  else if (viewer.everything) yield* peopleLeaves(walk, container, peopleWhere(viewer.tree, demands, container), after);
  else if (viewer.person.pk > after) yield [leafOf(viewer.tree, container, viewer.person)];
}

function leafOf(tree: Tree, container: Container, person: Person): Found {
  const entry = container === 'users' ? userEntry(tree, person) : virtualGroupEntry(tree, person);
  return { entry, stage: STAGES[container].leaves, key: person.pk };
}

async function* peopleLeaves(
  walk: Walk,
  container: Container,
  where: PeopleWhere,
  after: number,
): AsyncGenerator<Found[]> {
  let limit = firstBatch(walk.wanted);
  for (let last = after; ; limit = Math.min(BATCH, 2 * limit)) {
    const people = await walk.roster.people(where, last, limit);
    yield people.map((person) => leafOf(walk.viewer.tree, container, person));
    if (people.length < limit) return;
    last = people.at(-1)?.pk ?? last;
  }
}

async function* groupLeaves(walk: Walk, where: GroupsWhere, after: number): AsyncGenerator<Found[]> {
  const { viewer, roster } = walk;
  let limit = firstBatch(walk.wanted);
  for (let last = after; ; limit = Math.min(BATCH, 2 * limit)) {
    const found = await roster.groups(where, last, limit);
    yield found.flatMap((group) => {
      const members = visibleMembers(viewer, group);
      if (members === undefined) return [];
      return [{ entry: groupEntry(viewer.tree, group, members), stage: STAGES.groups.leaves, key: group.numPk }];
    });
    if (found.length < limit) return;
    last = found.at(-1)?.numPk ?? last;
  }
}

function firstBatch(wanted: number): number {
  return Math.min(BATCH, Math.max(SMALL_BATCH, wanted + 1));
}

type Demands = ReadonlyMap<string, string>;

function peopleWhere(tree: Tree, demands: Demands, container: Container): PeopleWhere {
  const username =
    demands.get('cn') ??
    demands.get('samaccountname') ??
    (container === 'users'
      ? labelIn(tree, 'users', demands.get('distinguishedname'))
      : labelIn(tree, 'users', demands.get('member')));
  const email = demands.get('mail');
  const group = labelIn(tree, 'groups', demands.get('memberof'));
  return {
    ...(username !== undefined && { username }),
    ...(email !== undefined && { email }),
    ...(group !== undefined && { group }),
  };
}

function groupsWhere(viewer: Viewer, demands: Demands): GroupsWhere {
  const name = demands.get('cn') ?? demands.get('samaccountname');
  const member = viewer.everything ? labelIn(viewer.tree, 'users', demands.get('member')) : viewer.person.username;
  return { ...(name !== undefined && { name }), ...(member !== undefined && { member }) };
}

/**
 * The user or group that a name in a filter stands for; undefined when it stands for none: then
 * nothing is narrowed.
 */
function labelIn(tree: Tree, container: Container, name: string | undefined): string | undefined {
  const parts = readName(name);
  const place = parts && placeOf(tree, parts);
  return place?.at === 'leaf' && place.container === container ? place.label : undefined;
}
