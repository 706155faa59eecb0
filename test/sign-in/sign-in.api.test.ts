import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import type { Bindings } from '../../shared/http/context.ts';
import { problemSchema } from '../../shared/http/route.ts';
import { actionsOf } from '../audit/fake-audit.ts';
import { world } from '../health/fake-monitored.ts';
import { basic, fakeDeps, PASSWORD } from '../http/fake-deps.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };
const HERE = 'http://cot.example.org:8080';
const BROWSER = { accept: 'text/html,application/xhtml+xml', 'user-agent': 'Browser/1 \u0007(x)', origin: HERE };
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
];

interface Requested {
  cookie?: string | undefined;
  headers?: Record<string, string>;
  secure?: boolean;
  from?: string;
}

function started() {
  const around = world();
  const deps = fakeDeps({}, around);
  const app = createApp(deps);
  const ask = async (method: string, path: string, query: Requested = {}, body?: string): Promise<Response> => {
    const { cookie, headers = {}, secure = false, from = CONNECTION.clientAddress } = query;
    const type = body === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' };
    const all = { ...BROWSER, ...type, ...(cookie === undefined ? {} : { cookie }), ...headers };
    const request = new Request(HERE + path, { method, headers: all, ...(body === undefined ? {} : { body }) });
    return app.fetch(request, { ...CONNECTION, secure, clientAddress: from });
  };
  const post = (fields: Record<string, string>, requested: Requested = {}): Promise<Response> =>
    ask('POST', '/sign-in', requested, new URLSearchParams(fields).toString());
  const signIn = (username = 'vera', input: Requested = {}, returnTo = '/') =>
    post({ username, password: PASSWORD, return_to: returnTo }, input);
  const get = (path: string, wantedQuery: Requested = {}) => ask('GET', path, wantedQuery);
  return { around, deps, ask, post, signIn, get };
}

/** The cookie that an answer sets, as the next request sends it. */
const cookieOf = (response: Response): string => response.headers.get('set-cookie')?.split(';')[0] ?? '';
const to = (response: Response): [number, string | null] => [response.status, response.headers.get('location')];

describe('GET /sign-in', () => {
  it('is a form that works without scripts, for people and for what keeps their passwords', async () => {
    const { get } = started();
    const response = await get('/sign-in?return_to=/api/docs');
    const html = await response.text();
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8']);
    expect(html).not.toMatch(/<script(?! src=)|javascript:|\son\w+=|style="/i);
    expect(html.match(/<h1>/g)).toHaveLength(1);
    expect(html).toMatch(/<html lang="en">/);
    expect(html).toMatch(/name="viewport"/);
    for (const field of ['username', 'password']) expect(html).toContain(`<label for="${field}">`);
    expect(html).toMatch(/id="username"[^>]*autocomplete="username"[^>]*autofocus/);
    expect(html).toMatch(/id="password"[^>]*type="password"[^>]*autocomplete="current-password"/);
    expect(html).toContain('name="return_to" value="/api/docs"');
    expect(html).toMatch(/<form method="post" action="\/sign-in">/);
  });

  it('has the headers of every page', async () => {
    const { get } = started();
    const { headers } = await get('/sign-in');
    expect(headers.get('content-security-policy')?.split('; ')).toEqual(expect.arrayContaining(POLICY));
    expect([
      headers.get('x-content-type-options'),
      headers.get('cache-control'),
      headers.get('referrer-policy'),
      headers.get('www-authenticate'),
      headers.get('x-request-id'),
    ]).toEqual(['nosniff', 'no-store', 'same-origin', null, 'request-1']);
  });

  it('loads its style from here', async () => {
    const { get } = started();
    const style = await get('/sign-in/style.css');
    expect([style.status, style.headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8']);
    expect(await style.text()).not.toBe('');
    expect(await (await get('/sign-in')).text()).toContain('<link rel="stylesheet" href="/sign-in/style.css?v=');
  });

  it('takes no address of another site into the form, and nothing unescaped', async () => {
    const { get } = started();
    for (const evil of ['//evil.org', 'https://evil.org', '/\\evil.org', '/sign-in'])
      expect(await (await get(`/sign-in?return_to=${encodeURIComponent(evil)}`)).text()).toContain(
        'name="return_to" value="/"',
      );
    const html = await (await get(`/sign-in?return_to=${encodeURIComponent('/"><b>')}`)).text();
    expect(html).not.toContain('<b>');
  });

  it('shows only its own notices', async () => {
    const { deps, get, signIn } = started();
    const messagesOf = async (path: string, query: Requested = {}): Promise<string | undefined> =>
      /<p class="notice" role="status">([^<]*)</.exec(await (await get(path, query)).text())?.[1];
    expect(await messagesOf('/sign-in')).toBeUndefined();
    expect(await messagesOf('/sign-in?done=signed-out')).toBe('You are signed out.');
    expect(await messagesOf('/sign-in?done=password')).toMatch(/Password changed[^]*Sign in with your new password/);
    for (const word of ['constructor', '<b>hello</b>', 'Send%20your%20password'])
      expect(await messagesOf(`/sign-in?done=${word}`)).toBeUndefined();
    const cookie = cookieOf(await signIn());
    deps.signIns.endAllOf('vera');
    expect(await messagesOf('/sign-in?return_to=/people', { cookie })).toMatch(/^Your session has ended/);
  });

  it('names the stack, and console or portal', async () => {
    const app = createApp(fakeDeps());
    for (const [face, words] of [
      ['console', '>Holdfast console on <strong>cot.example.org</strong>'],
      ['portal', '>Holdfast on <strong>cot.example.org</strong>'],
    ] as const)
      expect(await (await app.request('/sign-in', {}, { ...CONNECTION, face })).text()).toContain(words);
  });

  it('leads on who is signed in already', async () => {
    const { get, signIn } = started();
    const cookie = cookieOf(await signIn());
    expect(to(await get('/sign-in?return_to=/api/docs', { cookie }))).toEqual([303, '/api/docs']);
    expect(to(await get('/sign-in', { cookie }))).toEqual([303, '/']);
    expect((await get('/sign-in', { cookie: 'holdfast=nonsense' })).status).toBe(200);
  });
});

describe('POST /sign-in', () => {
  it('opens a session, sets its cookie and leads to where the person wanted to go', async () => {
    const { deps, get, signIn } = started();
    const response = await signIn('vera', {}, '/api/docs?x=1');
    expect(to(response)).toEqual([303, '/api/docs?x=1']);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const [pair, ...attributes] = response.headers.get('set-cookie')?.split('; ') ?? [];
    expect(pair).toMatch(/^holdfast=session-/);
    expect(attributes.toSorted()).toEqual(['HttpOnly', 'Max-Age=43200', 'Path=/', 'SameSite=Lax']);
    const { results } = await deps.signIns.sessions('vera', { page: 1, pageSize: 50 });
    expect(results).toMatchObject([{ username: 'vera', address: '192.0.2.7', userAgent: 'Browser/1 ?(x)' }]);
    expect(Date.parse(results[0]?.expiresAt ?? '') - deps.now().getTime()).toBe(12 * 3_600_000);
    expect((await get('/api/health', { cookie: cookieOf(response) })).status).toBe(200);
  });

  it('binds the cookie to this host where the connection is encrypted', async () => {
    const { get, signIn } = started();
    const headers = { origin: 'https://cot.example.org:8080' };
    const response = await signIn('vera', { secure: true, headers });
    expect(response.headers.get('set-cookie')).toMatch(/^__Host-holdfast=session-[^;]+;.*Path=\/;.*Secure/);
    expect(response.headers.get('set-cookie')).not.toContain('Domain');
    expect((await get('/api/health', { secure: true, cookie: cookieOf(response) })).status).toBe(200);
    const plain = cookieOf(response).replace('__Host-', '');
    expect((await get('/api/health', { secure: true, cookie: plain })).status).toBe(401);
  });

  it('is told in the audit log, with the intent first, and without the password or the cookie', async () => {
    const { deps, signIn } = started();
    const text = cookieOf(await signIn()).split('=')[1] ?? '';
    expect(deps.audit.records).toMatchObject([
      { actor: 'vera', action: 'session.create', target: 'vera', phase: 'intent', address: '192.0.2.7' },
      { actor: 'vera', action: 'session.create', phase: 'outcome', result: 'ok', intent: 1, request_id: 'request-1' },
    ]);
    const written = JSON.stringify(deps.audit.records);
    const [session] = (await deps.signIns.sessions('vera', { page: 1, pageSize: 1 })).results;
    expect(written).toContain(session?.id);
    for (const secret of [PASSWORD, text]) expect(written).not.toContain(secret);
  });

  it('opens none while the audit log cannot be written', async () => {
    const { deps, signIn } = started();
    deps.audit.mood = 'away';
    const response = await signIn();
    expect([response.status, response.headers.get('set-cookie')]).toEqual([503, null]);
    expect(response.headers.get('content-type')).toMatch(/^text\/html/);
    expect((await deps.signIns.sessions('vera', { page: 1, pageSize: 1 })).count).toBe(0);
  });

  it('shows the form again for a wrong password: 401 without a challenge, the name kept and escaped', async () => {
    const { post } = started();
    const response = await post({ username: '"><b>vera', password: 'no-such-secret', return_to: '/api/docs' });
    const html = await response.text();
    expect([response.status, response.headers.get('www-authenticate'), cookieOf(response)]).toEqual([401, null, '']);
    expect(html).toContain('role="alert"');
    expect(html).toContain('value="&quot;&gt;&lt;b&gt;vera"');
    expect(html).toContain('name="return_to" value="/api/docs"');
    expect(html).toMatch(/id="password"[^>]*autofocus/);
    expect(html).not.toMatch(/id="username"[^>]*autofocus/);
    expect(html).not.toContain('no-such-secret');
  });

  it('says the same for a name that nobody has', async () => {
    const { post } = started();
    const text = async (username: string): Promise<string> =>
      (await (await post({ username, password: 'wrong' })).text()).replace(username, '');
    expect(await text('vera')).toBe(await text('ghost'));
  });

  it('asks nobody when name or password is missing, and counts no failure', async () => {
    const { deps, post } = started();
    for (let time = 0; time < 12; time++) {
      expect((await post({ username: 'vera', password: '' })).status).toBe(401);
      expect((await post({ password: 'x' })).status).toBe(401);
    }
    expect([deps.audit.records, await deps.authenticator.lockouts()]).toEqual([[], []]);
    expect((await post({ username: 'vera', password: 'x'.repeat(1025) })).status).toBe(422);
  });

  it('takes the longest password that can be set', async () => {
    const { deps, post } = started();
    deps.directory.addPerson('longo', 'x'.repeat(1024));
    expect((await post({ username: 'longo', password: 'x'.repeat(1024) })).status).toBe(303);
  });

  it('counts wrong passwords, then is the form with 429, the time left, Retry-After and who can help, also for the right one', async () => {
    const { post, signIn } = started();
    for (let time = 0; time < 10; time++) expect((await post({ username: 'vera', password: 'no' })).status).toBe(401);
    const response = await signIn();
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '900']);
    const html = await response.text();
    expect(html).toContain('Your address is locked out after too many wrong passwords');
    expect(html).toMatch(/<time class="countdown"[^>]*data-left="900">15 minutes left<\/time>/);
    expect(html).toContain('./scripts/unlock.sh 192.0.2.7');
    expect(html).toMatch(/<form method="post" action="\/sign-in">[^]*value="vera"/);
    expect(html).not.toContain(PASSWORD);
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect((await signIn('vera', { from: '192.0.2.8' })).status).toBe(303);
  });

  it('is a page with 503 and what to do while the directory is away', async () => {
    const { deps, signIn } = started();
    deps.directory.mood = 'down';
    const response = await signIn();
    expect([response.status, response.headers.get('set-cookie')]).toEqual([503, null]);
    expect(await response.text()).toMatch(/directory does not answer[^]*Try again[^]*curl -u webadmin/);
  });

  it('gives no session for the password of the emergency, and says what that is good for', async () => {
    const { deps, signIn } = started();
    deps.directory.mood = 'down';
    const response = await signIn('webadmin');
    expect([response.status, response.headers.get('set-cookie')]).toEqual([503, null]);
    expect(await response.text()).toMatch(/health, metrics and alerts[^<]*Basic/);
    expect((await deps.signIns.sessions('webadmin', { page: 1, pageSize: 1 })).count).toBe(0);
  });

  it('ends the session that the request came with, whoever’s it was', async () => {
    const { deps, get, signIn } = started();
    const first = cookieOf(await signIn('nora'));
    const second = cookieOf(await signIn('vera', { cookie: first }));
    expect((await get('/api/sessions', { cookie: first })).status).toBe(401);
    expect((await get('/api/sessions', { cookie: second })).status).toBe(200);
    expect(deps.audit.records.map(({ actor, action, target }) => [actor, action, target])).toContainEqual([
      'vera',
      'session.end',
      'nora',
    ]);
  });

  it('gives a session that is void when the person was locked out while the password was judged', async () => {
    const { deps, get, signIn } = started();
    const bind = deps.directory.signIn.bind(deps.directory);
    deps.directory.signIn = async (...requests) => {
      const entry = await bind(...requests);
      deps.signIns.endAllOf('vera');
      return entry;
    };
    const cookie = cookieOf(await signIn());
    expect((await get('/api/sessions', { cookie })).status).toBe(401);
  });

  it('is refused from a page of another site, and for bodies that are no form', async () => {
    const { ask, deps, post } = started();
    const fields = { username: 'vera', password: PASSWORD };
    for (const headers of [{ origin: 'https://evil.org' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }])
      expect((await post(fields, { headers })).status).toBe(403);
    const json = { 'content-type': 'application/json' };
    expect((await ask('POST', '/sign-in', { headers: json }, JSON.stringify(fields))).status).toBe(415);
    expect((await ask('POST', '/sign-in', {}, 'a'.repeat(1_000_001))).status).toBe(413);
    expect((await deps.signIns.sessions('vera', { page: 1, pageSize: 1 })).count).toBe(0);
  });
});

describe('GET /', () => {
  it('leads to the form who is not signed in', async () => {
    const { get } = started();
    for (const requested of [
      {},
      { cookie: 'holdfast=nonsense' },
      { headers: { authorization: basic('vera', PASSWORD) } },
    ])
      expect(to(await get('/', requested))).toEqual([303, '/sign-in?return_to=/']);
  });

  it('is a page for whoever is signed in, which says who that is, and with a way out', async () => {
    const { get, signIn } = started();
    for (const username of ['webadmin', 'vera', 'nora']) {
      const response = await get('/', { cookie: cookieOf(await signIn(username)) });
      const html = await response.text();
      expect(response.status).toBe(200);
      expect(html).toContain(`<bdi>${username}</bdi></a>`);
      expect(html).toContain('<form method="post" action="/sign-out"');
      expect(html.match(/<h1>/g)).toHaveLength(1);
    }
  });
});

describe('POST /sign-out', () => {
  it('ends the session, is audited, removes the cookie and leads to the form', async () => {
    const { ask, deps, get, signIn } = started();
    const cookie = cookieOf(await signIn());
    const other = cookieOf(await signIn());
    const response = await ask('POST', '/sign-out', { cookie });
    expect(to(response)).toEqual([303, '/sign-in?done=signed-out']);
    expect(response.headers.get('set-cookie')).toMatch(/^holdfast=;.*Max-Age=0/);
    expect((await get('/api/sessions', { cookie })).status).toBe(401);
    expect((await get('/api/sessions', { cookie: other })).status).toBe(200);
    expect(actionsOf(deps).at(-1)).toMatchObject({ actor: 'vera', action: 'session.end', result: 'ok' });
  });

  it('works without a session too, but not from another site', async () => {
    const { ask, get, signIn } = started();
    expect(to(await ask('POST', '/sign-out'))).toEqual([303, '/sign-in?done=signed-out']);
    const cookie = cookieOf(await signIn());
    const headers = { origin: 'https://evil.org' };
    expect((await ask('POST', '/sign-out', { cookie, headers })).status).toBe(403);
    expect((await get('/api/sessions', { cookie })).status).toBe(200);
  });

  it('is no error when the session ends at the same moment, as with two clicks', async () => {
    const { ask, deps, signIn } = started();
    const cookie = cookieOf(await signIn());
    const both = await Promise.all([ask('POST', '/sign-out', { cookie }), ask('POST', '/sign-out', { cookie })]);
    expect(both.map(to)).toEqual([
      [303, '/sign-in?done=signed-out'],
      [303, '/sign-in?done=signed-out'],
    ]);
    const notices = deps.audit.records.filter(({ action }) => action === 'session.end');
    expect(notices.map(({ result }) => String(result)).toSorted()).toEqual(['failed', 'null', 'null', 'ok']);
  });

  it('takes the cookie away also when the session cannot be ended, and says so', async () => {
    const { ask, deps, signIn } = started();
    const cookie = cookieOf(await signIn());
    deps.audit.mood = 'away';
    const response = await ask('POST', '/sign-out', { cookie });
    expect(response.status).toBe(503);
    expect(response.headers.get('set-cookie')).toMatch(/^holdfast=;.*Max-Age=0/);
  });
});

describe('what fails', () => {
  it('is a page for a browser on an address of pages, and a problem document for everybody else', async () => {
    const { get } = started();
    const page = await get('/nothing');
    expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=UTF-8']);
    expect(await page.text()).toMatch(/<h1>Not found<\/h1>[^]*request-1/);
    for (const [path, headers] of [
      ['/nothing', { accept: '*/*' }],
      ['/api/nothing', {}],
      ['/metrics/nothing', {}],
      ['/auth/nothing', {}],
    ] as const) {
      const response = await get(path, { headers });
      expect([path, response.headers.get('content-type')]).toEqual([path, 'application/problem+json']);
      problemSchema.parse(await response.json());
    }
  });

  it('keeps the challenge where programs ask, and never sends one with a page', async () => {
    const { get } = started();
    expect((await get('/api/nothing')).headers.get('www-authenticate')).toMatch(/^Basic/);
  });

  it('sends no challenge to the script of a page, for which the browser would ask the person', async () => {
    const { get } = started();
    const request = async (path: string, headers: Record<string, string>): Promise<[number, boolean]> => {
      const { status, headers: answered } = await get(path, { headers });
      return [status, answered.has('www-authenticate')];
    };
    const script = { 'x-holdfast-page': '1', 'sec-fetch-dest': 'empty', cookie: 'holdfast=ended' };
    expect(await request('/api/health', script)).toEqual([401, false]);
    // A script of somebody else, and what a proxy hands on of ours.
    expect(await request('/api/health', { 'sec-fetch-dest': 'empty' })).toEqual([401, true]);
    expect(await request('/auth/verify', script)).toEqual([401, true]);
  });
});
