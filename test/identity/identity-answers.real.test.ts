// What the identity provider's client makes of refusals, lists and answers, of old and new releases.

import type { Group, User } from '@goauthentik/api';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { heldTo } from '../../shared/identity/authentik/answers.ts';
import { at, failureOf, newAccount, newProviderForEachTest, PAGE, PASSWORD, when } from './fake-identity-moods.ts';
import { sayJson } from './fake-identity-server.ts';

newProviderForEachTest();

describe('the schemas of answers', () => {
  it('do not compile against a model of the provider that has other names or other values', () => {
    const flag = z.boolean();
    heldTo<User>()(z.object({ is_active: flag, last_login: z.string().nullish() }));
    // @ts-expect-error: the model has is_active.
    heldTo<User>()(z.object({ active: flag }));
    // @ts-expect-error: nor an optional member of another name.
    heldTo<User>()(z.object({ active: flag.optional() }));
    // @ts-expect-error: the model has a number.
    heldTo<User>()(z.object({ pk: z.string() }));
    // @ts-expect-error: the model allows null.
    heldTo<User>()(z.object({ last_login: z.string() }));
    // @ts-expect-error: also within: the model's members have a username.
    heldTo<Group>()(z.object({ users_obj: z.array(z.object({ name_of_user: z.string() })).nullable() }));
    expect(heldTo<User>()(z.object({ pk: z.int() })).parse({ pk: 7 })).toEqual({ pk: 7 });
  });
});

describe('refusals', () => {
  it.each<[string, unknown, string, { path: string; message: string }[]]>([
    [
      'of one field',
      { email: ['Bad.', 'Worse.'] },
      'email: Bad. email: Worse.',
      [
        { path: 'email', message: 'Bad.' },
        { path: 'email', message: 'Worse.' },
      ],
    ],
    ['of a field by our name', { is_active: ['No.'] }, 'isActive: No.', [{ path: 'isActive', message: 'No.' }]],
    ['of the whole', { non_field_errors: ['No.'] }, 'No.', [{ path: '', message: 'No.' }]],
    [
      'that nest',
      { attributes: { rank: { en: ['Required.'] } } },
      'attributes.rank.en: Required.',
      [{ path: 'attributes.rank.en', message: 'Required.' }],
    ],
    ['as a bare array', ['Must be an object.'], 'Must be an object.', [{ path: '', message: 'Must be an object.' }]],
    ['in words', { detail: 'JSON parse error' }, 'JSON parse error', [{ path: '', message: 'JSON parse error' }]],
    ['with nothing', '', ' without a reason', []],
    ['of strange members', { a: 1, b: null, c: [], d: [[['deep']]] }, 'd: deep', [{ path: 'd', message: 'deep' }]],
  ])('%s are told', async (_, body, words, fields) => {
    when('PATCH', '/core/users/', (response) => sayJson(response, 400, body));
    const { id } = await newAccount();
    const error = await failureOf(at.identity.accounts.change(id, { name: 'x' }));
    expect(error).toMatchObject({ code: 'invalid', fields });
    expect(error.message).toMatch(/^The identity provider refused the change/);
    expect(error.message).toContain(words);
  });

  it('are bounded', async () => {
    const body = Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [`f${index}`, Array(50).fill('x'.repeat(999))]),
    );
    when('PATCH', '/core/users/', (response) => sayJson(response, 400, body));
    const { id } = await newAccount();
    const error = await failureOf(at.identity.accounts.change(id, { name: 'x' }));
    expect(error.fields.length).toBeLessThanOrEqual(10);
  });

  it('of a password without a word have words of ours', async () => {
    when('POST', '/set_password/', (response) => sayJson(response, 400, ''));
    const { id } = await newAccount();
    const error = await failureOf(at.identity.accounts.setPassword(id, PASSWORD));
    expect(error).toMatchObject({ code: 'invalid', fields: [{ path: 'password' }] });
    expect(error.message).toMatch(/refused this password without a reason/);
  });

  it('of attributes that an administrator defined are told with their words', async () => {
    when('PATCH', '/core/users/', (response) => sayJson(response, 400, { attributes: ['rank must match ^[A-Z]+$'] }));
    const { id } = await newAccount();
    const error = await failureOf(at.identity.accounts.changeAttributes(id, { rank: 'x' }));
    expect(error).toMatchObject({
      code: 'invalid',
      fields: [{ path: 'attributes', message: 'rank must match ^[A-Z]+$' }],
    });
  });

  it('of a query on attributes are told', async () => {
    when('GET', '/core/users/', (response) => sayJson(response, 400, ['Invalid attributes.']));
    const error = await failureOf(at.identity.accounts.list({ ...PAGE, attributes: { a__b__c: 1 } }));
    expect(error).toMatchObject({ code: 'invalid', message: expect.stringContaining('Invalid attributes.') });
  });
});

describe('lists', () => {
  const entries = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => ({ pk: from + index, username: `u${from + index}` }));

  it('that go on for ever end', async () => {
    when('GET', '/core/users/', (response, { query }) => {
      const page = Number(query.get('page'));
      sayJson(response, 200, { pagination: { next: page + 1, count: 1 }, results: entries(page, 1) });
    });
    expect((await failureOf(at.identity.accounts.named('x'))).message).toMatch(/more than 100 pages/);
    expect(at.server.calls.length).toBe(100);
  });

  it('are read no further than the name that is looked for', async () => {
    when('GET', '/core/users/', (response, { query, path }) => {
      if (path !== '/core/users/' || query.get('username') !== null) return false;
      const page = Number(query.get('page'));
      const found = page === 2 ? { ...entries(9, 1)[0], username: 'AKadmin' } : entries(page, 1)[0];
      return sayJson(response, 200, { pagination: { next: page + 1, count: 10_000 }, results: [{ ...found, pk: 1 }] });
    });
    expect(await at.identity.accounts.named('akADMIN')).toMatchObject({ username: 'akadmin' });
    const requests = at.server.calls.map(({ query }) => query.get('username') ?? query.get('search'));
    expect(requests).toEqual(['akADMIN', 'akadmin', null]);
    at.server.calls.length = 0;
    at.server.users.delete(1);
    expect(await at.identity.accounts.named('aKadmin')).toBeUndefined();
    expect(at.server.calls.filter(({ query }) => query.get('search') !== null)).toHaveLength(2);
  });

  it.each([
    [1, 101],
    [2, 150],
    [3, 150],
    [2, 199],
    [1, 200],
    [3, 200],
  ])('that are larger than those of the provider are whole: page %i of %i', async (page, pageSize) => {
    for (let each = 0; each < 430; each += 1) {
      const username = `u${String(each).padStart(4, '0')}`;
      at.server.users.set(100 + each, { ...at.server.users.get(1)!, pk: 100 + each, username });
    }
    at.server.users.delete(1);
    at.server.users.delete(2);
    const names = Array.from({ length: 430 }, (_, each) => `u${String(each).padStart(4, '0')}`);
    const { results, count } = await at.identity.accounts.list({ page, pageSize });
    expect(results.map(({ username }) => username)).toEqual(names.slice((page - 1) * pageSize, page * pageSize));
    expect(count).toBe(430);
    expect(at.server.calls.length).toBeLessThanOrEqual(3);
  });

  it('that go round end', async () => {
    when('GET', '/core/tokens/', (response) =>
      sayJson(response, 200, { pagination: { next: 1, count: 1 }, results: [] }),
    );
    expect((await failureOf(at.identity.appPasswords.list('x'))).message).toMatch(/page 1 .* is followed by page 1/);
  });

  it('that shrink meanwhile end', async () => {
    for (let each = 0; each < 101; each += 1) await at.identity.groups.create(`g${String(each).padStart(3, '0')}`);
    when('GET', '/core/groups/', (response, { query }) =>
      query.get('page') === '2' ? sayJson(response, 404, { detail: 'Invalid page.' }) : false,
    );
    expect(await at.identity.groups.list()).toHaveLength(100);
  });

  it('are read to their end, and without members', async () => {
    for (let each = 0; each < 201; each += 1) await at.identity.groups.create(`g${String(each).padStart(3, '0')}`);
    at.server.calls.length = 0;
    expect(await at.identity.groups.list()).toHaveLength(201);
    expect(at.server.calls.map(({ query }) => query.get('page'))).toEqual(['1', '2', '3']);
    expect(at.server.calls.every(({ query }) => query.get('include_users') === 'false')).toBe(true);
  });

  it('of a provider whose pages are shorter than what was asked for are not taken for whole', async () => {
    when('GET', '/core/users/', (response) =>
      sayJson(response, 200, { pagination: { next: 2, previous: 0, count: 9 }, results: [] }),
    );
    expect((await failureOf(at.identity.accounts.list(PAGE))).message).toMatch(/returned 0 accounts on a page of 10/);
  });

  it('map a query to what the provider knows', async () => {
    await at.identity.accounts.list({
      page: 2,
      pageSize: 50,
      search: 'a&b=c',
      kinds: ['person', 'system'],
      isActive: false,
      attributes: { app_expires__lt: 5 },
    });
    expect([...(at.server.calls[0]?.query ?? [])].map((pair) => pair.join('='))).toEqual([
      'ordering=username',
      'search=a&b=c',
      'type=internal',
      'type=external',
      'type=internal_service_account',
      'is_active=false',
      'attributes={"app_expires__lt":5}',
      'page=2',
      'page_size=50',
    ]);
  });

  it('of app passwords hold only those, also when the provider does not know the filter', async () => {
    const [one, two] = [await newAccount('one'), await newAccount('two')];
    for (const { id: accountId, username } of [one, two]) {
      await at.identity.appPasswords.create({ identifier: username, accountId, description: '', expiresAt: null });
    }
    when('GET', '/core/tokens/', (_, call) => {
      call.query.delete('user__username');
      call.query.delete('intent');
      return false;
    });
    expect((await at.identity.appPasswords.list('one')).map(({ identifier }) => identifier)).toEqual(['one']);
  });
});

describe('answers', () => {
  const user = { pk: 7, username: 'ada', is_active: true, attributes: {}, groups_obj: [] };

  it('of old releases are read', async () => {
    when('GET', '/core/users/7/', (response) => sayJson(response, 200, user));
    expect(await at.identity.accounts.get(7)).toEqual({
      id: 7,
      username: 'ada',
      name: '',
      email: '',
      isActive: true,
      kind: 'person',
      groups: [],
      attributes: {},
      createdAt: null,
      lastLogin: null,
    });
  });

  it('of later releases are read', async () => {
    const later = { ...user, type: 'hologram', date_joined: '2026-01-02T05:04:05.678901+02:00', novelty: {} };
    when('GET', '/core/users/7/', (response) => sayJson(response, 200, later));
    const account = await at.identity.accounts.get(7);
    expect(account).toMatchObject({ kind: 'system', createdAt: '2026-01-02T03:04:05.678Z' });
  });

  it.each<[string, object]>([
    ['pk', { pk: undefined }],
    ['pk', { pk: '7' }],
    ['username', { username: null }],
    ['is_active', { is_active: undefined }],
    ['attributes', { attributes: undefined }],
    ['attributes', { attributes: [] }],
    ['groups_obj', { groups_obj: null }],
    ['groups_obj.0.pk', { groups_obj: [{ pk: '../../admin', name: 'x' }] }],
    ['date_joined', { date_joined: 'yesterday' }],
  ])('without a good %s are refused', async (member, bad) => {
    when('GET', '/core/users/7/', (response) => sayJson(response, 200, { ...user, ...bad }));
    expect((await failureOf(at.identity.accounts.get(7))).message).toContain(`with an unexpected shape (${member}: `);
  });
});
