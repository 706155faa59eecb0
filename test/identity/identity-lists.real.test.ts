// Lists of the identity provider over a real PostgreSQL: pages, filters, hostile input, ten thousand users.

import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { NOWHERE, testProvider } from '../e2e/embedded/identity-provider.ts';

const provider = testProvider();
const { ask, create, group } = provider;

/** The usernames that a query finds, in order; the first page of 100. */
async function found(query: Record<string, string> | [string, string][]): Promise<string[]> {
  const answer = await ask('GET', `/core/users/?page_size=100&${new URLSearchParams(query).toString()}`);
  expect([answer.status, answer.body]).toEqual([200, expect.anything()]);
  return answer.body.results.map(({ username }: { username: string }) => username);
}
const attributes = (query: unknown): Promise<string[]> => found({ attributes: JSON.stringify(query) });
const refusal = async (query: string): Promise<unknown> => {
  const { status, body } = await ask('GET', `/core/users/?${query}`);
  return [status, body];
};

// oxlint-disable-next-line typescript/no-explicit-any -- answers of the API
let [team, other, ann]: any[] = [];
beforeAll(async () => {
  team = await group({ name: 'Team' });
  other = await group({ name: 'Other, "one"' });
  ann = await create({
    username: 'ann',
    name: 'Ann Ärger',
    email: 'Ann@Example.org',
    groups: [team.pk],
    path: 'users/staff',
    attributes: { app_expires: 1000, deep: { er: [1, 'two'] }, note: 'Öl 50%', flag: true, nothing: null },
  });
  await create({
    username: 'bob',
    name: 'Bob',
    groups: [team.pk, other.pk],
    attributes: { app_expires: 2000.5, note: 'x' },
  });
  await create({ username: 'cia', name: 'under_score', is_active: false, attributes: { app_expires: '1500' } });
  await create({
    username: 'dan',
    name: '100% \\ back',
    type: 'service_account',
    path: 'usersother',
    groups: [other.pk],
  });
});

describe('the envelope', () => {
  it('counts pages and positions from 1, with 0 where there is none', async () => {
    const page = async (query: string) => (await ask('GET', `/core/users/?${query}`)).body.pagination;
    expect(await page('page_size=2')).toEqual({
      next: 2,
      previous: 0,
      count: 5,
      current: 1,
      total_pages: 3,
      start_index: 1,
      end_index: 2,
    });
    expect(await page('page_size=2&page=3')).toEqual({
      next: 0,
      previous: 2,
      count: 5,
      current: 3,
      total_pages: 3,
      start_index: 5,
      end_index: 5,
    });
    expect(await page('username=nobody')).toEqual({
      next: 0,
      previous: 0,
      count: 0,
      current: 1,
      total_pages: 1,
      start_index: 0,
      end_index: 0,
    });
    expect((await ask('GET', '/core/users/')).body.autocomplete).toEqual({});
  });

  it('is 404 beyond the last page and for what is no page', async () => {
    for (const page of ['4', '0', '-1', 'x', '1.5', '99999999999999999999']) {
      expect(await refusal(`page_size=2&page=${page}`)).toEqual([404, { detail: 'Invalid page.' }]);
    }
    for (const path of ['/core/groups/', '/core/tokens/']) {
      expect(await ask('GET', `${path}?page=2`)).toMatchObject({ status: 404, body: { detail: 'Invalid page.' } });
    }
  });

  it('passes over sizes that are none', async () => {
    for (const size of ['0', '-5', 'x', '', '1e3'])
      expect((await ask('GET', `/core/users/?page_size=${size}`)).status).toBe(200);
  });
});

describe('the order', () => {
  it('is by username unless asked otherwise; unknown fields are passed over', async () => {
    const byName = ['akadmin', 'ann', 'bob', 'cia', 'dan'];
    expect(await found({})).toEqual(byName);
    expect(await found({ ordering: '-username' })).toEqual(byName.toReversed());
    expect(await found({ ordering: 'password_hash' })).toEqual(byName);
    expect(await found({ ordering: 'username; DROP TABLE account' })).toEqual(byName);
    expect(await found({ ordering: '-is_active,-pk' })).toEqual(['dan', 'bob', 'ann', 'akadmin', 'cia']);
    for (const field of ['pk', 'name', 'email', 'date_joined', 'last_updated', 'last_login', 'type', 'path', 'uuid']) {
      expect(await found({ ordering: `-${field}` })).toHaveLength(5);
    }
  });
});

describe('the filters of users', () => {
  it.each([
    [{ username: 'ann' }, ['ann']],
    [{ username: 'ANN' }, []],
    [{ username: '' }, ['akadmin', 'ann', 'bob', 'cia', 'dan']],
    [{ email: 'Ann@Example.org' }, ['ann']],
    [{ email: 'ann@example.org' }, []],
    [{ name: 'Bob' }, ['bob']],
    [{ is_active: 'false' }, ['cia']],
    [{ is_active: 'True', type: 'internal' }, ['akadmin', 'ann', 'bob']],
    [{ is_superuser: 'true' }, ['akadmin']],
    [{ is_superuser: 'false', search: 'AN' }, ['ann', 'dan']],
    [{ path: 'users/staff' }, ['ann']],
    [{ path_startswith: 'users/' }, ['ann']],
    [{ path_startswith: 'users' }, ['akadmin', 'ann', 'bob', 'cia', 'dan']],
    [{ path_startswith: '%' }, []],
    [{ type: 'service_account' }, ['dan']],
    [{ groups_by_name: 'Team' }, ['ann', 'bob']],
    [{ groups_by_name: 'Other, "one"' }, ['bob', 'dan']],
    [{ search: 'ÄRGER' }, ['ann']],
    [{ search: 'example' }, ['ann']],
    [{ search: '_' }, ['cia']],
    [{ search: '0%' }, ['dan']],
    [{ search: '\\' }, ['dan']],
    [{ last_login__isnull: 'true' }, ['akadmin', 'ann', 'bob', 'cia', 'dan']],
    [{ last_login__isnull: 'false' }, []],
    [{ date_joined__gt: '2100-01-01' }, []],
    [{ date_joined__lt: '2100-01-01T00:00:00Z', username: 'ann' }, ['ann']],
    [{ last_updated__gt: '2000-01-01T00:00:00+02:00', username: 'ann' }, ['ann']],
    [{ last_login__lt: '2100-01-01' }, []],
  ])('%j finds %j', async (query, names) => {
    expect(await found(query as Record<string, string>)).toEqual(names);
  });

  it('may name several types and groups, any of which will do', async () => {
    expect(
      await found([
        ['type', 'service_account'],
        ['type', 'external'],
      ]),
    ).toEqual(['dan']);
    expect(
      await found([
        ['groups_by_pk', team.pk.toUpperCase()],
        ['groups_by_pk', other.pk],
      ]),
    ).toEqual(['ann', 'bob', 'dan']);
    expect(
      await found([
        ['groups_by_name', 'Team'],
        ['groups_by_pk', other.pk],
      ]),
    ).toEqual(['bob']);
  });

  it('know a point in time and a uuid', async () => {
    expect(await found({ date_joined: ann.date_joined, username: 'ann' })).toEqual(['ann']);
    expect(await found({ uuid: ann.uuid })).toEqual(['ann']);
    expect(await found({ search: ann.uuid.slice(0, 13) })).toEqual(['ann']);
    expect(await found({ uuid: NOWHERE })).toEqual([]);
  });

  it('leave groups out where they are not wanted', async () => {
    const { results } = (await ask('GET', '/core/users/?username=bob&include_groups=false')).body;
    expect(results[0]).toMatchObject({ groups_obj: null, groups: expect.arrayContaining([team.pk, other.pk]) });
    const entry = (await ask('GET', '/core/users/?username=ann')).body.results[0].groups_obj;
    expect(entry).toEqual([{ pk: team.pk, num_pk: team.num_pk, name: 'Team', is_superuser: false, attributes: {} }]);
  });

  const invalid = expect.stringMatching(/\w/);
  it.each([
    [
      'groups_by_name=Nobody',
      { groups_by_name: ['Select a valid choice. Nobody is not one of the available choices.'] },
    ],
    ['groups_by_name=Team&groups_by_name=team', { groups_by_name: [invalid] }],
    [`groups_by_pk=${NOWHERE}`, { groups_by_pk: [invalid] }],
    ['groups_by_pk=1', { groups_by_pk: [invalid] }],
    ['type=robot', { type: ['Select a valid choice. robot is not one of the available choices.'] }],
    ['uuid=1', { uuid: ['Enter a valid UUID.'] }],
    ['is_active=perhaps', { is_active: [invalid] }],
    ['date_joined__gt=yesterday', { date_joined__gt: ['Enter a valid date/time.'] }],
    ['last_login=0000-00-00', { last_login: [invalid] }],
    ['username=%00', { username: [invalid] }],
    ['search=a%00b', { search: [invalid] }],
    ['attributes=%7B', [expect.stringMatching(/valid JSON/)]],
    ['attributes=[1]', [expect.stringMatching(/object/)]],
    ['attributes=%7B%22a__regex%22:%22x%22%7D', [expect.stringMatching(/lookup/)]],
  ])('refuse %s', async (query, body) => {
    expect(await refusal(query)).toEqual([400, body]);
  });
});

describe('the filter on attributes', () => {
  it.each([
    [{ app_expires: 1000 }, ['ann']],
    [{ app_expires__lt: 1700 }, ['ann']],
    [{ app_expires__lte: 2000.5 }, ['ann', 'bob']],
    [{ app_expires__gt: 1000 }, ['bob']],
    [{ app_expires__gte: 1000 }, ['ann', 'bob']],
    [{ app_expires__gt: 1000, app_expires__lt: 2000 }, []],
    [{ app_expires__gt: '1' }, ['cia']],
    [{ app_expires: '1500' }, ['cia']],
    [{ app_expires: 1500 }, []],
    [{ app_expires__isnull: true }, ['akadmin', 'dan']],
    [{ app_expires__isnull: false }, ['ann', 'bob', 'cia']],
    [{ nothing: null }, ['ann']],
    [{ nothing__isnull: false }, ['ann']],
    [{ flag: true }, ['ann']],
    [{ flag: 1 }, []],
    [{ deep__er__1: 'two' }, ['ann']],
    [{ deep__er__contains: ['two'] }, ['ann']],
    [{ deep__er__contains: 1 }, ['ann']],
    [{ deep__contains: { er: [1] } }, ['ann']],
    [{ deep: { er: [1, 'two'] } }, ['ann']],
    [{ note__icontains: 'öL 50%' }, ['ann']],
    [{ note__icontains: '%' }, ['ann']],
    [{ note__icontains: '_' }, []],
    [{ app_expires__in: [1000, '1500'] }, ['ann', 'cia']],
    [{ app_expires__in: [] }, []],
    [{ "a'b; DROP TABLE account; --": 1 }, []],
    [{ constructor: 1 }, []],
    [{}, ['akadmin', 'ann', 'bob', 'cia', 'dan']],
  ])('%j finds %j', async (query, names) => {
    expect(await attributes(query)).toEqual(names);
  });

  it('compares numbers as JavaScript does', async () => {
    const values = [-5, 0, 0.1, 3, 10, 1e15];
    await Promise.all(values.map((n) => create({ username: `n${n}`, attributes: { n } })));
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.constantFrom(...values), fc.double({ noNaN: true, noDefaultInfinity: true })),
        async (limit) => {
          const below = values.filter((n) => n < limit).map((n) => `n${n}`);
          expect((await attributes({ n__lt: limit })).toSorted((a, b) => (a < b ? -1 : 1))).toEqual(
            below.toSorted((a, b) => (a < b ? -1 : 1)),
          );
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe('hostile text', () => {
  const HOSTILE = [
    "'; DROP TABLE account; --",
    '" OR 1=1',
    "\\'; SELECT 1",
    '${1}',
    '$1',
    '%',
    '_',
    '\\',
    '{{7*7}}',
    '\n',
    '\u{1}',
    '🦊',
    '__proto__',
  ];

  it.each(HOSTILE)('%j is a name like any other, and finds only itself', async (text) => {
    const username = `x${text}x`;
    const made = await create({ username, name: text, attributes: { [text]: text, ['__proto__']: 1 } });
    expect(made.username).toBe(username);
    expect(await found({ username })).toEqual([username]);
    expect(await found({ search: username })).toEqual([username]);
    const named = await group({ name: `g${text}g`, users: [made.pk] });
    expect(await found({ groups_by_name: named.name })).toEqual([username]);
    expect((await ask('DELETE', `/core/users/${made.pk}/`)).status).toBe(204);
  });

  it('in any parameter changes no list but by what it says, and breaks nothing', async () => {
    const names = [
      'username',
      'email',
      'name',
      'search',
      'path',
      'path_startswith',
      'ordering',
      'uuid',
      'attributes',
      'page',
      'page_size',
      'type',
      'groups_by_pk',
      'groups_by_name',
      'date_joined__gt',
      'is_active',
      'last_login__isnull',
    ];
    const text = fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: 'binary' }), fc.json());
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), text, async (name, value) => {
        const { status } = await ask('GET', `/core/users/?${new URLSearchParams({ [name]: value }).toString()}`);
        return [200, 400, 404].includes(status);
      }),
      { numRuns: 300 },
    );
    expect(provider.log.events.filter(({ level }) => level !== 'info')).toEqual([]);
  });

  it('in a body is taken or refused, never a failure', async () => {
    const value = fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' }));
    const fields = fc.record(
      {
        username: value,
        name: value,
        email: value,
        attributes: value,
        groups: value,
        path: value,
        type: value,
        is_active: value,
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(fields, async (json) => {
        const { status, body } = await ask('POST', '/core/users/', { json });
        if (status === 201) await ask('DELETE', `/core/users/${body.pk}/`);
        return status === 201 || status === 400;
      }),
      { numRuns: 300 },
    );
    expect(provider.log.events.filter(({ level }) => level !== 'info')).toEqual([]);
  });
});

describe('ten thousand users', () => {
  beforeAll(async () => {
    await provider.inDatabase(`
      INSERT INTO account (uuid, username, username_key, name, email, email_key, searched, is_active, path, type, attributes, date_joined, last_updated)
      SELECT gen_random_uuid(), 'many' || n, 'many' || n, 'Many', '', '', 'many' || n, true, 'users', 'internal', jsonb_build_object('n', n), now(), now()
      FROM generate_series(1, 10000) AS n`);
    await provider.inDatabase(`INSERT INTO membership SELECT pk, '${team.pk}' FROM account ON CONFLICT DO NOTHING`);
  });

  it('cost as many statements a page as three do, and every one comes once', async () => {
    const count = async (query: string): Promise<number> => {
      const before = provider.statements.length;
      expect((await ask('GET', `/core/users/?${query}`)).status).toBe(200);
      return provider.statements.length - before;
    };
    const few = await count('search=ann&page_size=100');
    expect(few).toBeLessThanOrEqual(4);
    expect(await count('search=many&page_size=100')).toBe(few);
    expect(await count('search=many&page_size=100&page=90')).toBe(few);
    const seen = new Set<number>();
    for (let page = 1; page > 0;) {
      const { body } = await ask('GET', `/core/users/?page_size=100&ordering=name&search=many&page=${page}`);
      for (const { pk } of body.results) seen.add(pk);
      page = body.pagination.next;
    }
    expect(seen.size).toBe(10_000);
  });

  it('are found by name through an index', async () => {
    const plan = await provider.inDatabase<{ 'QUERY PLAN': string }>(
      `EXPLAIN SELECT * FROM account WHERE account.username_key = 'many77' AND account.username = 'many77'`,
    );
    expect(JSON.stringify(plan)).toMatch(/Index Scan/);
  });

  it('are members of one group in one statement, and can be left out', async () => {
    const before = provider.statements.length;
    const whole = (await ask('GET', '/core/groups/?name=Team')).body.results[0];
    expect(whole.users.length).toBeGreaterThan(10_000);
    expect(whole.users_obj[0]).toMatchObject({
      username: expect.any(String),
      uid: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(provider.statements.length - before).toBeLessThanOrEqual(4);
    const slim = (await ask('GET', '/core/groups/?name=Team&include_users=false')).body.results[0];
    expect(slim).toMatchObject({ users_obj: null, pk: team.pk });
  });
});
