// The groups of a person as the stream needs them: from the directory, with their places, without those switched off.

import { rowsOf } from '../groups/own-groups.ts';
import type { PeopleGroups } from '../groups/people-groups.ts';
import type { KnownGroup } from '../model/parts.ts';
import type { StreamGroups } from '../model/stream.ts';
import type { ActiveGroups, GroupStore } from '../store/groups.ts';

export interface StreamGroupsParts {
  people: PeopleGroups;
  groups: GroupStore;
  activeGroups: ActiveGroups;
}

export function streamGroups({ people, groups, activeGroups }: StreamGroupsParts): StreamGroups {
  const parts = { people, groups: placesKnown(groups), activeGroups };
  return {
    async of({ commonName, channels }) {
      const standing = await people.standing(commonName);
      if (standing === 'closed') return standing;
      const rows = await rowsOf(commonName, standing, parts, channels);
      return rows
        .filter(({ active }) => active)
        .map(({ group, direction }) => ({ name: group.name, direction, place: group.bitpos }));
    },
    forget: (usernames) => people.forget(usernames),
  };
}

/** A group keeps its place for ever: the database is asked for those that were never seen here. */
function placesKnown(groups: GroupStore): GroupStore {
  const known = new Map<string, KnownGroup>();
  return {
    list: () => groups.list(),
    async ensure(names) {
      if (names.some((name) => !known.has(name)))
        for (const group of await groups.ensure(names)) known.set(group.name, group);
      return names.flatMap((name) => known.get(name) ?? []);
    },
  };
}
