import { describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import { createApp } from '../../functions/app.ts';
import type { Bindings } from '../../shared/http/context.ts';
import { problemSchema } from '../../shared/http/route.ts';
import { actionsOf } from '../audit/fake-audit.ts';
import { world } from '../health/fake-monitored.ts';
import { ADMIN, fakeDeps, NOBODY, READER, VIEWER } from '../http/fake-deps.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };

interface NewToken {
  id: string;
  name: string;
  scope: string;
  owner: string;
  created_at: string;
  expires_at: string;
  token: string;
}

function started() {
  const around = world();
  const deps = fakeDeps({}, around);
  const app = createApp(deps);
  const inDays = (days: number): string => new Date(around.now.getTime() + days * DAY_MS).toISOString();
  const ask = async (method: string, path: string, headers: Record<string, string> = ADMIN, body?: unknown) =>
    app.request(
      path,
      body === undefined
        ? { method, headers }
        : { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) },
      CONNECTION,
    );
  const wanted = (change: object = {}) => ({ name: 'backup', scope: 'read', expires_at: inDays(30), ...change });
  const make = async (change: object = {}, headers = ADMIN): Promise<NewToken> => {
    const response = await ask('POST', '/api/tokens', headers, wanted(change));
    expect(response.status).toBe(201);
    return (await response.json()) as NewToken;
  };
  return { around, deps, ask, make, wanted, inDays };
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('POST /api/tokens', () => {
  it('makes a token of the person who asks, and shows its text once', async () => {
    const { ask, wanted, inDays } = started();
    const response = await ask('POST', '/api/tokens', ADMIN, wanted({ name: '  Nightly backup ' }));
    expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const made = (await response.json()) as NewToken;
    expect(made).toEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      name: 'Nightly backup',
      scope: 'read',
      owner: 'webadmin',
      created_at: expect.any(String),
      expires_at: inDays(30),
      token: expect.stringMatching(/^hft_/),
    });
    const list = await (await ask('GET', '/api/tokens')).text();
    expect(list).toContain(made.id);
    expect(list).not.toContain(made.token);
  });

  it('makes tokens that come in with their scope at most', async () => {
    const { ask, make } = started();
    const read = bearer((await make()).token);
    expect((await ask('GET', '/api/alerts', read)).status).toBe(200);
    expect((await ask('GET', '/api/settings', read)).status).toBe(403);
    expect((await ask('GET', '/api/tokens', read)).status).toBe(403);
    expect((await ask('DELETE', '/api/sessions', read)).status).toBe(403);
    const users = bearer((await make({ scope: 'users' })).token);
    for (const path of ['/api/alerts', '/api/settings', '/api/tokens', '/api/sessions'])
      expect([path, (await ask('GET', path, users)).status]).toEqual([path, 403]);
    const admin = bearer((await make({ scope: 'admin' })).token);
    expect((await ask('GET', '/api/settings', admin)).status).toBe(200);
  });

  it('lets a token of the scope admin make tokens: they are the person’s', async () => {
    const { make } = started();
    const { token } = await make({ scope: 'admin' });
    expect(await make({ name: 'second' }, bearer(token))).toMatchObject({ name: 'second', owner: 'webadmin' });
  });

  it.each([
    ['name', { name: '' }],
    ['name', { name: '   ' }],
    ['name', { name: 'x'.repeat(65) }],
    ['name', { name: 'two\nlines' }],
    ['name', { name: 'right\u202eleft' }],
    ['name', { name: 7 }],
    ['scope', { scope: 'everything' }],
    ['scope', { scope: undefined }],
    ['expires_at', { expires_at: undefined }],
    ['expires_at', { expires_at: 'tomorrow' }],
    ['expires_at', { expires_at: '2026-02-30T00:00:00Z' }],
    ['expires_at', { expires_at: 1_800_000_000 }],
    ['expires_at', { expires_at: null }],
  ])('refuses a wrong %s: %j', async (member, change) => {
    const { deps, ask, wanted } = started();
    const response = await ask('POST', '/api/tokens', ADMIN, wanted(change));
    expect(response.status).toBe(422);
    expect(problemSchema.parse(await response.json()).errors?.map(({ path }) => path)).toContain(member);
    expect([deps.audit.records, (await deps.signIns.tokens({ page: 1, pageSize: 1 })).count]).toEqual([[], 0]);
  });

  it('takes an expiry in the future and at most five years ahead, and says which was given', async () => {
    const { around, ask, wanted, inDays } = started();
    const five = new Date(around.now);
    five.setUTCFullYear(five.getUTCFullYear() + 5);
    const statusFor = async (expires_at: string) =>
      (await ask('POST', '/api/tokens', ADMIN, wanted({ expires_at }))).status;
    expect(await statusFor(five.toISOString())).toBe(201);
    expect(await statusFor(new Date(around.now.getTime() + 1).toISOString())).toBe(201);
    for (const expires_at of [around.now.toISOString(), inDays(-1), new Date(five.getTime() + 1).toISOString()]) {
      const response = await ask('POST', '/api/tokens', ADMIN, wanted({ expires_at }));
      expect(response.status).toBe(422);
      const [error] = problemSchema.parse(await response.json()).errors ?? [];
      expect([error?.path, error?.message]).toEqual(['expires_at', expect.stringContaining(expires_at)]);
    }
  });

  it('takes 64 characters of any script, and a time in any zone', async () => {
    const { make } = started();
    const name = '\u{1F692}'.repeat(64);
    const made = await make({ name, expires_at: '2026-12-31T23:00:00-02:00' });
    expect([made.name, made.expires_at]).toEqual([name, '2027-01-01T01:00:00.000Z']);
  });

  it('is told in the audit log before and after, without the text; no log, no token', async () => {
    const { deps, ask, make, wanted } = started();
    const { id, token, expires_at } = await make({ scope: 'users' });
    const [intent, outcome] = deps.audit.records;
    expect(intent).toMatchObject({ actor: 'webadmin', action: 'token.create', target: 'backup', phase: 'intent' });
    expect(JSON.parse(intent?.detail ?? '')).toEqual({ id, scope: 'users', owner: 'webadmin', expires_at });
    expect(outcome).toMatchObject({ phase: 'outcome', result: 'ok', intent: 1 });
    expect(JSON.stringify(deps.audit.records)).not.toContain(token);
    deps.audit.mood = 'away';
    expect((await ask('POST', '/api/tokens', ADMIN, wanted())).status).toBe(503);
    expect((await deps.signIns.tokens({ page: 1, pageSize: 9 })).count).toBe(1);
  });
});

describe('GET /api/tokens', () => {
  it('shows those that are valid in pages, newest first', async () => {
    const { around, ask, make, inDays } = started();
    await make({ name: 'short', expires_at: inDays(1) });
    for (const name of ['one', 'two', 'three']) await make({ name });
    const page = async (query: string) => {
      const body = (await (await ask('GET', `/api/tokens${query}`)).json()) as { results: NewToken[]; count: number };
      return [body.results.map(({ name }) => name), body.count];
    };
    expect(await page('?page_size=2')).toEqual([['three', 'two'], 4]);
    expect(await page('?page_size=2&page=3')).toEqual([[], 4]);
    around.now = new Date(Date.parse(inDays(2)));
    expect(await page('')).toEqual([['three', 'two', 'one'], 3]);
    expect((await ask('GET', '/api/tokens?page_size=201')).status).toBe(422);
  });
});

describe('DELETE /api/tokens/{id}', () => {
  it('revokes a token, which is dead at once', async () => {
    const { deps, ask, make } = started();
    const { id, token, name } = await make();
    expect((await ask('GET', '/api/alerts', bearer(token))).status).toBe(200);
    expect((await ask('DELETE', `/api/tokens/${id}`)).status).toBe(204);
    expect((await ask('GET', '/api/alerts', bearer(token))).status).toBe(401);
    expect(actionsOf(deps).slice(2)).toMatchObject([
      { action: 'token.revoke', target: name, phase: 'intent' },
      { action: 'token.revoke', result: 'ok' },
    ]);
    expect(JSON.parse(deps.audit.records[2]?.detail ?? '')).toMatchObject({ id, scope: 'read', owner: 'webadmin' });
  });

  it('is 404 for an unknown one, with the id, and touches nothing', async () => {
    const { deps, ask, make } = started();
    const { id } = await make();
    await ask('DELETE', `/api/tokens/${id}`);
    const reported = deps.audit.records.length;
    for (const unknown of [id, 'nothing', crypto.randomUUID()]) {
      const response = await ask('DELETE', `/api/tokens/${unknown}`);
      expect([response.status, problemSchema.parse(await response.json()).detail]).toEqual([
        404,
        expect.stringContaining(`"${unknown}"`),
      ]);
    }
    expect(deps.audit.records).toHaveLength(reported);
  });
});

describe('a body that takes long to come', () => {
  /** The request arrives, and with it everything that says who asks; the body comes when `end` is called. */
  function slowly(
    path: string,
    headers: Record<string, string>,
    body: string,
    deps: ReturnType<typeof started>['deps'],
  ) {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const type = { 'content-type': 'application/json' };
    const request = new Request(`http://h${path}`, {
      method: body === '' ? 'DELETE' : 'POST',
      headers: { ...headers, ...(body === '' ? {} : type) },
      body: readable,
      duplex: 'half',
    });
    const answer = createApp(deps).fetch(request, CONNECTION);
    const end = async (): Promise<Response> => {
      if (body !== '') await writer.write(new TextEncoder().encode(body));
      await writer.close();
      return answer;
    };
    return end;
  }

  it('does nothing for somebody whose right to come in has ended meanwhile, however they had come in', async () => {
    const credentials = async ({ deps, make }: ReturnType<typeof started>) => {
      const expiresAt = '2030-01-01T00:00:00.000Z';
      const session = { username: 'webadmin', expiresAt, address: '', userAgent: '' };
      const { text } = await deps.signIns.openSession(session);
      return [ADMIN, bearer((await make({ scope: 'admin' })).token), { cookie: `holdfast=${text}` }];
    };
    for (const way of [0, 1, 2])
      for (const withBody of [true, false]) {
        const world = started();
        const { deps, wanted, make } = world;
        const headers = (await credentials(world))[way] ?? {};
        const { id } = await make();
        const path = withBody ? '/api/tokens' : `/api/tokens/${id}`;
        const end = slowly(path, headers, withBody ? JSON.stringify(wanted()) : '', deps);
        await new Promise((turn) => setTimeout(turn, 20));
        const owner = deps.directory.people.get('webadmin');
        if (owner === undefined) throw new Error('nobody');
        owner.active = false;
        deps.signIns.endAllOf('webadmin');
        await deps.authenticator.forget('webadmin');
        const reported = actionsOf(deps).length;
        expect([way, withBody, (await end()).status]).toEqual([way, withBody, 401]);
        expect(actionsOf(deps)).toHaveLength(reported);
      }
  });

  it('is judged by the role of now', async () => {
    const { deps, wanted } = started();
    const end = slowly('/api/tokens', ADMIN, JSON.stringify(wanted()), deps);
    await new Promise((turn) => setTimeout(turn, 20));
    const owner = deps.directory.people.get('webadmin');
    if (owner === undefined) throw new Error('nobody');
    owner.groups = ['stack_viewer'];
    await deps.authenticator.forget('webadmin');
    expect((await end()).status).toBe(403);
  });
});

describe('API tokens', () => {
  it('are for administrators only', async () => {
    const { ask, make, wanted } = started();
    const { id } = await make();
    for (const [headers, status] of [
      [VIEWER, 403],
      [NOBODY, 403],
      [READER, 403],
      [{}, 401],
    ] as const)
      for (const [method, path, body] of [
        ['GET', '/api/tokens', undefined],
        ['POST', '/api/tokens', wanted()],
        ['DELETE', `/api/tokens/${id}`, undefined],
      ] as const)
        expect([method, (await ask(method, path, headers, body)).status]).toEqual([method, status]);
  });

  it('die with the right of their owner to come in, and have the role that the owner has now', async () => {
    const { around, deps, ask, make } = started();
    const token = bearer((await make({ scope: 'admin' })).token);
    const owner = deps.directory.people.get('webadmin');
    if (owner === undefined) throw new Error('nobody');
    owner.groups = ['stack_viewer'];
    around.now = new Date(around.now.getTime() + 31_000);
    expect((await ask('GET', '/api/settings', token)).status).toBe(403);
    expect((await ask('GET', '/api/alerts', token)).status).toBe(200);
    deps.signIns.endAllOf('webadmin');
    await deps.authenticator.forget('webadmin');
    expect((await ask('GET', '/api/alerts', token)).status).toBe(401);
  });
});
