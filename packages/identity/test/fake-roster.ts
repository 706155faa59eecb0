// The store of the embedded identity provider in memory: as strict about order, `after` and `limit`
// as the real one, and like it allowed to hand out more than was asked (`loose`).

import type { Attributes } from '@holdfast/kit/json';
import { nameKey } from '../model/names.ts';
import type {
  CheckPassword,
  GroupsWhere,
  PasswordAttempt,
  PeopleWhere,
  Person,
  Roster,
  TreeGroup,
} from '../model/roster.ts';

export interface FakePerson {
  username: string;
  password?: string;
  appPassword?: string;
  name?: string;
  email?: string;
  isActive?: boolean;
  groups?: string[];
  attributes?: Attributes;
}

export interface FakeRoster extends Roster {
  checkPassword: CheckPassword;
  /** What was asked of the store, in order. */
  readonly calls: { method: 'person' | 'people' | 'groups'; where?: PeopleWhere | GroupsWhere; limit?: number }[];
  readonly attempts: PasswordAttempt[];
  change(username: string, change: Partial<FakePerson>): void;
  add(...people: FakePerson[]): void;
  remove(username: string): void;
}

const CREATED = new Date('2026-01-02T03:04:05.678Z');

export function fakeRoster(
  people: readonly FakePerson[],
  { groupAttributes = {}, loose = false }: { groupAttributes?: Record<string, Attributes>; loose?: boolean } = {},
): FakeRoster {
  const stored = new Map<string, FakePerson & { pk: number }>();
  const groupKeys = new Map<string, number>();
  const calls: FakeRoster['calls'] = [];
  const attempts: PasswordAttempt[] = [];
  let lastPk = 0;

  function add(...more: FakePerson[]): void {
    for (const person of more) {
      stored.set(nameKey(person.username), { ...person, pk: ++lastPk });
      for (const group of person.groups ?? []) if (!groupKeys.has(group)) groupKeys.set(group, groupKeys.size + 1);
    }
  }

  function personOf(person: FakePerson & { pk: number }): Person {
    return {
      pk: person.pk,
      uid: person.pk.toString(16).padStart(64, '0'),
      username: person.username,
      name: person.name ?? '',
      email: person.email ?? '',
      isActive: person.isActive ?? true,
      isSuperuser: false,
      attributes: person.attributes ?? {},
      groups: (person.groups ?? []).toSorted().map((name) => ({ name })),
      createdAt: CREATED,
      changedAt: CREATED,
      passwordChangedAt: person.password === undefined ? undefined : CREATED,
    };
  }

  function groupOf([name, numPk]: [string, number]): TreeGroup {
    const members = [...stored.values()].filter((person) => person.groups?.includes(name));
    return {
      uuid: `00000000-0000-4000-8000-${String(numPk).padStart(12, '0')}`,
      numPk,
      name,
      isSuperuser: false,
      attributes: groupAttributes[name] ?? {},
      members: members.map(({ username }) => ({ username })).toSorted((a, b) => (a.username < b.username ? -1 : 1)),
      createdAt: CREATED,
      changedAt: CREATED,
    };
  }

  const same = (request: string | undefined, value: string): boolean =>
    loose || request === undefined || nameKey(request) === nameKey(value);

  add(...people);
  return {
    calls,
    attempts,
    add,
    remove: (username) => stored.delete(nameKey(username)),
    change(username, change) {
      const person = stored.get(nameKey(username));
      if (person !== undefined) Object.assign(person, change);
    },

    async person(username) {
      calls.push({ method: 'person' });
      const person = stored.get(nameKey(username));
      return person && personOf(person);
    },

    async people(where, after, limit) {
      calls.push({ method: 'people', where, limit });
      return [...stored.values()]
        .map(personOf)
        .filter(({ pk }) => pk > after)
        .filter(({ username, email }) => same(where.username, username) && same(where.email, email))
        .filter(
          ({ groups }) => where.group === undefined || loose || groups.some(({ name }) => same(where.group, name)),
        )
        .slice(0, limit);
    },

    async groups(where, after, limit) {
      calls.push({ method: 'groups', where, limit });
      return [...groupKeys]
        .filter(([name, key]) => key > after && same(where.name, name))
        .map(groupOf)
        .filter(
          ({ members }) =>
            where.member === undefined || loose || members.some(({ username }) => same(where.member, username)),
        )
        .slice(0, limit);
    },

    async checkPassword(attempt) {
      attempts.push(attempt);
      const person = stored.get(nameKey(attempt.username));
      if (person === undefined || person.isActive === false) return 'refused';
      const right = attempt.password === person.password;
      const app = attempt.appPasswords && attempt.password === person.appPassword;
      return right || app ? { pk: person.pk } : 'refused';
    },
  };
}
