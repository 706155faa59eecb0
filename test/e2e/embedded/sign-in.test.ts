// Signing in and out as a browser does, over real HTTP, with the real directory and database.

import { beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { newStack, query, type TestStack } from './embedded.ts';
import { stands } from './running-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
});

interface Request {
  cookie?: string;
  headers?: Record<string, string>;
  body?: URLSearchParams | string;
}

const ask = (method: string, path: string, { cookie, headers = {}, body }: Request = {}): Promise<Response> =>
  fetch(stack.file().api + path, {
    method,
    redirect: 'manual',
    headers: {
      accept: 'text/html',
      origin: stack.file().api,
      'sec-fetch-site': 'same-origin',
      ...(cookie === undefined ? {} : { cookie }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  });

/**
 * What a browser would send for the form of this page: its hidden fields, and what the person
 * typed.
 */
function filledIn(html: string, typed: Record<string, string>): URLSearchParams {
  const fields = new URLSearchParams();
  for (const [, name = '', value = ''] of html.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g))
    fields.set(name, value);
  for (const [name, value] of Object.entries(typed)) {
    expect(html).toContain(`name="${name}"`);
    fields.set(name, value);
  }
  return fields;
}

const cookieOf = (response: Response): string => response.headers.get('set-cookie')?.split(';')[0] ?? '';

async function signedIn(): Promise<string> {
  const response = await ask('POST', '/sign-in', { body: new URLSearchParams(stack.file().webadmin) });
  expect(response.status).toBe(303);
  return cookieOf(response);
}

describe('a person with a browser', () => {
  it('goes from / to the form, signs in, comes back, sees the session, and signs out', async () => {
    const unavailable = await ask('GET', '/');
    expect([unavailable.status, unavailable.headers.get('location')]).toEqual([303, '/sign-in?return_to=/']);
    const page = await ask('GET', unavailable.headers.get('location') ?? '');
    expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/html/)]);
    const html = await page.text();
    expect((await ask('GET', '/sign-in/style.css')).status).toBe(200);

    const { webadmin, seen_as: address = '127.0.0.1' } = stack.file();
    const { username, password } = webadmin;
    const wrong = await ask('POST', '/sign-in', { body: filledIn(html, { username, password: 'something else' }) });
    expect([wrong.status, wrong.headers.get('www-authenticate'), cookieOf(wrong)]).toEqual([401, null, '']);

    const right = await ask('POST', '/sign-in', { body: filledIn(await wrong.text(), { username, password }) });
    expect([right.status, right.headers.get('location')]).toEqual([303, '/']);
    expect(right.headers.get('set-cookie')).toMatch(
      /^holdfast=[\w.-]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax$/,
    );
    const cookie = cookieOf(right);
    expect(await (await ask('GET', '/', { cookie })).text()).toContain('<bdi>webadmin</bdi></a>');

    const sessions = await ask('GET', '/api/sessions', { cookie });
    const { results } = (await sessions.json()) as { results: { current: boolean }[] };
    expect(results.filter(({ current }) => current)).toMatchObject([{ address }]);
    expect(stands || results.length === 1).toBe(true);
    expect((await ask('GET', '/api/settings', { cookie })).status).toBe(200);

    const out = await ask('POST', '/sign-out', { cookie });
    expect([out.status, out.headers.get('location'), cookieOf(out)]).toEqual([
      303,
      '/sign-in?done=signed-out',
      'holdfast=',
    ]);
    for (const path of ['/api/sessions', '/api/settings'])
      expect([path, (await ask('GET', path, { cookie })).status]).toEqual([path, 401]);
    const others = stands ? [] : await query(stack.file().state_database, 'SELECT FROM session');
    expect(others).toEqual([]);
  });

  it('cannot be made to sign in, out, or do anything by a page of another site', async () => {
    const cookie = await signedIn();
    const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    const body = new URLSearchParams(stack.file().webadmin);
    for (const [method, path] of [
      ['POST', '/sign-in'],
      ['POST', '/sign-out'],
      ['DELETE', '/api/sessions'],
    ] as const)
      expect([
        path,
        (await ask(method, path, { cookie, headers, ...(method === 'POST' ? { body } : {}) })).status,
      ]).toEqual([path, 403]);
    expect((await ask('GET', '/api/sessions', { cookie })).status).toBe(200);
  });

  it('cannot bring a cookie of its own making', async () => {
    const cookie = await signedIn();
    const [header = '', claims = '', signature = ''] = cookie.slice('holdfast='.length).split('.');
    const reported = JSON.parse(Buffer.from(claims, 'base64url').toString()) as object;
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'holdfast-session+jwt' })).toString('base64url');
    const longer = Buffer.from(JSON.stringify({ ...reported, exp: 9_999_999_999 })).toString('base64url');
    for (const forged of [`${none}.${claims}.`, `${none}.${claims}.${signature}`, `${header}.${longer}.${signature}`])
      expect((await ask('GET', '/api/sessions', { cookie: `holdfast=${forged}` })).status).toBe(401);
  });
});

describe('a program with a token', () => {
  it.skipIf(stands)(
    'comes in with it until it is revoked, also after a restart of the management process',
    async () => {
      const { username, password } = stack.file().webadmin;
      const headers = { authorization: basic(username, password), 'content-type': 'application/json' };
      const expires_at = new Date(Date.now() + 3_600_000).toISOString();
      const body = JSON.stringify({ name: 'backup', scope: 'read', expires_at });
      const made = await ask('POST', '/api/tokens', { headers, body });
      expect(made.status).toBe(201);
      const { id, token } = (await made.json()) as { id: string; token: string };
      const bearer = { authorization: `Bearer ${token}` };
      const statusOf = async (path: string): Promise<number> => (await ask('GET', path, { headers: bearer })).status;
      expect([await statusOf('/api/alerts'), await statusOf('/api/settings')]).toEqual([200, 403]);

      const before = stack.pid('management');
      process.kill(before, 'SIGKILL');
      await expect
        .poll(() => (stack.pid('management') === before ? 0 : statusOf('/api/alerts').catch(() => 0)), {
          timeout: 15_000,
        })
        .toBe(200);
      expect((await ask('DELETE', `/api/tokens/${id}`, { headers })).status).toBe(204);
      expect(await statusOf('/api/alerts')).toBe(401);
    },
  );
});
