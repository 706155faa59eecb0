// /auth/verify and the lockout over real sockets, against a real directory.

import { beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { newStack, secretsOf, type TestStack } from './embedded.ts';
import { RUN, stands } from './running-stack.ts';

const ADA = `ada${RUN}`;
let stack: TestStack;

async function inProvider<T>(path: string, body: object): Promise<T> {
  const headers = { authorization: `Bearer ${secretsOf(stack)['IDENTITY_TOKEN']}`, 'content-type': 'application/json' };
  const url = `http://127.0.0.1:${9000 + stack.offset}/api/v3/core/${path}`;
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(answer.ok).toBe(true);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

async function verify(query: string, username: string, password: string, method = 'GET'): Promise<Response> {
  const headers = { authorization: basic(username, password) };
  return fetch(`${stack.file().api}/auth/verify${query}`, { headers, method });
}

const webadmin = (): [string, string] => {
  const { username, password } = stack.file().webadmin;
  return [username, password];
};

describe('/auth/verify of a stack', () => {
  beforeAll(async () => {
    stack = await newStack();
    // From the proxy 127.0.0.1 each test is a client of its own.
    const env = { UPDATES_URL: 'off', ...(stands ? {} : { TRUSTED_PROXIES: '127.0.0.1' }) };
    expect((await stack.start([], { env })).code).toBe(0);
  });

  it('names webadmin with its groups, in headers of an answer without a body', async () => {
    for (const method of ['GET', 'HEAD']) {
      const answer = await verify('?role=admin', ...webadmin(), method);
      expect([answer.status, answer.headers.get('remote-user'), answer.headers.get('content-length')]).toEqual([
        200,
        'webadmin',
        '0',
      ]);
      expect(answer.headers.get('remote-groups')?.split(',')).toContain('core_ROLE_ADMIN');
    }
  });

  it('takes an app password on the core base alone, where it names nobody', async () => {
    const { pk } = await inProvider<{ pk: number }>('users/', { username: ADA, name: 'Ada' });
    const given = { identifier: `code-of-${ADA}`, user: pk, intent: 'app_password', expiring: false };
    await inProvider('tokens/', given);
    const headers = { authorization: `Bearer ${secretsOf(stack)['IDENTITY_TOKEN']}` };
    const url = `http://127.0.0.1:${9000 + stack.offset}/api/v3/core/tokens/code-of-${ADA}/view_key/`;
    const { key } = (await (await fetch(url, { headers })).json()) as { key: string };
    const answer = await verify('?base=core', ADA, key);
    expect([answer.status, answer.headers.get('remote-user'), answer.headers.get('remote-groups')]).toEqual([
      200,
      '',
      '',
    ]);
    expect((await verify('', ADA, key)).status).toBe(401);
  });

  it.skipIf(stands)(
    'locks a client of the proxy out for every door, and an administrator lets it in again',
    async () => {
      const client = '2001:db8:7:7::5';
      const status = async (path: string, password: string, address: string): Promise<number> => {
        const headers = { authorization: basic('webadmin', password), 'x-forwarded-for': address };
        return (await fetch(`${stack.file().api}${path}`, { headers })).status;
      };
      const [, password] = webadmin();
      const guesses = Array.from({ length: 30 }, (_, count) => status('/auth/verify', `guess ${count}`, client));
      expect((await Promise.all(guesses)).filter((each) => each === 401)).toHaveLength(10);
      expect([await status('/auth/verify', password, client), await status('/api/health', password, client)]).toEqual([
        429, 429,
      ]);
      const headers = { authorization: basic('webadmin', password) };
      const lockouts = `${stack.file().api}/api/lockouts`;
      expect(await (await fetch(lockouts, { headers })).json()).toMatchObject({
        results: [{ address: '2001:db8:7:7::/64', failures: 10 }],
      });
      const release = { method: 'DELETE', headers };
      expect((await fetch(`${lockouts}/${encodeURIComponent('2001:db8:7:7::/64')}`, release)).status).toBe(204);
      expect(await status('/auth/verify', password, client)).toBe(200);
      expect((await fetch(`${lockouts}/${encodeURIComponent(client)}`, release)).status).toBe(404);
    },
  );
});
