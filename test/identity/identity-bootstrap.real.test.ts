// What the identity provider makes at each start, and many changes at once, over a real PostgreSQL.

import { describe, expect, it } from 'vitest';
import { identityStore } from '@holdfast/identity/store/store';
import { Secret } from '@holdfast/kit/secret';
import { API_TOKEN, BOOTSTRAP_TOKEN, testProvider } from '../e2e/embedded/identity-provider.ts';

const provider = testProvider();
const { ask, create, group, inDatabase } = provider;

describe('the bootstrap', () => {
  const snapshot = () =>
    inDatabase('SELECT xmin, * FROM account UNION ALL SELECT xmin, a.* FROM account a WHERE false');
  const me = async (key = API_TOKEN) => (await ask('GET', '/core/users/me/', { key })).status;

  it('writes nothing the second time', async () => {
    const before = [
      await snapshot(),
      await inDatabase('SELECT xmin, * FROM token'),
      await inDatabase('SELECT xmin, * FROM user_group'),
    ];
    expect(await provider.ensure()).toBe(false);
    expect([
      await snapshot(),
      await inDatabase('SELECT xmin, * FROM token'),
      await inDatabase('SELECT xmin, * FROM user_group'),
    ]).toEqual(before);
  });

  it('brings back what is gone', async () => {
    const { user: admin } = (await ask('GET', '/core/users/me/')).body;
    expect(admin).toMatchObject({ username: 'akadmin', is_superuser: true, groups: [{ name: 'authentik Admins' }] });
    await ask('DELETE', `/core/tokens/${BOOTSTRAP_TOKEN}/`);
    expect(await me()).toBe(403);
    expect([await provider.ensure(), await me()]).toEqual([true, 200]);
    await ask('DELETE', `/core/users/${admin.pk}/`);
    expect([await me(), await provider.ensure(), await me()]).toEqual([403, true, 200]);
    await ask('DELETE', `/core/groups/${admin.groups[0].pk}/`);
    expect((await ask('GET', '/core/users/')).status).toBe(403);
    expect([await provider.ensure(), (await ask('GET', '/core/users/')).status]).toEqual([true, 200]);
    await inDatabase("UPDATE account SET is_active = false WHERE username = 'akadmin'");
    expect([await me(), await provider.ensure(), await me()]).toEqual([403, true, 200]);
    expect(await provider.ensure()).toBe(false);
  });

  it('takes a changed key, and the old one is dead', async () => {
    const changed = 'another-bootstrap-token-0123456789';
    expect(await provider.ensure(changed)).toBe(true);
    expect([await me(), await me(changed)]).toEqual([403, 200]);
    expect(await provider.ensure()).toBe(true);
    expect([await me(), await me(changed)]).toEqual([200, 403]);
  });

  it('by several processes at once makes one of everything', async () => {
    await inDatabase("DELETE FROM token; DELETE FROM account WHERE username = 'akadmin'");
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => provider.ensure()));
    expect(outcomes.filter(Boolean)).toHaveLength(1);
    expect(await me()).toBe(200);
  });

  it('with another secret makes the keys of before worthless, and works', async () => {
    const other = new Secret('another secret of the tests, long enough 0123');
    const store = identityStore({ run: provider.run, secretKey: other, now: provider.now, log: provider.log });
    expect(await store.tokens.ownerOf(API_TOKEN, provider.now())).toBeUndefined();
    const { pk } = (await ask('GET', `/core/tokens/${BOOTSTRAP_TOKEN}/`)).body;
    expect(await store.tokens.key(pk)).toBe('unreadable');
    expect(await provider.ensure(API_TOKEN, other)).toBe(true);
    expect((await store.tokens.ownerOf(API_TOKEN, provider.now()))?.username).toBe('akadmin');
    expect(await provider.ensure()).toBe(true);
  });
});

describe('many changes at once', () => {
  it('to the same people and groups never fail for one another', async () => {
    const groups = [await group(), await group(), await group()];
    const users = await Promise.all(Array.from({ length: 6 }, () => create()));
    let seed = 7;
    const any = <T>(list: readonly T[]): T => list[(seed = (seed * 48_271) % 2_147_483_647) % list.length]!;
    const some = <T>(list: readonly T[]): T[] => list.filter(() => any([true, false]));
    const pks = users.map(({ pk }) => pk);
    const acts = [
      () => ask('PATCH', `/core/users/${any(pks)}/`, { json: { groups: some(groups).map(({ pk }) => pk) } }),
      () => ask('PATCH', `/core/groups/${any(groups).pk}/`, { json: { users: some(pks) } }),
      () => ask('POST', `/core/groups/${any(groups).pk}/add_user/`, { json: { pk: any(pks) } }),
      () => ask('POST', `/core/groups/${any(groups).pk}/remove_user/`, { json: { pk: any(pks) } }),
      () => ask('DELETE', `/core/users/${any(pks)}/`),
      async () => {
        const answer = await ask('POST', '/core/users/', {
          json: { username: `again-${any(pks)}`, name: '', groups: some(groups).map(({ pk }) => pk) },
        });
        if (answer.status === 201) pks.push(answer.body.pk);
        return answer;
      },
    ];
    const statuses = new Set<number>();
    for (let turn = 0; turn < 60; turn++) {
      const answers = await Promise.all(Array.from({ length: 12 }, () => any(acts)()));
      for (const { status } of answers) statuses.add(status);
    }
    expect([...statuses].filter((status) => ![200, 201, 204, 400, 404].includes(status))).toEqual([]);
    expect(provider.log.events.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
