import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { NOBODY, READER, VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from './fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
});

interface Answer {
  status: number;
  body: Record<string, unknown>;
}
async function ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
  const response = await world.ask(method, path, body, headers);
  const text = await response.text();
  return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> };
}
const names = ({ body }: Answer): string[] =>
  (body['results'] as { username: string }[]).map(({ username }) => username);
const idOf = async (username: string): Promise<number> => (await world.named(username)).id;
const FUTURE = '2027-01-02T05:04:05+02:00';
const FUTURE_SECONDS = 1_798_859_045;

async function token(scope: 'read' | 'users' | 'admin'): Promise<Record<string, string>> {
  const expiresAt = '2030-01-01T00:00:00.000Z';
  const { text } = await world.deps.signIns.createToken({ name: scope, scope, owner: 'webadmin', expiresAt });
  return { authorization: `Bearer ${text}` };
}

describe('GET /api/users', () => {
  it('lists people by username, without programs and hidden accounts', async () => {
    for (const username of ['zoe', 'Bob', 'adm_boss']) await world.account({ username });
    await world.account({ username: 'svc_radio', kind: 'service' });
    await world.account({ username: 'robot', kind: 'service' });
    const page = await ask('GET', '/api/users', undefined, VIEWER);
    expect([page.status, page.body['count'], page.body['page'], page.body['page_size']]).toEqual([200, 5, 1, 50]);
    expect(names(page)).toEqual(['Bob', 'nora', 'vera', 'webadmin', 'zoe']);
    const all = await ask('GET', '/api/users?include=hidden,certs');
    expect(names(all)).toEqual(expect.arrayContaining(['svc_radio', 'robot', 'adm_boss', 'akadmin', 'zoe']));
    expect((await ask('GET', '/api/users?include=certs&include=hidden')).body['count']).toBe(all.body['count']);
  });

  it('hides what USERS_HIDDEN_PREFIXES names, in any case', async () => {
    world = await peopleWorld({ USERS_HIDDEN_PREFIXES: 'NO,ak' });
    await world.account({ username: 'adm_boss' });
    expect(names(await ask('GET', '/api/users'))).toEqual(['adm_boss', 'vera', 'webadmin']);
    expect((await ask('GET', `/api/users/${await idOf('nora')}`)).status).toBe(404);
    expect((await ask('GET', `/api/users/${await idOf('adm_boss')}`)).status).toBe(200);
  });

  it('gives full pages, and an empty one beyond the last', async () => {
    for (const letter of ['a', 'b', 'c', 'd']) await world.account({ username: letter });
    const two = await ask('GET', '/api/users?page=2&page_size=3');
    expect([names(two), two.body['count']]).toEqual([['d', 'nora', 'vera'], 7]);
    const beyond = await ask('GET', '/api/users?page=9&page_size=200');
    expect([beyond.status, beyond.body]).toEqual([200, { results: [], count: 7, page: 9, page_size: 200 }]);
  });

  it('searches in usernames, names and addresses', async () => {
    await world.account({ username: 'ada', name: 'Lovelace', email: 'l@example.org' });
    for (const search of ['AD', 'love', 'L%40example'])
      expect(names(await ask('GET', `/api/users?search=${search}`))).toContain('ada');
    expect((await ask('GET', '/api/users?search=nobody-of-them')).body).toMatchObject({ results: [], count: 0 });
  });

  it.each([
    'page=0',
    'page=x',
    'page_size=201',
    'include=passwords',
    'include=',
    `search=${'x'.repeat(201)}`,
    'search=%00',
  ])('refuses %s', async (query) => {
    const { status, body } = await ask('GET', `/api/users?${query}`);
    expect([status, (body['errors'] as { path: string }[])[0]?.path.split('.')[0]]).toEqual([422, query.split('=')[0]]);
  });
});

describe('who may', () => {
  it('read: viewers and every token, not METRICS_TOKEN and not those without a role', async () => {
    const id = await idOf('nora');
    for (const path of ['/api/users', `/api/users/${id}`, '/api/groups']) {
      for (const headers of [VIEWER, await token('read'), await token('users'), await token('admin')])
        expect([path, (await ask('GET', path, undefined, headers)).status]).toEqual([path, 200]);
      for (const headers of [NOBODY, READER])
        expect([path, (await ask('GET', path, undefined, headers)).status]).toEqual([path, 403]);
    }
  });

  it('change: administrators and tokens of the scopes users and admin', async () => {
    const id = await idOf('nora');
    for (const headers of [VIEWER, NOBODY, await token('read')]) {
      expect((await ask('POST', '/api/users', { username: 'x', name: 'x' }, headers)).status).toBe(403);
      expect((await ask('PATCH', `/api/users/${id}`, { name: 'x' }, headers)).status).toBe(403);
      expect((await ask('DELETE', `/api/users/${id}`, undefined, headers)).status).toBe(403);
      expect((await ask('PUT', `/api/users/${id}/groups`, { groups: [] }, headers)).status).toBe(403);
      expect((await ask('POST', `/api/users/${id}/password`, { password: 'x' }, headers)).status).toBe(403);
    }
    for (const scope of ['users', 'admin'] as const)
      expect((await ask('PATCH', `/api/users/${id}`, { name: scope }, await token(scope))).status).toBe(200);
  });

  it('a token of the scope users may not change who administers the provider itself', async () => {
    const { id } = await world.account({ username: 'keeper', groups: ['authentik Admins'] });
    const users = await token('users');
    for (const [method, path, body] of [
      ['PATCH', `/api/users/${id}`, { name: 'x' }],
      ['POST', `/api/users/${id}/password`, { password: 'a long enough one' }],
    ] as const)
      expect((await ask(method, path, body, users)).status).toBe(403);
  });

  it('a token of the scope users may not set roles nor change an administrator', async () => {
    const users = await token('users');
    const [nora, chief] = [
      await idOf('nora'),
      (await world.account({ username: 'chief', groups: ['stack_admin'] })).id,
    ];
    await world.deps.identity.groups.create('core_blue');
    expect((await ask('PATCH', `/api/users/${nora}`, { role: 'viewer' }, users)).status).toBe(403);
    expect((await ask('PATCH', `/api/users/${nora}`, { role: 'none' }, users)).status).toBe(403);
    for (const [method, path, body] of [
      ['PATCH', `/api/users/${chief}`, { name: 'x' }],
      ['DELETE', `/api/users/${chief}`, undefined],
      ['PUT', `/api/users/${chief}/groups`, { groups: ['blue'] }],
      ['POST', `/api/users/${chief}/password`, { password: 'a long enough one' }],
    ] as const) {
      const { status, body: problem } = await ask(method, path, body, users);
      expect([method, path, status]).toEqual([method, path, 403]);
      expect(problem['detail']).toMatch(/administrator chief.*scope admin/);
    }
    expect(await world.named('chief')).toMatchObject({ name: 'chief', isActive: true });
    expect(world.deps.audit.records.filter(({ phase }) => phase === 'intent')).toEqual([]);
    expect((await ask('POST', '/api/users', { username: 'eve', name: 'Eve', groups: ['blue'] }, users)).status).toBe(
      201,
    );
  });
});

describe('POST /api/users', () => {
  it('makes a user of an expiry, channels and no role, whom nobody can sign in as yet', async () => {
    for (const name of ['core_blue', 'core_red']) await world.deps.identity.groups.create(name);
    const wanted = {
      username: 'Ada.L',
      name: 'Ada Ö.',
      email: 'ada@example.org',
      groups: ['blue', 'core_RED', 'core_blue'],
    };
    const made = await ask('POST', '/api/users', { ...wanted, expires_at: FUTURE });
    expect([made.status, made.body]).toEqual([
      201,
      {
        id: await idOf('ada.l'),
        username: 'Ada.L',
        name: 'Ada Ö.',
        email: 'ada@example.org',
        is_active: true,
        role: 'none',
        groups: ['core_blue', 'core_red'],
        expires_at: '2027-01-02T03:04:05Z',
        app_expires: FUTURE_SECONDS,
        created_at: world.around.now.toISOString(),
        last_login: null,
      },
    ]);
    expect((await world.named('Ada.L')).attributes).toEqual({ app_expires: FUTURE_SECONDS });
    expect((await ask('GET', `/api/users/${await idOf('ada.l')}`)).body).toEqual({ ...made.body, certs: [] });
    expect(world.deps.audit.records).toMatchObject([
      { action: 'user.create', target: 'Ada.L', actor: 'webadmin', address: '192.0.2.7', phase: 'intent' },
      { action: 'user.create', phase: 'outcome', result: 'ok', intent: 1 },
    ]);
  });

  it('ends what was signed for somebody of that name in former times', async () => {
    await ask('POST', '/api/users', { username: 'Eve', name: 'Eve' });
    expect(await world.deps.signIns.epoch('eve')).toBe(1);
  });

  it('takes an account without address, groups and expiry', async () => {
    const { status, body } = await ask('POST', '/api/users', { username: 'x', name: 'X', expires_at: null });
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({ email: '', groups: [], expires_at: null, app_expires: null }),
    ]);
  });

  it.each([
    ['username', { username: 'a b' }, /letters/],
    ['username', { username: 'SVC_x' }, /svc_/],
    ['username', { username: 'akadmin2' }, /akadmin/],
    ['username', { username: 7 }, /must be text, not a number/],
    ['name', { name: '' }, /empty/],
    ['name', { name: 'a\nb' }, /one line/],
    ['name', { name: 'x'.repeat(201) }, /200/],
    ['email', { email: 'nowhere' }, /email/],
    ['email', { email: `${'x'.repeat(250)}@example.org` }, /254|email/],
    ['groups.0', { groups: ['unknown'] }, /group core_unknown does not exist/],
    ['groups.1', { groups: ['blue', 'ROLE_ADMIN'] }, /role/],
    ['groups.0', { groups: ['stack_admin'] }, /role/],
    ['groups.0', { groups: ['x,y'] }, /letters/],
    ['expires_at', { expires_at: '2020-01-01T00:00:00Z' }, /past/],
    ['expires_at', { expires_at: '2030-01-01' }, /ISO 8601/],
    ['expires_at', { expires_at: 1_900_000_000 }, /ISO 8601/],
    ['', { password: 'x' }, /unknown member "password"/],
    ['', { role: 'admin' }, /unknown member "role"/],
  ])('refuses %s of %j, and makes nothing', async (path, wrong, message) => {
    await world.deps.identity.groups.create('core_blue');
    const { status, body } = await ask('POST', '/api/users', { username: 'eve', name: 'Eve', ...wrong });
    expect([status, body['code']]).toEqual([422, 'invalid']);
    expect(body['errors']).toContainEqual({ path, message: expect.stringMatching(message) });
    expect(await world.deps.identity.accounts.named('eve')).toBeUndefined();
    expect(world.deps.audit.records).toEqual([]);
  });

  it('refuses a name that is taken in any case, and changes nothing', async () => {
    const before = await world.account({ username: 'Ada', name: 'First', attributes: { app_expires: 4e9 } });
    const { status, body } = await ask('POST', '/api/users', {
      username: 'ADA',
      name: 'Second',
      email: 'a@example.org',
    });
    expect([status, body['detail']]).toEqual([409, expect.stringMatching(/ADA is already taken/)]);
    expect(await world.named('ada')).toEqual(before);
    expect(await world.deps.signIns.epoch('ada')).toBe(0);
  });

  it('does nothing while the audit log cannot be written', async () => {
    world.deps.audit.mood = 'away';
    expect((await ask('POST', '/api/users', { username: 'eve', name: 'Eve' })).status).toBe(503);
    expect(await world.deps.identity.accounts.named('eve')).toBeUndefined();
  });
});

describe('a creation while the provider goes away', () => {
  const wanted = { username: 'ada', name: 'Ada', groups: ['blue'] };
  const unavailable = async (): Promise<never> => {
    throw new AppError('unavailable', 'The provider does not answer.');
  };
  beforeEach(async () => {
    await world.deps.identity.groups.create('core_blue');
  });

  it('says that the account may exist, not that it does, and leaves it to a job', async () => {
    world.deps.identity.accounts.create = unavailable;
    const { status, body } = await ask('POST', '/api/users', wanted);
    expect([status, body['detail']]).toEqual([
      503,
      expect.stringMatching(/The account may still have been created. Check/),
    ]);
    expect(world.deps.audit.records.map(({ phase }) => phase)).toEqual(['intent']);
  });

  it('says that nothing was created when the account could be taken away again', async () => {
    world.deps.identity.groups.addMember = unavailable;
    const { status, body } = await ask('POST', '/api/users', wanted);
    expect([status, body['detail']]).toEqual([503, 'The provider does not answer. Nothing was created.']);
    expect(await world.deps.identity.accounts.named('ada')).toBeUndefined();
  });

  it('says that the account may exist when it could not, whatever the reason was', async () => {
    world.deps.identity.accounts.delete = unavailable;
    world.deps.identity.groups.addMember = async () => {
      throw new AppError('not_found', 'There is no such group');
    };
    const { body } = await ask('POST', '/api/users', wanted);
    expect(body['detail']).toMatch(/The account may still have been created/);
    expect(world.deps.audit.records.map(({ phase }) => phase)).toEqual(['intent']);
  });
});

describe('what is missing or of another type', () => {
  it.each([
    ['POST', '/api/users', {}, 'username: is missing: provide text; name: is missing: provide text'],
    ['POST', '/api/users', [], 'the body must be a JSON object, not a list'],
    ['POST', '/api/users', { username: 'a', name: null }, 'name: must be text, not null'],
    ['POST', '/api/users', { username: 'a', name: 'A', groups: 'b' }, 'groups: must be a list, not text'],
    ['PATCH', '/api/users/2', { is_active: 'no' }, 'is_active: must be true or false, not text'],
    ['PATCH', '/api/users/2', { role: 'root' }, 'role: must be one of: none, viewer, admin'],
    ['GET', '/api/users?page=1&page=2', undefined, 'page: must be a single text, given once'],
  ])('%s %s %j is told in plain words', async (method, path, body, detail) =>
    expect(await ask(method, path, body)).toMatchObject({ status: 422, body: { detail } }),
  );
});

describe('GET /api/users/{id}', () => {
  it('is 404 for nobody, for what is no id, and for hidden accounts unless they are asked for', async () => {
    const { id } = await world.account({ username: 'svc_radio', kind: 'service' });
    const { id: person } = await world.account({ username: 'ADM_boss' });
    for (const wrong of ['999999', '0', '-1', '1.5', 'ada', '99999999999', '1e1', '01', id, person])
      expect([wrong, (await ask('GET', `/api/users/${wrong}`)).status]).toEqual([wrong, 404]);
    for (const hidden of [id, person])
      expect((await ask('GET', `/api/users/${hidden}?include=hidden`)).body['id']).toBe(hidden);
    expect((await ask('GET', `/api/users/${id}?include=x`)).status).toBe(422);
  });

  it('shows an expiry that is no number as none, and past ones as they are', async () => {
    for (const [app_expires, shown] of [
      ['soon', null],
      [true, null],
      [1e300, null],
      [-1, '1969-12-31T23:59:59Z'],
    ] as const) {
      const { id } = await world.account({
        username: `x${String(app_expires)}`.replace('+', '_'),
        attributes: { app_expires },
      });
      const { body } = await ask('GET', `/api/users/${id}`);
      expect([body['expires_at'], body['app_expires']]).toEqual([shown, shown === null ? null : -1]);
    }
  });

  it('shows roles, whichever group gives them, and no group that gives one', async () => {
    const groups = ['core_ROLE_ADMIN', 'stack_viewer', 'core_b', 'core_a', 'other'];
    const { id } = await world.account({ username: 'both', groups });
    expect((await ask('GET', `/api/users/${id}`)).body).toMatchObject({ role: 'admin', groups: ['core_a', 'core_b'] });
    expect((await ask('GET', `/api/users/${await idOf('vera')}`)).body).toMatchObject({ role: 'viewer', groups: [] });
  });
});

describe('POST /api/users/{id}/password', () => {
  it('sets it, ends every sign-in, and tells the audit log nothing of it', async () => {
    const { id } = await world.person('ada');
    expect((await ask('POST', `/api/users/${id}/password`, { password: 'shiny new words' })).status).toBe(204);
    expect(world.deps.identity.accepts('ada', 'shiny new words')).toBe(true);
    expect(await world.deps.signIns.epoch('ada')).toBe(1);
    expect(JSON.stringify([world.deps.audit.records, world.deps.log.events])).not.toContain('shiny');
  });

  it.each([
    ['short', /12 characters/],
    ['Ada.Ada.Ada.Ada', /the username/],
    ['atakatakATAK', /publish/],
    ['x'.repeat(2000), /1024 bytes/],
    ['x'.repeat(5000), /1024 bytes/],
    ['twelve chars\0', /NUL/],
    [7, /must be text, not a number/],
  ])('refuses %s without quoting it', async (password, why) => {
    const { id } = await world.account({ username: 'ada.ada.ada.ada' });
    const { status, body } = await ask('POST', `/api/users/${id}/password`, { password });
    expect([status, body['errors']]).toEqual([422, [{ path: 'password', message: expect.stringMatching(why) }]]);
    if (typeof password === 'string') expect(JSON.stringify(body)).not.toContain(JSON.stringify(password).slice(1, -1));
    expect(world.deps.audit.records).toEqual([]);
  });

  it('is 404 for hidden accounts', async () => {
    const { id } = await world.account({ username: 'svc_x', kind: 'service' });
    expect((await ask('POST', `/api/users/${id}/password`, { password: 'a long enough one' })).status).toBe(404);
  });
});
