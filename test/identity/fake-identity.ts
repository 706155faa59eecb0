// An identity provider in memory: the rules of the port, and nobody to wait for.

import { randomBytes, randomUUID } from 'node:crypto';
import { AppError } from '@holdfast/kit/app-error';
import type { Page } from '@holdfast/kit/json';
import { attributesMatch } from '../../packages/identity/test/fake-attribute-query.ts';
import type {
  Account,
  AccountQuery,
  Accounts,
  AppPassword,
  AppPasswords,
  Group,
  GroupName,
  Groups,
  Identity,
  NewAccount,
  NewAppPassword,
} from '../../shared/identity/port.ts';

export interface FakeIdentityOptions {
  /** Default: the system's clock. */
  now?: () => Date;
}

export interface FakeIdentity extends Identity {
  /** Whether somebody could sign in with this password or an app password that has not ended. */
  accepts: (username: string, password: string) => boolean;
}

interface World {
  now: () => Date;
  /** An id is given once. */
  lastId: number;
  accounts: Map<number, Account>;
  groups: Map<string, Group>;
  passwords: Map<number, string>;
  appPasswords: Map<string, AppPassword & { key: string }>;
}

const MAX_USERNAME_LENGTH = 150;

/** Begins with what every provider has: an administrator, an account of the provider itself, and a group. */
export function fakeIdentity({ now = () => new Date() }: FakeIdentityOptions = {}): FakeIdentity {
  const world: World = {
    now,
    lastId: 0,
    accounts: new Map(),
    groups: new Map(),
    passwords: new Map(),
    appPasswords: new Map(),
  };
  const admin = add(world, { username: 'akadmin', name: 'Administrator', kind: 'person' });
  add(world, { username: `ak-outpost-${randomUUID()}`, name: 'Outpost', kind: 'system' });
  const admins = { id: randomUUID(), name: 'authentik Admins', members: [{ id: admin.id, username: admin.username }] };
  world.groups.set(admins.id, admins);
  return {
    me: () => Promise.resolve({ username: admin.username, isSuperuser: true }),
    version: () => Promise.resolve('2026.8.3'),
    accounts: accountsOf(world),
    groups: groupsOf(world),
    appPasswords: appPasswordsOf(world),
    accepts: (username, password) => accepts(world, username, password),
  };
}

function add(world: World, { username, name, email = '', kind = 'person', attributes = {} }: Made): Account {
  const made: Account = {
    id: (world.lastId += 1),
    username,
    name,
    email,
    isActive: true,
    kind,
    groups: [],
    attributes: structuredClone(attributes),
    createdAt: world.now().toISOString(),
    lastLogin: null,
  };
  world.accounts.set(made.id, made);
  return made;
}

type Made = Omit<NewAccount, 'kind'> & { kind?: Account['kind'] };

/** A copy, with its groups: nobody changes the world by changing what it was given. */
function shown(world: World, account: Account): Account {
  const groups = [...world.groups.values()]
    .filter(({ members }) => members.some(({ id }) => id === account.id))
    .map(({ id, name }) => ({ id, name }));
  return structuredClone({ ...account, groups });
}

function sameName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

function byName<T extends { name: string }>(items: Iterable<T>, name: string): T | undefined {
  const all = [...items];
  return all.find((each) => each.name === name) ?? all.find((each) => sameName(each.name, name));
}

function accountsOf(world: World): Accounts {
  const present = (id: number): Account => {
    const found = world.accounts.get(id);
    if (found === undefined) throw new AppError('not_found', `There is no account with the id ${id}`);
    return found;
  };
  const called = (username: string): Account | undefined =>
    [...world.accounts.values()].find((each) => sameName(each.username, username));

  return {
    async list(query) {
      const found = [...world.accounts.values()]
        .map((each) => shown(world, each))
        .filter((each) => matches(each, query))
        .toSorted((one, other) => (one.username < other.username ? -1 : 1));
      return pageOf(found, query);
    },
    async get(id) {
      const found = world.accounts.get(id);
      return found && shown(world, found);
    },
    async named(username) {
      const found = called(username);
      return found && shown(world, found);
    },
    async create(wanted) {
      if (wanted.username === '') throw refused('username', 'This field may not be blank.');
      if (wanted.username.length > MAX_USERNAME_LENGTH) throw refused('username', 'No more than 150 characters.');
      checkEmail(wanted.email);
      if (called(wanted.username) !== undefined) throw new AppError('conflict', 'The username is taken');
      return shown(world, add(world, wanted));
    },
    async change(id, { name, email, isActive, kind }) {
      const account = present(id);
      if (kind !== undefined && account.kind === 'system') throw refused('type', 'It stays what it is.');
      checkEmail(email);
      if (name !== undefined) account.name = name;
      if (email !== undefined) account.email = email;
      if (isActive !== undefined) account.isActive = isActive;
      if (kind !== undefined) account.kind = kind;
      return shown(world, account);
    },
    async changeAttributes(id, changes) {
      const account = present(id);
      const removed = Object.keys(changes).filter((name) => changes[name] === null);
      const kept = Object.entries({ ...account.attributes, ...changes }).filter(([name]) => !removed.includes(name));
      account.attributes = structuredClone(Object.fromEntries(kept));
      return shown(world, account);
    },
    async setPassword(id, password) {
      present(id);
      if (password === '') throw refused('password', 'This field may not be blank.');
      world.passwords.set(id, password);
    },
    async delete(id) {
      world.accounts.delete(id);
      world.passwords.delete(id);
      for (const group of world.groups.values()) group.members = group.members.filter((member) => member.id !== id);
      for (const { identifier, accountId } of world.appPasswords.values()) {
        if (accountId === id) world.appPasswords.delete(identifier);
      }
    },
  };
}

function matches(account: Account, query: AccountQuery): boolean {
  const { search = '', kinds, isActive, group, attributes = {}, without = [] } = query;
  const { username, name, email } = account;
  return (
    [username, name, email].some((text) => text.toLowerCase().includes(search.toLowerCase())) &&
    (kinds === undefined || kinds.includes(account.kind)) &&
    (isActive === undefined || account.isActive === isActive) &&
    (group === undefined || account.groups.some((each) => each.name === group)) &&
    !without.some((prefix) => username.toLowerCase().startsWith(prefix.toLowerCase())) &&
    attributesMatch(account.attributes, attributes)
  );
}

function pageOf<T>(found: T[], { page, pageSize }: { page: number; pageSize: number }): Page<T> {
  return { results: found.slice((page - 1) * pageSize, page * pageSize), count: found.length };
}

function checkEmail(email = ''): void {
  if (email !== '' && !/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(email)) throw refused('email', 'Enter a valid email address.');
}

function refused(path: string, message: string): AppError {
  return new AppError('invalid', `The identity provider refused the change: ${path}: ${message}`, {
    fields: [{ path, message }],
  });
}

function groupsOf(world: World): Groups {
  const change = (id: string, accountId: number, isMember: boolean): void => {
    const group = world.groups.get(id);
    const account = world.accounts.get(accountId);
    if (group === undefined || account === undefined) {
      throw new AppError('not_found', 'There is no such group or account');
    }
    const others = group.members.filter((member) => member.id !== accountId);
    group.members = isMember ? [...others, { id: accountId, username: account.username }] : others;
  };
  const nameOf = ({ id, name }: GroupName): GroupName => ({ id, name });

  return {
    async list(search = '') {
      return [...world.groups.values()]
        .filter(({ name }) => name.toLowerCase().includes(search.toLowerCase()))
        .map(nameOf)
        .toSorted((one, other) => (one.name < other.name ? -1 : 1));
    },
    async get(id) {
      return structuredClone(world.groups.get(id));
    },
    async named(name) {
      return structuredClone(byName(world.groups.values(), name));
    },
    async create(name) {
      if (name === '') throw refused('name', 'This field may not be blank.');
      if (byName(world.groups.values(), name) !== undefined) throw new AppError('conflict', 'The name is taken');
      const made = { id: randomUUID(), name, members: [] };
      world.groups.set(made.id, made);
      return nameOf(made);
    },
    async delete(id) {
      world.groups.delete(id);
    },
    async addMember(id, accountId) {
      change(id, accountId, true);
    },
    async removeMember(id, accountId) {
      change(id, accountId, false);
    },
  };
}

function withoutKey({ identifier, accountId, description, expiresAt }: AppPassword): AppPassword {
  return { identifier, accountId, description, expiresAt };
}

function appPasswordsOf(world: World): AppPasswords {
  return {
    async create({ identifier, accountId, description, expiresAt }: NewAppPassword) {
      if (!/^[-\w]{1,255}$/.test(identifier)) throw refused('identifier', 'Letters, digits, - and _, up to 255.');
      if (!world.accounts.has(accountId)) throw new AppError('not_found', 'There is no such account');
      if (world.appPasswords.has(identifier)) throw new AppError('conflict', 'The identifier is taken');
      const end = expiresAt?.toISOString() ?? null;
      const made = { identifier, accountId, description, expiresAt: end, key: randomBytes(30).toString('hex') };
      world.appPasswords.set(identifier, made);
      return { ...made };
    },
    async list(username) {
      return [...world.appPasswords.values()]
        .filter(({ accountId }) => world.accounts.get(accountId)?.username === username)
        .map(withoutKey)
        .toSorted((one, other) => (one.identifier < other.identifier ? -1 : 1));
    },
    async get(identifier) {
      const found = world.appPasswords.get(identifier);
      return found && withoutKey(found);
    },
    async reveal(identifier) {
      return world.appPasswords.get(identifier)?.key;
    },
    async delete(identifier) {
      world.appPasswords.delete(identifier);
    },
  };
}

function accepts(world: World, username: string, password: string): boolean {
  const account = [...world.accounts.values()].find((each) => sameName(each.username, username));
  if (account?.isActive !== true || password === '') return false;
  if (world.passwords.get(account.id) === password) return true;
  const now = world.now().toISOString();
  return [...world.appPasswords.values()].some(
    ({ accountId, key, expiresAt }) =>
      accountId === account.id && key === password && (expiresAt === null || expiresAt > now),
  );
}
