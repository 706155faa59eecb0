// The identity provider's HTTP API over a real PostgreSQL: users and accounts of programs.

import { describe, expect, it } from 'vitest';
import { NOWHERE, testProvider } from '../e2e/embedded/identity-provider.ts';

const provider = testProvider();
const { ask, create, group, ordinary } = provider;
const REQUIRED = 'This field is required.';

describe('a user', () => {
  it('is made with what the provider adds', async () => {
    const made = await create({
      username: 'Anna.Ärger+1@x',
      email: 'a@example.org',
      attributes: { a: [1, { b: null }] },
    });
    expect(made).toEqual({
      pk: expect.any(Number),
      username: 'Anna.Ärger+1@x',
      name: 'N',
      email: 'a@example.org',
      is_active: true,
      is_superuser: false,
      type: 'internal',
      path: 'users',
      groups: [],
      groups_obj: [],
      roles: [],
      roles_obj: [],
      attributes: { a: [1, { b: null }] },
      avatar: expect.stringMatching(/^data:/),
      uid: expect.stringMatching(/^[0-9a-f]{64}$/),
      uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      last_login: null,
      date_joined: expect.stringMatching(/^\d{4}-.*Z$/),
      last_updated: made.date_joined,
      password_change_date: made.date_joined,
    });
    expect((await ask('GET', `/core/users/${made.pk}/`)).body).toEqual(made);
  });

  it.each([
    ['nothing', {}, { username: [REQUIRED], name: [REQUIRED] }],
    ['blanks', { username: '  ', name: '' }, { username: ['This field may not be blank.'] }],
    ['nulls', { username: null, name: null }, { username: [expect.any(String)], name: [expect.any(String)] }],
    [
      'other kinds',
      { username: 1, name: [], is_active: 'x' },
      { username: ['Not a valid string.'], name: [expect.any(String)], is_active: [expect.any(String)] },
    ],
    [
      'a long name',
      { username: 'x'.repeat(151), name: '' },
      { username: ['Ensure this field has no more than 150 characters.'] },
    ],
    [
      'NUL',
      { username: 'a\0b', name: 'c\0' },
      { username: [expect.stringMatching(/Null/)], name: [expect.stringMatching(/Null/)] },
    ],
    ['half a character', { username: '\ud800', name: '' }, { username: [expect.any(String)] }],
    ['a bad address', { username: 'x1', name: '', email: 'nobody' }, { email: ['Enter a valid email address.'] }],
    ['an unknown type', { username: 'x1', name: '', type: 'robot' }, { type: ['"robot" is not a valid choice.'] }],
    ['the inner type', { username: 'x1', name: '', type: 'internal_service_account' }, { type: [expect.any(String)] }],
    [
      'a leading slash',
      { username: 'x1', name: '', path: '/a' },
      { path: ['No leading or trailing slashes allowed.'] },
    ],
    ['a trailing slash', { username: 'x1', name: '', path: 'a/' }, { path: [expect.any(String)] }],
    [
      'an empty segment',
      { username: 'x1', name: '', path: 'a//b' },
      { path: ['No empty segments in user path allowed.'] },
    ],
    ['a list of attributes', { username: 'x1', name: '', attributes: [1] }, { attributes: [expect.any(String)] }],
    [
      'null attributes',
      { username: 'x1', name: '', attributes: null },
      { attributes: ['This field may not be null.'] },
    ],
    [
      'NUL in attributes',
      { username: 'x1', name: '', attributes: { a: ['\0'] } },
      { attributes: [expect.any(String)] },
    ],
    [
      'big attributes',
      { username: 'x1', name: '', attributes: { a: 'x'.repeat(100_000) } },
      { attributes: [expect.stringMatching(/100000 bytes/)] },
    ],
    ['no uuid', { username: 'x1', name: '', groups: ['x'] }, { groups: [expect.any(String)] }],
    [
      'an unknown group',
      { username: 'x1', name: '', groups: [NOWHERE] },
      { groups: [`Invalid pk "${NOWHERE}" - object does not exist.`] },
    ],
    ['roles', { username: 'x1', name: '', roles: [NOWHERE] }, { roles: [expect.any(String)] }],
  ])('is refused field by field: %s', async (_, json, body) => {
    expect(await ask('POST', '/core/users/', { json })).toMatchObject({ status: 400, body });
    const { body: list } = await ask('GET', '/core/users/?username=x1');
    expect(list.pagination.count).toBe(0);
  });

  it('has a name of its own, whatever the case', async () => {
    await create({ username: 'Öde' });
    for (const username of ['Öde', 'öde', 'ÖDE', ' öDe ', 'Öde']) {
      const answer = await ask('POST', '/core/users/', { json: { username, name: '' } });
      expect([answer.status, answer.body]).toEqual([400, { username: ['This field must be unique.'] }]);
    }
    const { pk } = await create();
    expect((await ask('PATCH', `/core/users/${pk}/`, { json: { username: 'öde' } })).status).toBe(400);
  });

  it('of one name is made once by ten at the same time', async () => {
    const json = { username: 'contested', name: '' };
    const all = await Promise.all(Array.from({ length: 10 }, () => ask('POST', '/core/users/', { json })));
    expect(all.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      201,
      ...Array.from({ length: 9 }, () => 400),
    ]);
  });

  it('is changed where something is said, and attributes as a whole', async () => {
    const made = await create({ attributes: { a: 1, b: 2 }, email: 'x@y.z' });
    provider.later(1000);
    const { body } = await ask('PATCH', `/core/users/${made.pk}/`, { json: { attributes: { c: 3 } } });
    expect(body).toEqual({ ...made, attributes: { c: 3 }, last_updated: expect.any(String) });
    expect(body.last_updated > made.last_updated).toBe(true);
    const put = await ask('PUT', `/core/users/${made.pk}/`, { json: { username: made.username, name: 'New' } });
    expect(put).toMatchObject({ status: 200, body: { name: 'New', email: 'x@y.z', attributes: { c: 3 } } });
    expect((await ask('PUT', `/core/users/${made.pk}/`, { json: { name: 'New' } })).body).toEqual({
      username: [REQUIRED],
    });
    expect((await ask('PATCH', '/core/users/2147483647/', { json: {} })).status).toBe(404);
    expect((await ask('PATCH', `/core/users/${made.pk}/`)).status).toBe(200);
  });

  it('loses no change to another field when two are made at once', async () => {
    const { pk } = await create();
    const changes = [{ name: 'A' }, { email: 'b@c.d' }, { attributes: { e: 1 } }, { path: 'f' }, { is_active: false }];
    await Promise.all(changes.map((json) => ask('PATCH', `/core/users/${pk}/`, { json })));
    expect((await ask('GET', `/core/users/${pk}/`)).body).toMatchObject(Object.assign({}, ...changes));
  });

  it('gets the very set of groups that is sent', async () => {
    const [a, b, c] = await Promise.all([group(), group(), group()]);
    const { pk } = await create({ groups: [a.pk, b.pk, b.pk] });
    const groups = async (json: unknown) =>
      (await ask('PATCH', `/core/users/${pk}/`, { json })).body.groups as string[];
    expect(await groups({ groups: [b.pk, c.pk.toUpperCase()] })).toEqual(expect.arrayContaining([b.pk, c.pk]));
    expect(await groups({ name: 'x' })).toHaveLength(2);
    expect((await ask('PATCH', `/core/users/${pk}/`, { json: { name: 'y', groups: [a.pk, NOWHERE] } })).status).toBe(
      400,
    );
    expect((await ask('GET', `/core/users/${pk}/`)).body).toMatchObject({
      name: 'x',
      groups: expect.not.arrayContaining([a.pk]),
    });
    expect(await groups({ groups: [] })).toEqual([]);
  });

  it('goes with its tokens and memberships', async () => {
    const { user, identifier, key } = await ordinary();
    const g = await group({ users: [user.pk] });
    expect((await ask('DELETE', `/core/users/${user.pk}/`)).status).toBe(204);
    expect((await ask('DELETE', `/core/users/${user.pk}/`)).status).toBe(404);
    expect((await ask('GET', `/core/tokens/${identifier}/`)).status).toBe(404);
    expect((await ask('GET', '/core/users/me/', { key })).status).toBe(403);
    expect((await ask('GET', `/core/groups/${g.pk}/`)).body.users).toEqual([]);
  });
});

describe('an account of a program', () => {
  it('comes with its app password, and a group where it is asked for', async () => {
    const made = await ask('POST', '/core/users/service_account/', {
      json: { name: 'LDAP Reader', create_group: true },
    });
    expect(made).toMatchObject({
      status: 200,
      body: { username: 'LDAP Reader', token: expect.stringMatching(/^[A-Za-z0-9]{60}$/) },
    });
    const user = (await ask('GET', `/core/users/${made.body.user_pk}/`)).body;
    expect(user).toMatchObject({
      uid: made.body.user_uid,
      type: 'service_account',
      path: 'goauthentik.io/service-accounts',
      groups: [made.body.group_pk],
    });
    const token = (await ask('GET', '/core/tokens/service-account-ldap-reader-password/')).body;
    expect(token).toMatchObject({ intent: 'app_password', user: user.pk, expiring: true });
    expect(Date.parse(token.expires) - provider.now().getTime()).toBeGreaterThan(359.9 * 86_400_000);
    expect((await ask('GET', '/core/tokens/service-account-ldap-reader-password/view_key/')).body.key).toBe(
      made.body.token,
    );
  });

  it('is refused when name, group or token are taken, and then leaves nothing', async () => {
    const make = (json: unknown) => ask('POST', '/core/users/service_account/', { json });
    expect((await make({})).body).toEqual({ name: [REQUIRED] });
    expect((await make({ name: 'prog a', expiring: false })).body).not.toHaveProperty('group_pk');
    expect(await make({ name: 'PROG A' })).toMatchObject({ status: 400, body: { name: [expect.any(String)] } });
    expect(await make({ name: 'prog-a' })).toMatchObject({
      status: 400,
      body: { non_field_errors: [expect.any(String)] },
    });
    await group({ name: 'prog b' });
    expect((await make({ name: 'prog b', create_group: true })).status).toBe(400);
    expect((await ask('GET', '/core/users/?search=prog')).body.pagination.count).toBe(1);
  });
});
