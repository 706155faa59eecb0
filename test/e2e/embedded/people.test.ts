// People of a running stack: what the API does to them, seen by an LDAP client and by the people
// themselves.

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { eventually, newStack, query, type TestStack } from './embedded.ts';
import { bindsAt } from './ldap-bind.ts';
import { RUN } from './running-stack.ts';

let stack: TestStack;
const GHOSTS = [`ghost-1${RUN}`, `Ghost-2${RUN}`];
const [ADA, BLUE] = [`Ada${RUN}`, `blue${RUN}`];

interface User {
  id: number;
  username: string;
  is_active: boolean;
  role: string;
  groups: string[];
  app_expires: number | null;
}

async function ask(method: string, path: string, body?: unknown, authorization?: string): Promise<Response> {
  const { username, password } = stack.file().webadmin;
  const headers = {
    authorization: authorization ?? basic(username, password),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  return fetch(`${stack.file().api}${path}`, { method, headers, ...sent });
}

async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await ask(method, path, body);
  expect([method, path, response.ok, response.ok ? '' : await response.clone().text()]).toEqual([
    method,
    path,
    true,
    '',
  ]);
  return (await response.json()) as T;
}

async function newUser(username: string, password: string, more: object = {}): Promise<User> {
  const user = await json<User>('POST', '/api/users', { username: `${username}${RUN}`, name: username, ...more });
  expect((await ask('POST', `/api/users/${user.id}/password`, { password })).status).toBe(204);
  return user;
}

const binds = (username: string, password: string): Promise<boolean> => bindsAt(stack, `${username}${RUN}`, password);

const meStatus = async (username: string, password: string): Promise<number> =>
  (await ask('GET', '/api/me', undefined, basic(`${username}${RUN}`, password))).status;

const stateOf = async (id: number): Promise<User> => json<User>('GET', `/api/users/${id}`);

describe('people of a running stack', () => {
  beforeAll(async () => {
    stack = await newStack();
    const env = { MON_USER_EXPIRY_CHECK_INTERVAL: '1', USERS_HIDDEN_PREFIXES: 'svc_,adm_,ak-outpost-,akadmin,ghost-' };
    expect((await stack.start([], { env })).code).toBe(0);
  });

  it('come in with the password that was set, everywhere, and with none before', async () => {
    await json('POST', '/api/groups', { name: BLUE });
    const user = await json<User>('POST', '/api/users', { username: ADA, name: 'Ada Ö.', groups: [BLUE] });
    expect(await binds('Ada', 'ada has a password')).toBe(false);
    expect((await ask('POST', `/api/users/${user.id}/password`, { password: 'ada has a password' })).status).toBe(204);
    expect(await binds('ada', 'ada has a password')).toBe(true);
    const me = await ask('GET', '/api/me', undefined, basic(`ada${RUN}`, 'ada has a password'));
    expect(await me.json()).toMatchObject({ id: user.id, groups: [`core_${BLUE}`], role: 'none' });
  });

  it('that are deactivated are refused by LDAP and by the API at once, also who came in a moment ago', async () => {
    const { id } = await newUser('bob', 'bob has a password');
    expect([await binds('bob', 'bob has a password'), await meStatus('bob', 'bob has a password')]).toEqual([
      true,
      200,
    ]);
    expect(await json<User>('DELETE', `/api/users/${id}`)).toMatchObject({ is_active: false });
    expect([await meStatus('bob', 'bob has a password'), await binds('bob', 'bob has a password')]).toEqual([
      401,
      false,
    ]);
    await json<User>('PATCH', `/api/users/${id}`, { is_active: true });
    expect([await meStatus('bob', 'bob has a password'), await binds('bob', 'bob has a password')]).toEqual([
      200,
      true,
    ]);
  });

  it('change their own password, and the old one is nothing any more', async () => {
    await newUser('eve', 'eve has a password');
    const change = { current_password: 'eve has a password', password: 'eve has another one' };
    const answer = await ask('POST', '/api/me/password', change, basic(`eve${RUN}`, 'eve has a password'));
    expect(answer.status).toBe(204);
    expect([await meStatus('eve', 'eve has a password'), await meStatus('eve', 'eve has another one')]).toEqual([
      401, 200,
    ]);
  });

  it('are given a role that counts at once, and lose it at once', async () => {
    const { id } = await newUser('finn', 'finn has a password');
    const reads = async (): Promise<number> =>
      (await ask('GET', '/api/users', undefined, basic(`finn${RUN}`, 'finn has a password'))).status;
    expect(await reads()).toBe(403);
    await json('PATCH', `/api/users/${id}`, { role: 'viewer' });
    expect(await reads()).toBe(200);
    await json('PATCH', `/api/users/${id}`, { role: 'none' });
    expect(await reads()).toBe(403);
  });

  it('expire, as often as MON_USER_EXPIRY_CHECK_INTERVAL says', async () => {
    const soon = new Date(Date.now() + 2_500).toISOString();
    const { id } = await newUser('gus', 'gus has a password', { expires_at: soon });
    expect(await binds('gus', 'gus has a password')).toBe(true);
    await eventually('gus is deactivated', async () => !(await stateOf(id)).is_active, 15_000);
    expect(await binds('gus', 'gus has a password')).toBe(false);
    expect(await meStatus('gus', 'gus has a password')).toBe(401);
    expect((await ask('PATCH', `/api/users/${id}`, { is_active: true })).status).toBe(409);
  });

  it('with a hidden prefix are shown only when they are asked for, and page by page nobody is missing', async () => {
    const identity = `http://127.0.0.1:${9000 + stack.offset}`;
    expect((await ask('POST', '/api/users', { username: 'Ghost-1', name: 'x' })).status).toBe(422);
    for (const username of [...GHOSTS, `aaa${RUN}`]) await newAccount(identity, username);
    const names = async (path: string): Promise<string[]> =>
      (await json<{ results: User[] }>('GET', path)).results.map(({ username }) => username);
    const all = await names('/api/users?page_size=200');
    expect(all).toEqual(expect.arrayContaining([ADA, `aaa${RUN}`, 'webadmin']));
    expect(all.filter((name) => /^(ghost-|svc_|adm_|ak)/i.test(name))).toEqual([]);
    const pages = [];
    for (let page = 1; page <= all.length; page += 1)
      pages.push(...(await names(`/api/users?page_size=2&page=${page}`)));
    expect(pages).toEqual(all);
    expect(await names('/api/users?page_size=200&include=hidden')).toEqual(
      expect.arrayContaining([...GHOSTS, 'akadmin', 'svc_api', 'adm_ldapservice']),
    );
  });

  it('have every change in the audit log, with its outcome and without a password', async () => {
    const rows = await query<{ text: string; action: string; phase: string; result: string | null }>(
      stack.file().state_database,
      "SELECT row_to_json(a)::text AS text, action, phase, result FROM audit_record AS a WHERE action LIKE 'user.%'",
    );
    const text = rows.map((row) => row.text).join('\n');
    for (const action of ['user.create', 'user.password', 'user.deactivate', 'user.update', 'user.expire']) {
      const of = rows.filter((row) => row.action === action);
      const intents = of.filter(({ phase }) => phase === 'intent').length;
      expect([action, of.filter(({ result }) => result === 'ok').length]).toEqual([action, intents]);
      expect(intents).toBeGreaterThan(0);
    }
    expect(text).not.toMatch(/ha[sd] a/);
  });
});

/** At the provider itself, past our rules for names. */
async function newAccount(identity: string, username: string): Promise<void> {
  const secrets = JSON.parse(readFileSync(`${stack.data}/secrets.json`, 'utf8')) as Record<string, string>;
  const answer = await fetch(`${identity}/api/v3/core/users/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secrets['IDENTITY_TOKEN'] ?? ''}`, 'content-type': 'application/json' },
    body: JSON.stringify({ username, name: username }),
  });
  expect(answer.status).toBe(201);
}
