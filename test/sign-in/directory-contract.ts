// What every directory does, whatever stands behind it: a fake, slapd, the embedded provider, authentik.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import type { Directory, DirectoryBase } from '@holdfast/kit/directory';
import { HOUR_MS } from '@holdfast/kit/time';

/** A directory that runs, and how people and groups come into it (on both bases). */
export interface DirectoryWorld {
  directory: Directory;
  createUser(username: string, password: string): Promise<void>;
  /** An implementation that has no empty groups may wait for the first member. */
  createGroup(name: string): Promise<void>;
  join(username: string, group: string): Promise<void>;
  /** Lets go of everything. */
  end(): Promise<void>;

  /** Undefined where an implementation has no such thing: its cases are skipped. */
  createAppPassword: ((username: string, expires: Date) => Promise<string>) | undefined;
  deactivate: ((username: string) => Promise<void>) | undefined;
  /** Membership in a group of that name that does not stand right below the groups of the base. */
  joinElsewhere: ((username: string, group: string) => Promise<void>) | undefined;
  /** Lists groups of the core base. */
  groups?: (containing: string) => Promise<{ dn: string; name: string; members: string[] }[]>;
  /** Stops answering, and answers again with all it knew. */
  stop: (() => Promise<void>) | undefined;
  start: (() => Promise<void>) | undefined;
}

/** What the implementation has beyond the least; the rest of the suite is the same for all. */
export interface DirectoryAbilities {
  appPasswords: boolean;
  inactiveUsers: boolean;
  groupsElsewhere: boolean;
  restart: boolean;
  listsGroups?: boolean;
  /** User names with any character: a provider may refuse to create them. */
  anyUserName: boolean;
}

const BASES: DirectoryBase[] = ['core', 'web'];
const ODD_NAMES = [
  'o,brien',
  'plus+equals=',
  '#hash',
  'back\\slash',
  'quote"d <angle>; end',
  'star*(paren)',
  'Ünïcødé 🦊',
  'inner  blank',
];

export function directoryContract(make: () => Promise<DirectoryWorld>, can: DirectoryAbilities): void {
  let world: DirectoryWorld;
  let directory: Directory;
  let lastUser = 0;

  beforeAll(async () => {
    world = await make();
    directory = world.directory;
    await world.createUser('alice', 'alice has a password');
    await world.createGroup('stack_admin');
    await world.join('alice', 'stack_admin');
  });

  afterAll(() => world?.end());

  async function holder(): Promise<{ username: string; password: string }> {
    lastUser++;
    const user = { username: `user-${lastUser}`, password: `the password of ${lastUser}` };
    await world.createUser(user.username, user.password);
    return user;
  }

  describe.each(BASES)('sign-in on the %s base', (base) => {
    it('lets the right password in, as the directory spells the name', async () => {
      const entry = await directory.signIn(base, 'alice', 'alice has a password');
      expect(entry).toMatchObject({ username: 'alice', groups: ['stack_admin'] });
      expect(entry?.dn.toLowerCase()).toContain(`cn=alice,ou=users,dc=${base}`);
      expect(structuredClone(entry)).toEqual(JSON.parse(JSON.stringify(entry)));
    });

    it('takes a user name without regard to case', async () => {
      expect(await directory.signIn(base, 'ALICE', 'alice has a password')).toMatchObject({ username: 'alice' });
    });

    it.each([
      'wrong',
      'Alice has a password',
      'alice has a password ',
      '',
      '*',
      'alice has a password\0',
      'x'.repeat(5000),
    ])('refuses the password %j', async (password) => {
      expect(await directory.signIn(base, 'alice', password)).toBeUndefined();
    });

    it('refuses somebody whom it does not know', async () => {
      expect(await directory.signIn(base, 'nobody', 'alice has a password')).toBeUndefined();
    });

    it.each([
      '',
      ' ',
      '*',
      'a*',
      'cn=alice',
      'alice,ou=users',
      `alice,ou=users,DC=${base},DC=holdfast`,
      'alice)(cn=*',
      'alice+uid=x',
      'alice+cn=alice',
      ' alice',
      'alice ',
      'alice\\',
      '\\61lice',
      'alice\\00',
      'alice\0',
      '\0alice',
      'alice\n',
      '#alice',
      'ａlice',
      'alic\u00E9',
      'alice\uD800',
      'EXTERNAL',
      'alice'.repeat(1000),
    ])('takes %j for nobody else', async (username) => {
      expect(await directory.signIn(base, username, 'alice has a password')).toBeUndefined();
    });

    it.runIf(can.anyUserName).each(ODD_NAMES)('signs in %j, and gives no group away', async (name) => {
      const username = `${name}-${base}`;
      await world.createUser(username, `password of ${name}`);
      expect(await directory.signIn(base, username, `password of ${name}`)).toMatchObject({ username, groups: [] });
      expect(await directory.signIn(base, username, 'alice has a password')).toBeUndefined();
    });

    it('tells all groups of the user, each once, and none of anybody else', async () => {
      const one = await holder();
      const two = await holder();
      for (const group of ['core_Alpha', `core_${base}_READ`]) {
        await world.createGroup(group);
        await world.join(one.username, group);
      }
      const entry = await directory.signIn(base, one.username, one.password);
      expect(entry?.groups.toSorted()).toEqual(['core_Alpha', `core_${base}_READ`].toSorted());
      expect((await directory.signIn(base, two.username, two.password))?.groups).toEqual([]);
    });

    it.runIf(can.groupsElsewhere)('takes no group from any other place', async () => {
      const { username, password } = await holder();
      await world.joinElsewhere?.(username, 'stack_admin');
      expect((await directory.signIn(base, username, password))?.groups).toEqual([]);
    });

    it.runIf(can.inactiveUsers)('refuses somebody who is deactivated', async () => {
      const { username, password } = await holder();
      expect(await directory.signIn(base, username, password)).toMatchObject({ username });
      await world.deactivate?.(username);
      expect(await directory.signIn(base, username, password)).toBeUndefined();
      expect(await directory.find(username)).toMatchObject({ username, isActive: false });
    });

    it('never mixes up those who sign in at the same time', async () => {
      const users = await Promise.all(Array.from({ length: 6 }, holder));
      const requests = Array.from({ length: 30 }, (_, index) => {
        const user = users[index % users.length] ?? { username: '', password: '' };
        const right = index % 3 !== 1;
        return {
          ...user,
          right,
          password: right ? user.password : (users[(index + 1) % users.length]?.password ?? ''),
        };
      });
      const answers = await Promise.all(
        requests.map(({ username, password }) => directory.signIn(base, username, password)),
      );
      expect(answers.map((entry) => entry?.username)).toEqual(
        requests.map(({ username, right }) => (right ? username : undefined)),
      );
    });

    it('probes a group that is there, and one that is not', async () => {
      const name = `probed-${base}`;
      await world.createGroup(name);
      await world.join((await holder()).username, name);
      await world.join((await holder()).username, name);
      expect(await directory.probe(base, name)).toBe(2);
      expect(await directory.probe(base, name.toUpperCase())).toBe(2);
      for (const other of ['no-such-group', '*', 'probed*', `${name})(cn=*`, '']) {
        expect(await directory.probe(base, other)).toBeUndefined();
      }
    });
  });

  it('finds a user without a password', async () => {
    const found = await directory.find('Alice');
    expect(found).toMatchObject({ username: 'alice', isActive: true, groups: ['stack_admin'] });
    expect(found?.dn.toLowerCase()).toContain('cn=alice,ou=users,dc=core');
    for (const name of ['nobody', '', '*', 'alice,ou=users', 'alice)(cn=*', ' alice', 'alice\0', 'a'.repeat(9000)])
      expect(await directory.find(name)).toBeUndefined();
  });

  it('finds users while others sign in, each as what they are', async () => {
    const { username, password } = await holder();
    const rounds = Array.from({ length: 20 }, async (_, index) => {
      const found = await directory.find(index % 2 === 0 ? 'alice' : username);
      const entry = await directory.signIn('core', username, index % 3 === 0 ? 'wrong' : password);
      return [found?.username, entry?.username];
    });
    expect(await Promise.all(rounds)).toEqual(
      rounds.map((_, index) => [index % 2 === 0 ? 'alice' : username, index % 3 === 0 ? undefined : username]),
    );
  });

  describe.runIf(can.listsGroups)('groups', () => {
    const list = async (containing: string): Promise<string[]> =>
      ((await world.groups?.(containing)) ?? []).map(({ name }) => name);

    it('are listed by a text in their names, in any case, sorted, with their members', async () => {
      for (const name of ['core_Listed B', 'core_Listed_A', 'other_listed']) {
        await world.createGroup(name);
        await world.join('alice', name);
      }
      const { username } = await holder();
      await world.join(username, 'core_Listed_A');
      expect(await list('LISTED')).toEqual(['core_Listed B', 'core_Listed_A', 'other_listed']);
      expect(await list('core_Listed_A')).toEqual(['core_Listed_A']);
      expect((await list('')).length).toBeGreaterThan(3);
      const [found] = (await world.groups?.('core_listed_a')) ?? [];
      expect(found?.members.toSorted()).toEqual(['alice', username]);
      expect(found?.dn.toLowerCase()).toBe('cn=core_listed_a,ou=groups,dc=core,dc=holdfast');
    });

    it('are looked for by the text as it is', async () => {
      const odd = 'core_x (y) * z';
      await world.createGroup(odd);
      await world.join('alice', odd);
      for (const text of ['(y)', '*', ') * ', odd]) expect(await list(text)).toEqual([odd]);
      for (const text of ['c*', '*)(cn=*', 'no such group', 'a\0', '\\2a', 'x'.repeat(5000)])
        expect(await list(text)).toEqual([]);
    });

    it.runIf(can.groupsElsewhere)('of another place are not listed', async () => {
      await world.joinElsewhere?.('alice', 'core_Listed elsewhere');
      expect(await list('elsewhere')).toEqual([]);
    });
  });

  describe.runIf(can.appPasswords)('an app password', () => {
    it('opens the core base, again and again, and never the web base', async () => {
      const { username, password } = await holder();
      const text = (await world.createAppPassword?.(username, new Date(Date.now() + HOUR_MS))) ?? '';
      for (let time = 0; time < 2; time++) {
        expect(await directory.signIn('core', username, text)).toMatchObject({ username });
        expect(await directory.signIn('web', username, text)).toBeUndefined();
      }
      expect(await directory.signIn('core', username, password)).toMatchObject({ username });
      expect(await directory.signIn('core', 'alice', text)).toBeUndefined();
    });

    it('opens nothing once it has expired', async () => {
      const { username } = await holder();
      const text = (await world.createAppPassword?.(username, new Date(Date.now() + 1000))) ?? '';
      await new Promise((resolve) => setTimeout(resolve, 1500));
      for (const base of BASES) expect(await directory.signIn(base, username, text)).toBeUndefined();
    });
  });

  describe.runIf(can.restart)('a directory that is not there', () => {
    it('is told from one that refuses, and is asked again when it is back', async () => {
      await world.stop?.();
      const asks = [
        directory.signIn('core', 'alice', 'alice has a password'),
        directory.signIn('web', 'alice', 'wrong'),
        directory.find('alice'),
        directory.probe('core', 'stack_admin'),
      ];
      for (const outcome of await Promise.allSettled(asks)) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
        expect(outcome.status === 'rejected' && outcome.reason).toBeInstanceOf(AppError);
      }
      await world.start?.();
      expect(await directory.signIn('core', 'alice', 'alice has a password')).toMatchObject({ username: 'alice' });
    });

    it('may restart between two calls without anybody noticing', async () => {
      for (const base of BASES) expect(await directory.signIn(base, 'alice', 'alice has a password')).toBeDefined();
      await world.stop?.();
      await world.start?.();
      for (const base of BASES) {
        expect(await directory.signIn(base, 'alice', 'wrong')).toBeUndefined();
        expect(await directory.signIn(base, 'alice', 'alice has a password')).toMatchObject({ username: 'alice' });
      }
    });
  });
}
