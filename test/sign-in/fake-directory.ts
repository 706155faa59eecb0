// A directory in memory, as honest as the real ones: two bases with the same people, app passwords on the core base only.

import { AppError } from '@holdfast/kit/app-error';
import type { Directory, DirectoryBase, DirectoryEntry } from '@holdfast/kit/directory';
import { escapeNameValue } from '@holdfast/kit/distinguished-name';

export interface FakePerson {
  username: string;
  password: string;
  active: boolean;
  appPasswords: { text: string; expires: Date }[];
  groups: string[];
}

export interface FakeDirectory extends Directory {
  /** By name in lower case. */
  readonly people: Map<string, FakePerson>;
  /** Names of the groups as they are spelled, by name in lower case. */
  readonly groups: Map<string, string>;
  /** `down` answers nobody; `empty` signs people in, but shows no group (a directory that is up before its source). */
  mood: 'up' | 'down' | 'empty';
  addPerson(username: string, password: string): FakePerson;
  addGroup(name: string): void;
}

const BASES: Record<DirectoryBase, string> = { core: 'DC=core,DC=holdfast', web: 'DC=web,DC=holdfast' };

/** `now` decides which app passwords have expired. */
export function fakeDirectory(now: () => Date = () => new Date()): FakeDirectory {
  const people = new Map<string, FakePerson>();
  const groups = new Map<string, string>();

  function reach(): void {
    if (fake.mood === 'down') throw new AppError('unavailable', 'The directory does not answer');
  }

  function entryOf(base: DirectoryBase, { username, active, groups: joined }: FakePerson): DirectoryEntry {
    const dn = `cn=${escapeNameValue(username)},ou=users,${BASES[base]}`;
    const names = joined.map((name) => groups.get(name.toLowerCase())).filter((name) => name !== undefined);
    return { dn, username, isActive: active, groups: fake.mood === 'empty' ? [] : [...new Set(names)] };
  }

  function opens(base: DirectoryBase, person: FakePerson, password: string): boolean {
    if (!person.active) return false;
    if (person.password === password) return true;
    return base === 'core' && person.appPasswords.some(({ text, expires }) => text === password && expires > now());
  }

  const fake: FakeDirectory = {
    people,
    groups,
    mood: 'up',

    addPerson(username, password) {
      const person = { username, password, active: true, appPasswords: [], groups: [] };
      people.set(username.toLowerCase(), person);
      return person;
    },

    addGroup(name) {
      groups.set(name.toLowerCase(), name);
    },

    async signIn(base, username, password) {
      if (username === '' || password === '') return undefined;
      reach();
      const person = people.get(username.toLowerCase());
      return person !== undefined && opens(base, person, password) ? entryOf(base, person) : undefined;
    },

    async find(username) {
      reach();
      const person = people.get(username.toLowerCase());
      return person && entryOf('core', person);
    },

    async probe(_, group) {
      reach();
      const name = fake.mood === 'empty' ? undefined : groups.get(group.toLowerCase());
      if (name === undefined) return undefined;
      return [...people.values()].filter((person) => entryOf('core', person).groups.includes(name)).length;
    },
  };
  return fake;
}
