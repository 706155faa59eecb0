// What every Identity must do, held against the fake and against providers over HTTP, also one that others use: each
// test makes things of unique names, and takes away what it made.

import { describe, expect, it } from 'vitest';
import type { AccountQuery, Identity, NewAccount } from '../../shared/identity/port.ts';
import { identityAppPasswordsContract } from './identity-app-passwords-contract.ts';
import { newBench, NO_ACCOUNT, unique } from './identity-bench-contract.ts';
import { identityGroupsContract } from './identity-groups-contract.ts';
import { identityVisibleContract } from './identity-visible-contract.ts';

/** `make` may give the same provider again and again. */
export function identityContract(what: string, make: () => Identity, release = /^\d+\.\d+/): void {
  describe(`identity (${what})`, () => {
    const bench = newBench(make);
    const { account, prefix } = bench;
    const accounts = () => bench.identity().accounts;
    const find = async (query: Partial<AccountQuery>): Promise<string[]> => {
      const { results } = await accounts().list({ page: 1, pageSize: 100, search: prefix, ...query });
      return results.map(({ username }) => username);
    };

    it('tells whose token it uses, and its release', async () => {
      expect(await bench.identity().me()).toEqual({ username: expect.stringMatching(/./), isSuperuser: true });
      expect(await bench.identity().version()).toMatch(release);
    });

    it('makes a person without groups who is active', async () => {
      const made = await account({ name: 'Ada Ö. 李', email: 'ada@example.org', attributes: { app_note: 'hi' } });
      expect(made).toMatchObject({
        id: expect.any(Number),
        name: 'Ada Ö. 李',
        email: 'ada@example.org',
        isActive: true,
        kind: 'person',
        groups: [],
        attributes: { app_note: 'hi' },
        lastLogin: null,
      });
      expect(await accounts().get(made.id)).toEqual(made);
    });

    it('tells when an account was made', async () => {
      const { createdAt } = await account();
      if (createdAt === null) return;
      expect(createdAt).toMatch(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/);
      expect(Math.abs(Date.parse(createdAt) - Date.now())).toBeLessThan(10 * 60_000);
    });

    it('makes a program', async () => {
      expect(await account({ kind: 'service' })).toMatchObject({ kind: 'service', isActive: true });
    });

    it('takes an account without a shown name and without an address', async () => {
      expect(await account({ name: '' })).toMatchObject({ name: '', email: '', attributes: {} });
    });

    it('refuses a name that is taken', async () => {
      const { username } = await account();
      await expect(account({ username })).rejects.toMatchObject({ code: 'conflict' });
    });

    it('refuses a name that is taken in another case', async () => {
      const { username } = await account({ username: `${prefix}-Case-${unique()}` });
      await expect(account({ username: username.toUpperCase() })).rejects.toMatchObject({ code: 'conflict' });
      expect(await find({ search: username })).toEqual([username]);
    });

    it('lets one of many take a name', async () => {
      const username = `${prefix}-race-${unique()}`;
      const tries = await Promise.allSettled(
        [username, username.toUpperCase(), username].map((each) => account({ username: each })),
      );
      expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const each of tries) if (each.status === 'rejected') expect(each.reason).toMatchObject({ code: 'conflict' });
      expect(await find({ search: username })).toHaveLength(1);
    });

    it('refuses an empty name and one that is too long', async () => {
      for (const username of ['', `${prefix}${'x'.repeat(150)}`]) {
        await expect(account({ username })).rejects.toMatchObject({
          code: 'invalid',
          fields: [{ path: 'username', message: expect.stringMatching(/./) }],
        });
      }
    });

    it('refuses an address that is none, and makes nothing', async () => {
      const username = `${prefix}-${unique()}`;
      const refused = { code: 'invalid', fields: [{ path: 'email', message: expect.stringMatching(/./) }] };
      await expect(account({ username, email: 'nowhere' })).rejects.toMatchObject(refused);
      expect(await accounts().named(username)).toBeUndefined();
    });

    it.each(['with space', 'a.b@c', 'ünïcode', "o'brien", 'x+y=z&q', 'per%cent', 'a/b', '..'])(
      'keeps and finds a name with signs in it: %s',
      async (signs) => {
        const made = await account({ username: `${prefix}-${unique()}-${signs}` });
        expect(await accounts().named(made.username)).toEqual(made);
        expect(await find({ search: made.username.slice(0, prefix.length + 9) })).toEqual([made.username]);
      },
    );

    it('knows nobody by an id that is not given, or is no id', async () => {
      for (const id of [NO_ACCOUNT, 0, -1, 1.5, 2 ** 53, Number.NaN]) expect(await accounts().get(id)).toBeUndefined();
    });

    it('finds by name without regard to case, and only the whole name', async () => {
      const made = await account({ username: `${prefix}-Whole-${unique()}` });
      expect(await accounts().named(made.username)).toEqual(made);
      expect(await accounts().named(made.username.toLowerCase())).toEqual(made);
      expect(await accounts().named(made.username.toUpperCase())).toEqual(made);
      expect(await accounts().named(made.username.slice(0, -1))).toBeUndefined();
      expect(await accounts().named(`${made.username}x`)).toBeUndefined();
      expect(await accounts().named('')).toBeUndefined();
    });

    it('does not take a shown name or an address for a username', async () => {
      const other = `${prefix}-shown-${unique()}`;
      await account({ name: other, email: `${other}@example.org` });
      expect(await accounts().named(other)).toBeUndefined();
      expect(await accounts().named(`${other}@example.org`)).toBeUndefined();
    });

    it('searches in usernames, shown names and addresses, without case', async () => {
      const word = `w${unique()}`;
      const inName = await account({ name: `The ${word} one` });
      const inAddress = await account({ email: `${word}@example.org` });
      const inUsername = await account({ username: `${prefix}-${word}` });
      const expected = [inName, inAddress, inUsername].map(({ username }) => username).toSorted();
      expect((await find({ search: word.toUpperCase() })).toSorted()).toEqual(expected);
      expect(await find({ search: `${word}-nobody` })).toEqual([]);
    });

    it('lists by username, page by page, and nothing beyond the last', async () => {
      const word = `p${unique()}`;
      for (const each of ['c', 'a', 'e', 'b', 'd']) await account({ username: `${prefix}-${word}-${each}` });
      const pages = await Promise.all(
        [1, 2, 3, 4, 99].map((page) => accounts().list({ page, pageSize: 2, search: word })),
      );
      const ends = pages.map(({ results }) => results.map(({ username }) => username.slice(-1)).join(''));
      expect(ends).toEqual(['ab', 'cd', 'e', '', '']);
      expect(pages.map(({ count }) => count)).toEqual([5, 5, 5, 5, 5]);
    });

    it('gives pages that are larger than those of the provider', async () => {
      const { results: all, count } = await accounts().list({ page: 1, pageSize: 200 });
      expect(all).toHaveLength(Math.min(count, 200));
      expect((await accounts().list({ page: 2, pageSize: 100 })).results).toEqual(all.slice(100));
      expect(await accounts().list({ page: 99, pageSize: 200, search: prefix })).toMatchObject({ results: [] });
    });

    it('answers an empty first page where nobody matches', async () => {
      const nobody = { page: 1, pageSize: 10, search: `${prefix}-nobody-${unique()}` };
      expect(await accounts().list(nobody)).toEqual({ results: [], count: 0 });
      expect(await accounts().list({ ...nobody, page: 2 })).toEqual({ results: [], count: 0 });
    });

    it('lists by kind', async () => {
      const word = `k${unique()}`;
      const person = await account({ username: `${prefix}-${word}-1` });
      const program = await account({ username: `${prefix}-${word}-2`, kind: 'service' });
      expect(await find({ search: word, kinds: ['person'] })).toEqual([person.username]);
      expect(await find({ search: word, kinds: ['service'] })).toEqual([program.username]);
      expect(await find({ search: word, kinds: ['system'] })).toEqual([]);
      expect(await find({ search: word, kinds: ['person', 'service'] })).toHaveLength(2);
      expect(await find({ search: word, kinds: [] })).toEqual([]);
    });

    it('lists by being active', async () => {
      const word = `s${unique()}`;
      const on = await account({ username: `${prefix}-${word}-on` });
      const off = await account({ username: `${prefix}-${word}-off` });
      await accounts().change(off.id, { isActive: false });
      expect(await find({ search: word, isActive: true })).toEqual([on.username]);
      expect(await find({ search: word, isActive: false })).toEqual([off.username]);
    });

    it('lists by attributes: numbers as numbers, and what is not there', async () => {
      const word = `q${unique()}`;
      const ages: Record<string, NewAccount['attributes']> = {
        early: { app_expires: 9 },
        late: { app_expires: 100 },
        text: { app_expires: '9' },
        without: {},
      };
      for (const [each, attributes = {}] of Object.entries(ages)) {
        await account({ username: `${prefix}-${word}-${each}`, attributes });
      }
      const which = async (attributes: NonNullable<AccountQuery['attributes']>): Promise<string> =>
        (await find({ search: word, attributes })).map((name) => name.split('-').at(-1)).join(' ');
      // A number kept as text is less than every number to some databases.
      const numbers = async (attributes: Parameters<typeof which>[0]) =>
        (await which(attributes)).replace(/ ?text/, '');
      expect(await numbers({ app_expires__lt: 10 })).toBe('early');
      expect(await which({ app_expires__gt: 9 })).toBe('late');
      expect(await which({ app_expires__gte: 9 })).toBe('early late');
      expect(await numbers({ app_expires__lte: 100 })).toBe('early late');
      expect(await which({ app_expires: 100 })).toBe('late');
      expect(await which({ app_expires: '9' })).toBe('text');
      expect(await which({ app_expires__isnull: true })).toBe('without');
      expect(await which({ app_expires__isnull: false })).toBe('early late text');
      expect(await numbers({ app_expires__lt: 10, app_other__isnull: true })).toBe('early');
      expect(await which({ app_expires__gt: 8, app_other__isnull: false })).toBe('');
    });

    it('changes what is named and nothing else', async () => {
      const made = await account({ name: 'Before', email: 'a@example.org', attributes: { app_note: 1 } });
      expect(await accounts().change(made.id, { name: 'After' })).toEqual({ ...made, name: 'After' });
      expect(await accounts().change(made.id, { email: '' })).toEqual({ ...made, name: 'After', email: '' });
      const off = { ...made, name: 'After', email: '', isActive: false };
      expect(await accounts().change(made.id, { isActive: false })).toEqual(off);
      expect(await accounts().change(made.id, {})).toEqual(off);
      expect(await accounts().get(made.id)).toEqual(off);
    });

    it('makes a program of a person, and a person of a program', async () => {
      const made = await account({ attributes: { app_note: 1 } });
      expect(await accounts().change(made.id, { kind: 'service' })).toEqual({ ...made, kind: 'service' });
      expect(await accounts().change(made.id, { kind: 'person' })).toEqual(made);
    });

    it('refuses a bad value, with its name, and keeps what was', async () => {
      const made = await account();
      const refused = { code: 'invalid', fields: [{ path: 'email', message: expect.stringMatching(/./) }] };
      await expect(accounts().change(made.id, { name: 'After', email: 'nowhere' })).rejects.toMatchObject(refused);
      expect(await accounts().get(made.id)).toEqual(made);
    });

    it('changes nobody who is not there', async () => {
      for (const id of [NO_ACCOUNT, 0, 1.5]) {
        const missing = { code: 'not_found' };
        await expect(accounts().change(id, { name: 'x' })).rejects.toMatchObject(missing);
        await expect(accounts().change(id, {})).rejects.toMatchObject(missing);
        await expect(accounts().changeAttributes(id, { app_x: 1 })).rejects.toMatchObject(missing);
        await expect(accounts().setPassword(id, 'correct horse battery')).rejects.toMatchObject(missing);
      }
    });

    it('adds, replaces and removes single attributes', async () => {
      const { id } = await account({ attributes: { app_a: 1, app_b: { deep: [1, 'x', null, true] } } });
      const changed = await accounts().changeAttributes(id, { app_a: null, app_c: 'ü\n"', app_gone: null });
      expect(changed.attributes).toEqual({ app_b: { deep: [1, 'x', null, true] }, app_c: 'ü\n"' });
      expect((await accounts().changeAttributes(id, { app_b: {} })).attributes).toEqual({ app_b: {}, app_c: 'ü\n"' });
      expect((await accounts().get(id))?.attributes).toEqual({ app_b: {}, app_c: 'ü\n"' });
    });

    it('loses no attribute when many write at once', async () => {
      const { id } = await account({ attributes: { app_first: true } });
      const names = Array.from({ length: 12 }, (_, index) => `app_n${index}`);
      await Promise.all([
        ...names.map((name) => accounts().changeAttributes(id, { [name]: 1 })),
        accounts().change(id, { isActive: false }),
      ]);
      const after = await accounts().get(id);
      expect(Object.keys(after?.attributes ?? {}).toSorted()).toEqual(['app_first', ...names].toSorted());
      expect(after?.isActive).toBe(false);
    });

    it('sets passwords, and refuses an empty one', async () => {
      const { id } = await account();
      await accounts().setPassword(id, `Correct-${unique()}-horse 9 ü`);
      await expect(accounts().setPassword(id, '')).rejects.toMatchObject({
        code: 'invalid',
        fields: [{ path: 'password', message: expect.stringMatching(/./) }],
      });
    });

    it('deletes, and minds nothing that is gone already', async () => {
      const { id, username } = await account();
      await accounts().delete(id);
      await accounts().delete(id);
      for (const none of [NO_ACCOUNT, 0, 1.5]) await accounts().delete(none);
      expect(await accounts().get(id)).toBeUndefined();
      expect(await accounts().named(username)).toBeUndefined();
      expect((await account({ username })).id).not.toBe(id);
    });

    identityGroupsContract(bench);
    identityAppPasswordsContract(bench);
    identityVisibleContract(bench);
  });
}
