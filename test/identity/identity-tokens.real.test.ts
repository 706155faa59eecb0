// The identity provider's HTTP API over a real PostgreSQL: groups and tokens.

import { describe, expect, it } from 'vitest';
import { identitySetupApi } from '@holdfast/setup/identity/api';
import { identityKeysContract } from '../../packages/setup/test/identity-setup-contract.ts';
import { API_TOKEN, NOWHERE, testProvider } from '../e2e/embedded/identity-provider.ts';

const provider = testProvider();
const { ask, create, group, ordinary } = provider;
const CEILING = 'goauthentik.io/user/token-maximum-lifetime';
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const inFuture = (ms: number): string => new Date(provider.now().getTime() + ms).toISOString();
let counter = 0;
const identifier = (): string => `t-${(counter += 1)}`;
const make = (json: Record<string, unknown>, key?: string) =>
  ask('POST', '/core/tokens/', { json: { identifier: identifier(), ...json }, ...(key === undefined ? {} : { key }) });
const lifetimeOf = (token: { expires: string }): number => Date.parse(token.expires) - provider.now().getTime();

describe('a group', () => {
  it('is made with what the provider adds', async () => {
    const user = await create({ attributes: { a: 1 } });
    const made = await group({ name: 'Gruppe', attributes: { b: 2 }, users: [user.pk] });
    expect(made).toEqual({
      pk: expect.stringMatching(/^[0-9a-f-]{36}$/),
      num_pk: expect.any(Number),
      name: 'Gruppe',
      is_superuser: false,
      parents: [],
      parents_obj: null,
      users: [user.pk],
      users_obj: [
        {
          pk: user.pk,
          username: user.username,
          name: 'N',
          is_active: true,
          last_login: null,
          email: '',
          attributes: { a: 1 },
          uid: user.uid,
        },
      ],
      attributes: { b: 2 },
      roles: [],
      roles_obj: [],
      inherited_roles_obj: [],
      children: [],
      children_obj: null,
    });
    expect((await ask('GET', `/core/groups/${made.pk}/`)).body).toEqual(made);
    expect((await ask('GET', `/core/groups/${made.pk}/?include_users=false`)).body).toMatchObject({ users_obj: null });
    expect((await ask('GET', `/core/users/${user.pk}/`)).body.groups).toEqual([made.pk]);
  });

  it.each([
    ['nothing', {}, { name: ['This field is required.'] }],
    ['a blank name', { name: ' ' }, { name: ['This field may not be blank.'] }],
    ['NUL', { name: 'a\0' }, { name: [expect.any(String)] }],
    ['parents', { name: 'p', parents: [NOWHERE] }, { parents: ['Nested groups are not supported.'] }],
    ['roles', { name: 'p', roles: [NOWHERE] }, { roles: ['Roles are not supported.'] }],
    ['an unknown user', { name: 'p', users: [2_147_483_647] }, { users: [expect.stringMatching(/does not exist/)] }],
    ['no pk', { name: 'p', users: ['a'] }, { users: [expect.any(String)] }],
    ['a pk out of range', { name: 'p', users: [1e12] }, { users: [expect.any(String)] }],
    ['a list of attributes', { name: 'p', attributes: [] }, { attributes: [expect.any(String)] }],
  ])('is refused field by field: %s', async (_, json, body) => {
    expect(await ask('POST', '/core/groups/', { json })).toMatchObject({ status: 400, body });
    expect((await ask('GET', '/core/groups/?name=p')).body.pagination.count).toBe(0);
  });

  it('may say that it has no parents', async () => {
    expect((await ask('POST', '/core/groups/', { json: { name: 'orphan', parents: [] } })).status).toBe(201);
  });

  it('has a name of its own, whatever the case', async () => {
    const { pk } = await group({ name: 'Läufer' });
    const taken = { status: 400, body: { name: ['This field must be unique.'] } };
    expect(await ask('POST', '/core/groups/', { json: { name: 'LÄUFER' } })).toMatchObject(taken);
    const second = await group();
    expect(await ask('PATCH', `/core/groups/${second.pk}/`, { json: { name: 'läufer' } })).toMatchObject(taken);
    expect((await ask('PATCH', `/core/groups/${pk}/`, { json: { name: 'LÄUFER' } })).body.name).toBe('LÄUFER');
    const all = await Promise.all([1, 2, 3].map(() => ask('POST', '/core/groups/', { json: { name: 'raced' } })));
    expect(all.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 400, 400]);
  });

  it('gets and loses members, however often it is said', async () => {
    const [{ pk: user }, { pk }] = [await create(), await group()];
    const act = async (what: string, json: unknown, uuid = pk) =>
      (await ask('POST', `/core/groups/${uuid}/${what}/`, { json })).status;
    const members = async () => (await ask('GET', `/core/groups/${pk}/`)).body.users;
    expect([await act('add_user', { pk: user }), await act('add_user', { pk: user })]).toEqual([204, 204]);
    expect(await members()).toEqual([user]);
    expect([await act('remove_user', { pk: user }), await act('remove_user', { pk: user })]).toEqual([204, 204]);
    expect(await members()).toEqual([]);
    for (const what of ['add_user', 'remove_user']) {
      expect(await act(what, { pk: 2_147_483_647 })).toBe(404);
      expect(await act(what, { pk: user }, NOWHERE)).toBe(404);
      expect(await act(what, { pk: user }, 'nonsense')).toBe(404);
      expect(await act(what, {})).toBe(400);
      expect(await act(what, { pk: 'x' })).toBe(400);
    }
    await Promise.all(Array.from({ length: 8 }, () => act('add_user', { pk: user })));
    expect(await members()).toEqual([user]);
  });

  it('gets the very set of users that is sent', async () => {
    const [a, b, c] = [await create(), await create(), await create()];
    const { pk } = await group({ users: [a.pk, b.pk], attributes: { x: 1 } });
    const patched = await ask('PATCH', `/core/groups/${pk}/`, {
      json: { users: [b.pk, c.pk, c.pk], attributes: { y: 2 } },
    });
    expect(patched.body).toMatchObject({ users: [b.pk, c.pk], attributes: { y: 2 } });
    expect((await ask('PUT', `/core/groups/${pk}/`, { json: { name: 'put' } })).body).toMatchObject({
      name: 'put',
      users: [b.pk, c.pk],
    });
    expect((await ask('PUT', `/core/groups/${pk}/`, { json: {} })).status).toBe(400);
    expect((await ask('DELETE', `/core/groups/${pk}/`)).status).toBe(204);
    expect((await ask('DELETE', `/core/groups/${pk}/`)).status).toBe(404);
    for (const path of [pk, NOWHERE, 'x', '%00']) expect((await ask('GET', `/core/groups/${path}/`)).status).toBe(404);
  });

  it('is found by name, part of it, members and attributes', async () => {
    const user = await create({ username: 'finder' });
    const { pk } = await group({ name: 'Ünique 10%', users: [user.pk], is_superuser: true, attributes: { n: 5 } });
    const found = async (query: string) => {
      const { status, body } = await ask('GET', `/core/groups/?${query}`);
      return status === 200 ? body.results.map((each: { pk: string }) => each.pk) : [status, body];
    };
    for (const query of [
      'search=%C3%BCNIQUE',
      'name=%C3%9Cnique%2010%25',
      'members_by_username=finder',
      `members_by_pk=${user.pk}`,
      'search=10%25',
      'attributes={"n__gt":4}',
      'is_superuser=true&search=nique',
    ]) {
      expect([query, await found(query)]).toEqual([query, [pk]]);
    }
    expect(await found('name=%C3%BCnique%2010%25')).toEqual([]);
    expect(await found('attributes={"n__gt":5}')).toEqual([]);
    expect(await found('members_by_username=nobody')).toEqual([400, { members_by_username: [expect.any(String)] }]);
    expect(await found('members_by_pk=x')).toEqual([400, { members_by_pk: [expect.any(String)] }]);
    const names = (await ask('GET', '/core/groups/?ordering=-name')).body.results.map(
      (each: { name: string }) => each.name,
    );
    expect(names).toEqual(names.toSorted((a: string, b: string) => Buffer.compare(Buffer.from(b), Buffer.from(a))));
  });
});

describe('a token', () => {
  it('never shows its key but when asked, and that is logged', async () => {
    const { status, body } = await make({ identifier: 'shown', description: 'd' });
    expect([status, body]).toEqual([
      201,
      {
        pk: expect.any(String),
        managed: null,
        identifier: 'shown',
        intent: 'api',
        user: expect.any(Number),
        user_obj: expect.objectContaining({ username: 'akadmin' }),
        description: 'd',
        expires: expect.any(String),
        expiring: true,
      },
    ]);
    const { key } = (await ask('GET', '/core/tokens/shown/view_key/')).body;
    expect(key).toMatch(/^[A-Za-z0-9]{60}$/);
    expect(provider.log.events.at(-1)).toMatchObject({
      event: 'identity.key_viewed',
      fields: { token: 'shown', user: 'akadmin' },
    });
    for (const path of ['/core/tokens/', '/core/tokens/shown/']) {
      expect(JSON.stringify((await ask('GET', path)).body)).not.toContain(key);
    }
    expect((await ask('GET', '/core/users/me/', { key })).status).toBe(200);
  });

  it.each([
    ['nothing', {}, { identifier: ['This field is required.'] }],
    ['a blank', { identifier: '' }, { identifier: [expect.any(String)] }],
    ['spaces', { identifier: 'a b' }, { identifier: [expect.stringMatching(/slug/)] }],
    ['umlauts', { identifier: 'ä' }, { identifier: [expect.stringMatching(/slug/)] }],
    ['256 letters', { identifier: 'x'.repeat(256) }, { identifier: [expect.any(String), expect.any(String)] }],
    ['a taken one', { identifier: 'holdfast-bootstrap' }, { identifier: ['This field must be unique.'] }],
    ['another intent', { identifier: 'i', intent: 'verification' }, { intent: ['Invalid intent verification'] }],
    ['recovery', { identifier: 'i', intent: 'recovery' }, { intent: ['Invalid intent recovery'] }],
    ['no intent', { identifier: 'i', intent: 'x' }, { intent: ['"x" is not a valid choice.'] }],
    ['an unknown user', { identifier: 'i', user: 2_147_483_647 }, { user: [expect.stringMatching(/does not exist/)] }],
    ['no time', { identifier: 'i', expires: 'soon' }, { expires: [expect.stringMatching(/wrong format/)] }],
  ])('is refused field by field: %s', async (_, json, body) => {
    expect(await ask('POST', '/core/tokens/', { json })).toMatchObject({ status: 400, body });
  });

  it('for the API ends when the provider says, or never', async () => {
    const { body } = await make({ expires: inFuture(300 * DAY) });
    expect(lifetimeOf(body)).toBeLessThanOrEqual(DAY);
    expect((await make({ expiring: false })).body).toMatchObject({ expires: null, expiring: false });
    const patched = await ask('PATCH', `/core/tokens/${body.identifier}/`, {
      json: { expires: inFuture(300 * DAY), description: 'new' },
    });
    expect(patched.body).toMatchObject({ expires: body.expires, description: 'new' });
  });

  it('for an app ends within a day, unless user or groups say otherwise', async () => {
    const user = await create();
    const app = (json: Record<string, unknown>) => make({ intent: 'app_password', user: user.pk, ...json });
    const beyond = { status: 400, body: { expires: [expect.stringMatching(/maximum lifetime \(\d{4}-.*UTC\)/)] } };
    expect(lifetimeOf((await app({})).body)).toBeGreaterThan(DAY - 60_000);
    expect((await app({ expires: inFuture(DAY - 60_000) })).status).toBe(201);
    expect(await app({ expires: inFuture(DAY + 60_000) })).toMatchObject(beyond);
    expect((await app({ expires: '2020-01-01T00:00:00Z' })).body.expires).toBe('2020-01-01T00:00:00.000Z');
    expect((await app({ expiring: false, expires: inFuture(99 * DAY) })).status).toBe(201);
    await ask('PATCH', `/core/users/${user.pk}/`, { json: { attributes: { [CEILING]: 'days=7' } } });
    const { body: week } = await app({ expires: inFuture(7 * DAY - 60_000) });
    expect(week.expiring).toBe(true);
    expect(await app({ expires: inFuture(7 * DAY + 60_000) })).toMatchObject(beyond);
    await group({ users: [user.pk], attributes: { [CEILING]: 'days=30;hours=12' } });
    expect((await app({ expires: inFuture(30.4 * DAY) })).status).toBe(201);
    const later = { json: { expires: inFuture(31 * DAY) } };
    expect(await ask('PATCH', `/core/tokens/${week.identifier}/`, later)).toMatchObject(beyond);
    const permanent = (await app({ expiring: false, expires: inFuture(99 * DAY) })).body.identifier;
    expect(await ask('PATCH', `/core/tokens/${permanent}/`, { json: { expiring: true } })).toMatchObject(beyond);
  });

  it('is kept by identifier, and stays with its user', async () => {
    const { body } = await make({ intent: 'app_password' });
    const path = `/core/tokens/${body.identifier}/`;
    expect((await ask('GET', path)).body).toEqual(body);
    const other = await create();
    expect((await ask('PATCH', path, { json: { user: other.pk } })).body).toEqual({ user: [expect.any(String)] });
    const put = await ask('PUT', path, {
      json: { identifier: 'renamed', user: body.user, description: 'x', managed: 'm' },
    });
    expect(put.body).toMatchObject({
      identifier: 'renamed',
      description: 'x',
      managed: 'm',
      expires: body.expires,
      pk: body.pk,
    });
    expect((await ask('PATCH', '/core/tokens/renamed/', { json: { identifier: 'holdfast-bootstrap' } })).status).toBe(
      400,
    );
    expect((await ask('GET', path)).status).toBe(404);
    expect((await ask('DELETE', '/core/tokens/renamed/')).status).toBe(204);
    expect((await ask('DELETE', '/core/tokens/renamed/')).status).toBe(404);
    for (const id of ['%00', 'a b', '..', "'", 'x'.repeat(300)]) {
      expect((await ask('GET', `/core/tokens/${encodeURIComponent(id)}/view_key/`)).status).toBe(404);
    }
  });

  it('loses no change when several are made at once', async () => {
    const { body } = await make({ intent: 'app_password' });
    const path = `/core/tokens/${body.identifier}/`;
    const changes = [{ description: 'd' }, { managed: 'm' }, { expiring: false }, { expires: '2020-01-01T00:00:00Z' }];
    await Promise.all(changes.map((json) => ask('PATCH', path, { json })));
    expect((await ask('GET', path)).body).toMatchObject({
      description: 'd',
      managed: 'm',
      expiring: false,
      expires: '2020-01-01T00:00:00.000Z',
    });
  });

  it('is found by what it is', async () => {
    const user = await create({ username: 'Owner' });
    const { body } = await make({
      identifier: 'Findable',
      intent: 'app_password',
      user: user.pk,
      description: 'Ölkanne',
      managed: 'mm',
    });
    const found = async (query: string) =>
      (await ask('GET', `/core/tokens/?${query}`)).body.results?.map((each: { identifier: string }) => each.identifier);
    for (const query of [
      'identifier=Findable',
      'user__username=Owner',
      'description=%C3%96lkanne',
      'managed=mm',
      `expires=${body.expires}&intent=app_password`,
      'search=findable',
      'search=%C3%B6lkan',
      'search=owner&expiring=true',
    ]) {
      expect([query, await found(query)]).toEqual([query, ['Findable']]);
    }
    expect(await found('identifier=findable')).toEqual([]);
    expect(await found('intent=recovery')).toEqual([]);
    expect((await ask('GET', '/core/tokens/?intent=x')).status).toBe(400);
    expect(await found('expiring=false&search=holdfast')).toEqual(['holdfast-bootstrap']);
  });

  it('gets another key, and then the old one is dead', async () => {
    const { identifier: id, key } = await ordinary();
    const set = (json: unknown, by = API_TOKEN) => ask('POST', `/core/tokens/${id}/set_key/`, { json, key: by });
    const fresh = 'a-new-key-that-nobody-guesses';
    expect((await set({ key: fresh }, key)).status).toBe(403);
    expect((await set({ key: fresh })).status).toBe(204);
    expect((await ask('GET', '/core/users/me/', { key })).status).toBe(403);
    expect((await ask('GET', '/core/users/me/', { key: fresh })).status).toBe(200);
    expect((await ask('GET', `/core/tokens/${id}/view_key/`)).body).toEqual({ key: fresh });
    for (const json of [
      {},
      { key: '' },
      { key: 'short' },
      { key: 1 },
      { key: API_TOKEN },
      { key: `${fresh}\0` },
      { key: 'x'.repeat(1025) },
    ]) {
      const answer = await set(json);
      expect([json, answer.status, answer.body]).toEqual([json, 400, '']);
    }
    expect((await ask('GET', '/core/users/me/', { key: fresh })).status).toBe(200);
  });

  it('of a caller that is no superuser is its own, and ends', async () => {
    const { user, key } = await ordinary();
    const made = await make({ identifier: 'own-one', user: 1, intent: 'app_password', expiring: false }, key);
    expect(made).toMatchObject({ status: 201, body: { user: user.pk, expiring: true } });
    const listed = (await ask('GET', '/core/tokens/?user__username=akadmin', { key })).body;
    expect(listed.results).toEqual([]);
    const own = (await ask('GET', '/core/tokens/', { key })).body.results;
    expect(own.map((each: { user: number }) => each.user)).toEqual([user.pk, user.pk]);
    expect((await ask('GET', '/core/tokens/own-one/view_key/', { key })).status).toBe(200);
    expect((await ask('PATCH', '/core/tokens/own-one/', { key, json: { expiring: false } })).body.expiring).toBe(true);
    expect((await ask('DELETE', '/core/tokens/own-one/', { key })).status).toBe(204);
  });

  it('that expired is listed for an hour, then swept', async () => {
    const { body } = await make({ intent: 'app_password', expires: inFuture(60_000) });
    const path = `/core/tokens/${body.identifier}/`;
    provider.later(60_001 + HOUR - 2000);
    await provider.store.sweep(provider.now());
    expect((await ask('GET', path)).status).toBe(200);
    provider.later(2000);
    expect(await provider.store.sweep(provider.now())).toBeGreaterThan(0);
    expect((await ask('GET', path)).status).toBe(404);
    expect(await provider.store.sweep(provider.now())).toBe(0);
    expect((await ask('GET', '/core/tokens/holdfast-bootstrap/')).status).toBe(200);
  });
});

describe('the database', () => {
  it('holds no key and no password in a form that opens anything', async () => {
    const { key } = await ordinary();
    const tokens = await provider.inDatabase<object>(
      'SELECT token.*, encode(key_sealed, $$escape$$) AS escaped FROM token',
    );
    const text = JSON.stringify(tokens);
    expect(text).not.toContain(key);
    expect(text).not.toContain(API_TOKEN);
    expect(text).not.toContain(Buffer.from(API_TOKEN).toString('hex'));
  });
});

// What identity-setup expects of the keys of authentik.
identityKeysContract('the embedded provider', async () => {
  const { identifier: name, key: held } = await ordinary();
  const request: typeof fetch = async (input, init = {}) => {
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    const key = new Headers(init.headers).get('authorization')?.replace(/^Bearer /, '') ?? null;
    const sent = typeof init.body === 'string' ? { raw: init.body } : {};
    const { status, body } = await ask(init.method ?? 'GET', `${pathname}${search}`, { key, ...sent });
    return new Response(status === 204 ? null : JSON.stringify(body), { status });
  };
  return { api: identitySetupApi('http://identity', request), key: API_TOKEN, identifier: name, held };
});
