// Who comes in at a running stack, at every door, and who does not any more.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { coreOf, curl } from './core-client.ts';
import { answersPing, eventually, newStack, query, type TestStack } from './embedded.ts';
import { type RequestOrigin, askFrom, type AskOptions } from './from-address.ts';
import { bindsAt } from './ldap-bind.ts';
import { PORTABLE_SETTINGS } from './portable.ts';
import { RUN, stands } from './running-stack.ts';

const TOKEN = PORTABLE_SETTINGS.METRICS_TOKEN;
const PASSWORD = 'a password that is long enough';

let stack: TestStack;
let addresses = 1;
const newAddress = (): string => `127.0.7.${(addresses += 1)}`;
const HOME = newAddress();

beforeAll(async () => {
  stack = await newStack();
  const { code, output } = await stack.start([], { env: { METRICS_TOKEN: TOKEN, UPDATES_URL: 'off' } });
  expect([code, output]).toEqual([0, expect.anything()]);
});

const admin = (): { authorization: string } => {
  const { username, password } = stack.file().webadmin;
  return { authorization: basic(username, password) };
};

const ask = (path: string, options: AskOptions = {}, from = HOME): Promise<RequestOrigin> =>
  askFrom(from, `${stack.file().api}${path}`, options);

async function asAdmin<T>(path: string, options: AskOptions = {}, from = HOME): Promise<T> {
  const { headers = {} } = options;
  const answer = await ask(path, { ...options, headers: { ...admin(), ...headers } }, from);
  expect([path, answer.status, answer.text]).toEqual([path, expect.toSatisfy((code) => code < 300), expect.anything()]);
  return (answer.text === '' ? undefined : JSON.parse(answer.text)) as T;
}

/** A person with a password; its id. */
async function person(username: string, role = 'none'): Promise<number> {
  const { id } = await asAdmin<{ id: number }>('/api/users', { method: 'POST', json: { username, name: 'A Person' } });
  await asAdmin(`/api/users/${id}/password`, { method: 'POST', json: { password: PASSWORD } });
  await asAdmin(`/api/users/${id}`, { method: 'PATCH', json: { role } });
  return id;
}

async function cookieOf(username: string, password: string, from = HOME): Promise<string> {
  const answer = await ask('/sign-in', { method: 'POST', form: { username, password } }, from);
  expect([answer.status, answer.headers.location]).toEqual([303, '/']);
  return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}

const binds = (username: string, password: string): Promise<boolean> => bindsAt(stack, username, password);

type Knock = (password: string, from: string) => Promise<RequestOrigin>;

const ENDPOINTS: [name: string, knock: Knock][] = [
  ['the API', (password, from) => ask('/api/health', { headers: { authorization: basic('dora', password) } }, from)],
  ['/metrics', (password, from) => ask('/metrics', { headers: { authorization: basic('dora', password) } }, from)],
  [
    '/auth/verify',
    (password, from) => ask('/auth/verify', { headers: { authorization: basic('dora', password) } }, from),
  ],
  [
    '/auth/verify of the core',
    (password, from) => ask('/auth/verify?base=core', { headers: { authorization: basic('dora', password) } }, from),
  ],
  [
    'the sign-in page',
    (password, from) => ask('/sign-in', { method: 'POST', form: { username: 'dora', password } }, from),
  ],
  [
    'the door before the tokens of the core',
    (password, from) => ask('/oauth/token', tokenForm('dora', password), from),
  ],
];

function tokenForm(username: string, password: string): AskOptions {
  return { method: 'POST', form: { grant_type: 'password', username, password } };
}

// They need clients of many addresses.
describe.skipIf(stands)('wrong passwords', () => {
  beforeAll(() => person(`dora${RUN}`, 'viewer'));

  it.each(ENDPOINTS)('lock an address out at %s: ten are 401, the next is 429 with Retry-After', async (_, knock) => {
    const [from, elsewhere] = [newAddress(), newAddress()];
    for (let attempt = 1; attempt <= 10; attempt++) expect((await knock('wrong', from)).status).toBe(401);
    for (const password of ['wrong', PASSWORD]) {
      const answer = await knock(password, from);
      expect(answer.status).toBe(429);
      const seconds = Number(answer.headers['retry-after']);
      expect(seconds).toBeGreaterThan(14 * 60);
      expect(seconds).toBeLessThanOrEqual(15 * 60);
    }
    expect((await ask('/api/health', {}, from)).status).toBe(401);
    expect([200, 303]).toContain((await knock(PASSWORD, elsewhere)).status);
  });

  it('are one count for all doors, that of the own password as well', async () => {
    const from = newAddress();
    const cookie = await cookieOf('dora', PASSWORD, from);
    const json = { current_password: 'wrong', password: 'another long password' };
    const change = { method: 'POST', json, headers: { cookie } };
    for (const [, knock] of ENDPOINTS) expect((await knock('wrong', from)).status).toBe(401);
    for (let more = ENDPOINTS.length; more < 10; more++)
      expect((await ask('/api/me/password', change, from)).status).toBe(401);
    expect((await ask('/api/me/password', change, from)).status).toBe(429);
    for (const [, knock] of ENDPOINTS) expect((await knock(PASSWORD, from)).status).toBe(429);
    expect((await ask('/api/me', { headers: { cookie } }, from)).status).toBe(200);
  });

  it('sent at once are not judged beyond the tenth', async () => {
    const from = newAddress();
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        ask('/auth/verify', { headers: { authorization: basic('dora', `wrong ${index}`) } }, from),
      ),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
    expect(statuses.filter((status) => status === 429)).toHaveLength(30);
  });

  it('are shown to administrators, who can let the address in again', async () => {
    const { results } = await asAdmin<{ results: { address: string; endpoint: string; failures: number }[] }>(
      '/api/lockouts',
    );
    expect(results.length).toBeGreaterThan(ENDPOINTS.length);
    const [{ address } = { address: '' }] = results;
    expect(results[0]).toMatchObject({ failures: 10, door: expect.any(String), locked_until: expect.any(String) });
    await asAdmin(`/api/lockouts/${address}`, { method: 'DELETE' });
    const authorization = basic('dora', PASSWORD);
    expect((await ask('/api/health', { headers: { authorization } }, address)).status).toBe(200);
  });

  it('and a hundred right ones never lock, also sent at once', async () => {
    const from = newAddress();
    const right = { headers: { authorization: basic('dora', PASSWORD) } };
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask('/api/health', right, from)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await ask('/api/health', right, from)).status).toBe(200);
  });
});

describe('somebody who was deactivated', () => {
  it('is refused by LDAP, API, cookie and token within a second', async () => {
    const id = await person(`gone${RUN}`, 'admin');
    const authorization = basic(`gone${RUN}`, PASSWORD);
    const cookie = await cookieOf(`gone${RUN}`, PASSWORD);
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const made = await ask('/api/tokens', {
      method: 'POST',
      headers: { authorization },
      json: { name: 'script', scope: 'admin', expires_at },
    });
    expect(made.status).toBe(201);
    const { token } = JSON.parse(made.text) as { token: string };
    const carried = [{ authorization }, { cookie }, { authorization: `Bearer ${token}` }];
    for (const headers of carried) expect((await ask('/api/settings', { headers })).status).toBe(200);
    expect(await binds(`gone${RUN}`, PASSWORD)).toBe(true);

    await asAdmin(`/api/users/${id}`, { method: 'DELETE' });
    await eventually('everything is refused', async () => {
      const answers = await Promise.all(
        carried.flatMap((headers) => ['/api/settings', '/auth/verify'].map((path) => ask(path, { headers }))),
      );
      return answers.every(({ status }) => status === 401) && !(await binds(`gone${RUN}`, PASSWORD));
    });
  });

  it('and somebody whose role was taken has it no more, by Basic nor by cookie', async () => {
    const id = await person(`chief${RUN}`, 'admin');
    const authorization = basic(`chief${RUN}`, PASSWORD);
    const cookie = await cookieOf(`chief${RUN}`, PASSWORD);
    expect((await ask('/api/settings', { headers: { authorization } })).status).toBe(200);
    await asAdmin(`/api/users/${id}`, { method: 'PATCH', json: { role: 'viewer' } });
    await eventually(
      'it is gone',
      async () => (await ask('/api/settings', { headers: { authorization } })).status === 403,
    );
    expect((await ask('/api/settings', { headers: { cookie } })).status).toBe(401);
    expect((await ask('/api/health', { headers: { authorization } })).status).toBe(200);
  });

  it('and a password that was changed is good for nothing, nor is what was signed under it', async () => {
    const id = await person(`renewed${RUN}`, 'viewer');
    const cookie = await cookieOf(`renewed${RUN}`, PASSWORD);
    const authorization = basic(`renewed${RUN}`, PASSWORD);
    expect((await ask('/api/health', { headers: { authorization } })).status).toBe(200);
    await asAdmin(`/api/users/${id}/password`, { method: 'POST', json: { password: 'quite another password' } });
    await eventually('the old one is refused', async () => {
      const answers = await Promise.all(
        [{ authorization }, { cookie }].map((headers) => ask('/api/health', { headers })),
      );
      return answers.every(({ status }) => status === 401);
    });
  });
});

describe.skipIf(stands)('a token of the core by way of management', () => {
  it('opens 8446 as Bearer, for a password and for an app password, in body or address', async () => {
    const id = await person('tess');
    for (const password of [PASSWORD, await appPassword(id)]) {
      const inBody = await ask('/oauth/token', tokenForm('tess', password));
      const query = new URLSearchParams({ grant_type: 'password', username: 'tess', password });
      const inAddress = await ask(`/oauth/token?${query.toString()}`, { method: 'POST' });
      for (const { status, text, headers } of [inBody, inAddress]) {
        const { access_token: token } = JSON.parse(text) as { access_token: string };
        expect([status, headers['set-cookie']?.[0]?.split(';')[0]]).toEqual([200, `access_token_0=${token}`]);
        const config = `${stack.file().core.enrollment}/Marti/api/tls/config`;
        const taken = await curl(coreOf(stack), ['-H', `Authorization: Bearer ${token}`, config]);
        expect(taken.status).toBe(200);
      }
    }
  });

  it('costs nobody else the way to the core when somebody guesses: the core never sees the guesses', async () => {
    for (let guess = 0; guess < 12; guess++) {
      const { status } = await ask('/oauth/token', tokenForm('tess', `guess ${guess}`), newAddress());
      expect(status).toBe(401);
    }
    expect((await ask('/oauth/token', tokenForm('tess', PASSWORD), newAddress())).status).toBe(200);
  });

  it('leaves no password in a log', () => {
    const log = readFileSync(join(stack.data, 'logs/management.log'), 'utf8');
    expect(log).toContain('/oauth/token');
    for (const secret of [PASSWORD, PASSWORD.replaceAll(' ', '+'), 'guess']) expect(log).not.toContain(secret);
  });
});

describe('an enrollment app password', () => {
  it('opens no door of ours, but the one before the core', async () => {
    const id = await person(`enrolled${RUN}`, 'admin');
    const key = await appPassword(id);
    const authorization = basic(`enrolled${RUN}`, key);
    expect(await binds(`enrolled${RUN}`, key)).toBe(true);
    expect((await ask('/auth/verify?base=core', { headers: { authorization } })).status).toBe(200);
    for (const path of ['/api/health', '/api/me', '/metrics', '/auth/verify', '/auth/verify?role=viewer'])
      expect([path, (await ask(path, { headers: { authorization } })).status]).toEqual([path, 401]);
    const page = await ask('/sign-in', { method: 'POST', form: { username: `enrolled${RUN}`, password: key } });
    expect(page.status).toBe(401);
  });
});

/** Made at the provider, as an enrollment makes it. */
async function appPassword(user: number): Promise<string> {
  const { IDENTITY_TOKEN: token } = JSON.parse(readFileSync(join(stack.data, 'secrets.json'), 'utf8')) as {
    IDENTITY_TOKEN: string;
  };
  const provider = `http://127.0.0.1:${9000 + stack.offset}/api/v3/core/tokens`;
  const headers = { authorization: `Bearer ${token}` };
  const json = { identifier: `enrollment-${user}`, intent: 'app_password', user, expiring: false };
  expect((await askFrom(HOME, `${provider}/`, { method: 'POST', headers, json })).status).toBe(201);
  const { text } = await askFrom(HOME, `${provider}/enrollment-${user}/view_key/`, { headers });
  return (JSON.parse(text) as { key: string }).key;
}

describe.skipIf(stands)('the audit log', () => {
  it('has the denied attempts with the address of the client, and no password', async () => {
    const from = newAddress();
    await ask('/api/settings', { headers: { authorization: basic('dora', PASSWORD) } }, from);
    await ask('/api/health', { headers: { authorization: basic('nobody at all', 'guess-of-a-password') } }, from);
    const { results } = await asAdmin<{ results: { address: string; result: string; actor: string }[] }>('/api/audit');
    const seen = results.filter(({ address }) => address === from).map(({ actor, result }) => [actor, result]);
    expect(seen).toEqual([
      ['nobody at all', 'denied'],
      ['dora', 'denied'],
    ]);
    const all = JSON.stringify(await query(stack.file().state_database, 'SELECT * FROM audit_record'));
    for (const secret of [PASSWORD, 'guess-of-a-password', stack.file().webadmin.password])
      expect(all).not.toContain(secret);
  });
});

describe.skipIf(stands)('while the directory does not answer', () => {
  it('webadmin may look with the password of the settings, and nobody else comes in', async () => {
    const identity = stack.pid('identity');
    const management = stack.pid('management');
    const from = newAddress();
    const reader = { authorization: `Bearer ${TOKEN}` };
    const cookie = await cookieOf(stack.file().webadmin.username, stack.file().webadmin.password, from);
    // So that nothing is remembered of who came in a moment ago.
    process.kill(management, 'SIGKILL');
    process.kill(identity, 'SIGSTOP');
    try {
      await eventually(
        'it runs again',
        async () => stack.pid('management') !== management && answersPing(stack.file().api),
        20_000,
      );
      const status = async (path: string, headers: Record<string, string>): Promise<number> =>
        (await ask(path, { headers }, from)).status;
      const dora = { authorization: basic('dora', PASSWORD) };
      expect(
        await Promise.all([
          status('/api/health', admin()),
          status('/api/settings', admin()),
          status('/api/health', dora),
          status('/auth/verify', admin()),
          status('/api/health', { cookie }),
          status('/api/alerts', reader),
          status('/api/health', {}),
        ]),
      ).toEqual([200, 403, 503, 403, 503, 200, 401]);
    } finally {
      process.kill(identity, 'SIGCONT');
    }
    await eventually(
      'it is over',
      async () => (await ask('/api/settings', { headers: admin() }, from)).status === 200,
      20_000,
    );
    const { results } = await asAdmin<{ results: { action: string; actor: string }[] }>('/api/audit');
    expect(results.map(({ action, actor }) => `${action} ${actor}`)).toContain('sign-in.break-glass webadmin');
  });
});
