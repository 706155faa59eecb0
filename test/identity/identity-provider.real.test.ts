// The identity provider's HTTP API over a real PostgreSQL: how it is spoken to, and by whom.

import { describe, expect, it } from 'vitest';
import { API_TOKEN, testProvider } from '../e2e/embedded/identity-provider.ts';

const provider = testProvider();
const { ask, create, group, ordinary } = provider;

describe('signing in', () => {
  it.each([
    ['no header', null, {}, 'Authentication credentials were not provided.'],
    ['a wrong key', 'x'.repeat(60), {}, 'Token invalid/expired'],
    ['another scheme', null, { authorization: 'Basic YTpi' }, 'Unsupported authentication type'],
    ['no key', null, { authorization: 'Bearer' }, 'Malformed header'],
    ['two keys', null, { authorization: 'Bearer a b' }, 'Malformed header'],
    ['an endless key', 'x'.repeat(5000), {}, 'Token invalid/expired'],
  ])('is 403 with %s, whatever is asked', async (_, key, headers, detail) => {
    for (const [method, path] of [
      ['GET', '/core/users/'],
      ['POST', '/core/users/'],
      ['DELETE', '/core/users/'],
      ['GET', '/core/users/me/'],
      ['GET', '/core/tokens/holdfast-bootstrap/view_key/'],
      ['GET', '/admin/version/'],
    ] as const) {
      const answer = await ask(method, path, { key, headers });
      expect([answer.status, answer.body]).toEqual([403, { detail }]);
    }
  });

  it('takes the scheme in any case', async () => {
    const headers = { authorization: `bEaReR ${API_TOKEN}` };
    expect((await ask('GET', '/core/users/me/', { key: null, headers })).status).toBe(200);
  });

  it('ends with the token, its expiry, its owner or the activity of its owner', async () => {
    const { user, identifier, key } = await ordinary();
    const status = async () => (await ask('GET', '/core/users/me/', { key })).status;
    expect(await status()).toBe(200);
    await ask('PATCH', `/core/users/${user.pk}/`, { json: { is_active: false } });
    expect(await status()).toBe(403);
    await ask('PATCH', `/core/users/${user.pk}/`, { json: { is_active: true } });
    expect(await status()).toBe(200);
    await ask('PATCH', `/core/tokens/${identifier}/`, { json: { expiring: true } });
    expect(await status()).toBe(200);
    provider.later(86_400_001);
    expect(await status()).toBe(403);
  });

  it('does not take an app password', async () => {
    const user = await create();
    await ask('POST', '/core/tokens/', { json: { identifier: 'app-only', user: user.pk, intent: 'app_password' } });
    const { key } = (await ask('GET', '/core/tokens/app-only/view_key/')).body;
    expect((await ask('GET', '/core/users/me/', { key })).status).toBe(403);
  });
});

describe('a caller that is no superuser', () => {
  it('sees itself, and is refused lists and changes with 403, single objects with 404', async () => {
    const { user, key } = await ordinary();
    const me = await ask('GET', '/core/users/me/', { key });
    expect(me.body).toMatchObject({ user: { pk: user.pk, username: user.username, is_superuser: false, groups: [] } });
    const detail = 'You do not have permission to perform this action.';
    for (const [method, path] of [
      ['GET', '/core/users/'],
      ['POST', '/core/users/'],
      ['POST', '/core/users/service_account/'],
      ['GET', '/core/users/paths/'],
      ['GET', '/core/groups/'],
      ['POST', '/core/groups/'],
      ['GET', '/admin/version/'],
    ] as const) {
      const answer = await ask(method, path, { key, ...(method === 'POST' ? { json: {} } : {}) });
      expect([path, answer.status, answer.body]).toEqual([path, 403, { detail }]);
    }
    const { pk } = await group();
    for (const [method, path] of [
      ['GET', `/core/users/${user.pk}/`],
      ['PATCH', `/core/users/${user.pk}/`],
      ['PUT', `/core/users/${user.pk}/`],
      ['DELETE', `/core/users/${user.pk}/`],
      ['POST', `/core/users/${user.pk}/set_password/`],
      ['POST', `/core/users/${user.pk}/set_password_hash/`],
      ['GET', `/core/groups/${pk}/`],
      ['PATCH', `/core/groups/${pk}/`],
      ['DELETE', `/core/groups/${pk}/`],
      ['POST', `/core/groups/${pk}/add_user/`],
      ['POST', `/core/groups/${pk}/remove_user/`],
      ['GET', '/core/tokens/holdfast-bootstrap/'],
      ['GET', '/core/tokens/holdfast-bootstrap/view_key/'],
      ['POST', '/core/tokens/holdfast-bootstrap/set_key/'],
      ['PATCH', '/core/tokens/holdfast-bootstrap/'],
      ['DELETE', '/core/tokens/holdfast-bootstrap/'],
    ] as const) {
      const json = { pk: user.pk, password: 'x', key: 'x'.repeat(60) };
      const answer = await ask(method, path, { key, ...(method === 'GET' ? {} : { json }) });
      expect([method, path, answer.status]).toEqual([method, path, 404]);
    }
    expect((await ask('GET', `/core/users/${user.pk}/`)).body.is_superuser).toBe(false);
  });

  it('becomes one through a group, and loses it with the group', async () => {
    const { user, key } = await ordinary();
    const admins = await group({ is_superuser: true });
    await ask('POST', `/core/groups/${admins.pk}/add_user/`, { json: { pk: user.pk } });
    expect((await ask('GET', '/core/users/', { key })).status).toBe(200);
    expect((await ask('GET', `/core/users/${user.pk}/`)).body.is_superuser).toBe(true);
    await ask('DELETE', `/core/groups/${admins.pk}/`);
    expect((await ask('GET', '/core/users/', { key })).status).toBe(403);
  });
});

describe('paths, methods and bodies', () => {
  it('open without a token: only what says that it is up', async () => {
    expect(await ask('GET', '/root/config/', { key: null })).toMatchObject({ status: 200, body: { capabilities: [] } });
    expect((await ask('GET', '/admin/version/')).body).toMatchObject({
      version_current: '2026.8.3',
      version_latest: '2026.8.3',
      build_hash: 'holdfast-development',
      outdated: false,
    });
  });

  it('that are unknown are 404 with a detail', async () => {
    for (const path of [
      '/',
      '/nothing/',
      '/core/',
      '/core/users/abc/',
      '/core/users/1/x/',
      '/core/users/99999999999/',
      '/core/users/2147483647/',
    ]) {
      const answer = await ask('GET', path);
      expect([path, answer.status, answer.body]).toEqual([path, 404, { detail: expect.any(String) }]);
    }
    expect((await ask('GET', '/api/v2/core/users/')).status).toBe(404);
  });

  it('without the last slash: a GET is sent on with its query, a POST is lost', async () => {
    for (const path of ['/core/users', '/core/users/1', '/core/groups', '/core/tokens/a/view_key', '/root/config']) {
      const answer = await ask('GET', `${path}?search=a%2Fb`, { key: null });
      expect([answer.status, answer.headers.get('location')]).toEqual([301, `/api/v3${path}/?search=a%2Fb`]);
      expect((await ask('POST', path, { json: {} })).status).toBe(404);
    }
  });

  it('answer HEAD as GET without a body', async () => {
    const answer = await ask('HEAD', '/core/users/');
    expect([answer.status, answer.body]).toEqual([200, '']);
    expect((await ask('HEAD', '/core/users/', { key: null })).status).toBe(403);
  });

  it.each([
    ['DELETE', '/core/users/', 'GET, POST'],
    ['POST', '/core/users/1/', 'GET, PUT, PATCH, DELETE'],
    ['GET', '/core/users/1/set_password/', 'POST'],
    ['POST', '/core/users/me/', 'GET'],
    ['GET', '/core/users/service_account/', 'POST'],
    ['OPTIONS', '/core/users/', 'GET, POST'],
  ])('refuse %s %s with 405', async (method, path, allow) => {
    const answer = await ask(method, path);
    expect([answer.status, answer.body]).toEqual([405, { detail: `Method "${method}" not allowed.` }]);
    expect(answer.headers.get('allow')).toBe(allow);
  });

  it('refuse other media types, broken JSON, other values than objects, and endless bodies', async () => {
    const send = (raw: string | Uint8Array, headers = {}) => ask('POST', '/core/users/', { raw, headers });
    expect(await send('username=a', { 'content-type': 'application/x-www-form-urlencoded' })).toMatchObject({
      status: 415,
      body: { detail: 'Unsupported media type "application/x-www-form-urlencoded" in request.' },
    });
    expect((await send('{}', { 'content-type': 'application/json; charset=utf-8' })).status).toBe(400);
    for (const raw of ['{', '{"username":}', new Uint8Array([0x22, 0xff, 0x22])]) {
      expect(await send(raw)).toMatchObject({
        status: 400,
        body: { detail: expect.stringMatching(/JSON parse error/) },
      });
    }
    for (const raw of ['[]', '1', 'null', '"a"']) {
      expect(await send(raw)).toMatchObject({ status: 400, body: { non_field_errors: [expect.any(String)] } });
    }
    expect((await send(`{"name":"${'x'.repeat(1_000_001)}"}`)).status).toBe(413);
    expect((await send('{}', { 'content-length': '99999999' })).status).toBe(413);
    expect((await send('[['.repeat(100_000))).status).toBe(400);
  });

  it('are logged once for each change, without keys and passwords', async () => {
    const { pk } = await create();
    const before = provider.log.events.length;
    await ask('POST', `/core/users/${pk}/set_password/`, { json: { password: 'hush-hush' } });
    await ask('GET', `/core/users/${pk}/`);
    const lines = provider.log.events.slice(before);
    const path = `/api/v3/core/users/${pk}/set_password/`;
    expect(lines).toEqual([
      { level: 'info', event: 'identity.request', fields: { method: 'POST', path, status: 204, user: 'akadmin' } },
    ]);
    expect(JSON.stringify(provider.log.events)).not.toMatch(/hush-hush|bootstrap-token-of-the-tests/);
  });
});

it('renames a user and its group at once while each is given to the other', async () => {
  const [one, other] = [await create(), await group()];
  for (let round = 0; round < 10; round++) {
    const answers = await Promise.all([
      ask('PATCH', `/core/users/${one.pk}/`, { json: { username: `both-${round}`, groups: [other.pk] } }),
      ask('PATCH', `/core/groups/${other.pk}/`, { json: { name: `both-${round}`, users: [one.pk] } }),
    ]);
    expect([round, ...answers.map(({ status }) => status)]).toEqual([round, 200, 200]);
    await ask('POST', `/core/groups/${other.pk}/remove_user/`, { json: { pk: one.pk } });
  }
});
