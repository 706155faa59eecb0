// The identity provider inside a running stack: what a start makes of it, who gets in, and what
// health says.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModuleBody } from '../../health/fake-health-body.ts';
import { basic } from '../../http/fake-deps.ts';
import { canaryHasRun } from './canary-run.ts';
import { eventually, newStack, query, stop, type TestStack } from './embedded.ts';
import { hasLdapTools, ldapSearch, ldapWhoAmI } from './ldap-tools.ts';

const OWN = ['adm_ldapservice', 'akadmin', 'svc_api', 'svc_canary', 'svc_nodered', 'svc_probe', 'webadmin'];
/** The first three failures in a row come soon. */
const OFTEN = { MON_IDENTITY_INTERVAL: '1' };
let stack: TestStack;

const secrets = (): Record<string, string> =>
  JSON.parse(readFileSync(join(stack.data, 'secrets.json'), 'utf8')) as Record<string, string>;
const identityPort = (): number => 9000 + stack.offset;
const userDn = (name: string, base = stack.file().ldap.base_dn): string => `cn=${name},ou=users,${base}`;
const service = () => ({ dn: userDn('adm_ldapservice'), password: secrets()['LDAP_BIND_PASSWORD'] ?? '' });

/** Asks the provider's API as management does. */
async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${secrets()['IDENTITY_TOKEN']}`, 'content-type': 'application/json' };
  return fetch(`http://127.0.0.1:${identityPort()}/api/v3${path}`, { ...init, headers });
}

async function results<T>(path: string): Promise<T[]> {
  return ((await (await ask(path)).json()) as { results: T[] }).results;
}

async function live(): Promise<ModuleBody> {
  const { api, webadmin } = stack.file();
  const headers = { authorization: basic(webadmin.username, webadmin.password) };
  return (await (await fetch(`${api}/api/health/identity`, { headers })).json()) as ModuleBody;
}

/** The provider's own database, as its owner. */
function identityDatabase(): string {
  const { port } = new URL(stack.file().database);
  return `postgres://identity:${secrets()['IDENTITY_DB_PASSWORD']}@127.0.0.1:${port}/identity`;
}

/** Every row of every table of the provider, but for when somebody signed in last. */
async function everything(): Promise<string> {
  const tables = await query<{ name: string }>(
    identityDatabase(),
    'SELECT relname AS name FROM pg_stat_user_tables ORDER BY relname',
  );
  const rows = await Promise.all(
    tables.map(({ name }) =>
      query(identityDatabase(), `SELECT (to_jsonb(t) - 'last_login')::text AS row FROM ${name} AS t ORDER BY 1`),
    ),
  );
  return JSON.stringify([tables, rows]);
}

const lastReady = (): { changes: string[] } => {
  const lines = readFileSync(join(stack.data, 'logs/management.log'), 'utf8').trim().split('\n');
  const ready = lines.filter((line) => line.includes('"identity.ready"'));
  return JSON.parse(ready.at(-1) ?? '{}') as { changes: string[] };
};

beforeAll(async () => {
  stack = await newStack();
  const { code, output } = await stack.start([], { env: OFTEN });
  expect(output).toMatch(/identity +identity provider on 127\.0\.0\.1:\d+, LDAP on 127\.0\.0\.1:\d+/);
  expect(code).toBe(0);
});
afterAll(() => stop(stack.data));

describe('a start', () => {
  it('makes the accounts and groups of our own, and says so', async () => {
    const users = await results<{ username: string; is_active: boolean; type: string }>('/core/users/?page_size=100');
    expect(users.map(({ username }) => username).toSorted()).toEqual(OWN);
    expect(users.every(({ is_active }) => is_active)).toBe(true);
    const groups = await results<{ name: string; users_obj: { username: string }[] }>('/core/groups/');
    const named = Object.fromEntries(
      groups.map(({ name, users_obj }) => [name, users_obj.map(({ username }) => username)]),
    );
    expect(named).toMatchObject({ core_ROLE_ADMIN: ['webadmin'], stack_admin: [], stack_viewer: [] });
    expect(lastReady().changes).toContain('set the password of webadmin to the one in the settings');
  });

  it('gives the provider memory for the passwords that are hashed at once, not for each of its threads', async () => {
    const [account] = await results<{ pk: number }>('/core/users/?username=svc_nodered');
    const body = JSON.stringify({ password: 'hashed again and again' });
    const set = async () => (await ask(`/core/users/${account?.pk}/set_password/`, { method: 'POST', body })).status;
    const statuses = await Promise.all(Array.from({ length: 64 }, set));
    expect(new Set(statuses)).toEqual(new Set([204]));
    const pid = stack.file().pids.find(({ role }) => role === 'identity')?.pid ?? 0;
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    expect(Number(kib) / 1024).toBeLessThan(200);
  });

  it('that finds everything in order changes nothing', async () => {
    await canaryHasRun(stack);
    const before = await everything();
    await stop(stack.data);
    const since = new Date();
    expect((await stack.start([], { env: OFTEN })).code).toBe(0);
    await canaryHasRun(stack, since);
    expect(await everything()).toBe(before);
    expect(lastReady().changes).toEqual([]);
  });

  it('brings back what was deleted', async () => {
    const [account] = await results<{ pk: number }>('/core/users/?username=svc_nodered');
    const [group] = await results<{ pk: string }>('/core/groups/?name=stack_viewer');
    const [admin] = await results<{ pk: number }>('/core/users/?username=akadmin');
    expect((await ask(`/core/users/${account?.pk}/`, { method: 'DELETE' })).status).toBe(204);
    expect((await ask(`/core/groups/${group?.pk}/`, { method: 'DELETE' })).status).toBe(204);
    expect((await ask(`/core/users/${admin?.pk}/`, { method: 'DELETE' })).status).toBe(204);
    await stop(stack.data);
    expect((await stack.start([], { env: OFTEN })).code).toBe(0);
    expect(lastReady().changes).toEqual(['created group stack_viewer', 'created account svc_nodered']);
    const users = await results<{ username: string }>('/core/users/?page_size=100');
    expect(users.map(({ username }) => username).toSorted()).toEqual(OWN);
  });

  it('names the groups as the settings do, and lets a changed password of the settings in', async () => {
    await stop(stack.data);
    const env = {
      ...OFTEN,
      ADMIN_GROUP: 'Chiefs',
      VIEWER_GROUP: 'Crew',
      CORE_WEBADMIN_PASSWORD: 'a new one of the settings',
    };
    expect((await stack.start([], { env })).code).toBe(0);
    expect(lastReady().changes).toEqual([
      'created group Chiefs',
      'created group Crew',
      'set the password of webadmin to the one in the settings',
    ]);
    await stop(stack.data);
    expect((await stack.start([], { env: OFTEN })).code).toBe(0);
    expect(lastReady().changes).toEqual(['set the password of webadmin to the one in the settings']);
  });

  it('follows the password of the service account, also one that was changed behind its back', async () => {
    const [account] = await results<{ pk: number }>('/core/users/?username=adm_ldapservice');
    const body = JSON.stringify({ password: 'somebody changed this' });
    expect((await ask(`/core/users/${account?.pk}/set_password/`, { method: 'POST', body })).status).toBe(204);
    expect((await live()).message).toMatch(/adm_ldapservice/);
    await stop(stack.data);
    expect((await stack.start([], { env: OFTEN })).code).toBe(0);
    expect(lastReady().changes).toEqual(['set the password of adm_ldapservice to the one in the settings']);
    expect((await live()).status).toBe('ok');
  });
});

describe.skipIf(!hasLdapTools)('real LDAP clients', () => {
  it('are let in as webadmin in both bases, and see the own entry', async () => {
    const { ldap, webadmin } = stack.file();
    for (const base of [ldap.base_dn, 'DC=web,DC=holdfast']) {
      const binder = { dn: userDn('webadmin', base), password: webadmin.password };
      expect(await ldapWhoAmI(ldap.url, binder)).toEqual({ code: 0, output: `dn:${userDn('webadmin', base)}\n` });
      const { output } = await ldapSearch(ldap.url, binder, [
        '-b',
        binder.dn,
        '-s',
        'base',
        '(objectClass=*)',
        'memberOf',
      ]);
      expect(output).toContain(`memberOf: cn=core_ROLE_ADMIN,ou=groups,${base}`);
    }
  });

  it('see every account as the service account, and none of its secrets', async () => {
    const { ldap } = stack.file();
    const { output } = await ldapSearch(ldap.url, service(), ['-b', `ou=users,${ldap.base_dn}`, '(objectClass=user)']);
    const found = [...output.matchAll(/^cn: (.*)$/gm)].map((match) => match[1] ?? '');
    expect(found.toSorted((a, b) => a.localeCompare(b))).toEqual(OWN);
    for (const secret of Object.values(secrets())) expect(output).not.toContain(secret);
    expect(output).not.toMatch(/argon2|password_hash/i);
  });

  it('are refused as an account without a password, and without any', async () => {
    const { ldap } = stack.file();
    expect((await ldapWhoAmI(ldap.url, { dn: userDn('svc_api'), password: 'anything' })).code).toBe(49);
    expect((await ldapWhoAmI(ldap.url, { dn: '', password: '' })).code).toBe(50);
  });
});

describe('the process of the provider', () => {
  it('comes back when it dies, and health heals without a restart', async () => {
    const pid = stack.pid('identity');
    process.kill(pid, 'SIGKILL');
    await eventually('another process', () => ![0, pid].includes(stack.pid('identity')), 10_000);
    await eventually('health is ok', async () => (await live()).status === 'ok', 15_000);
  });

  it('has no secret in its command line, its log, or the logs of others', async () => {
    const line = readFileSync(`/proc/${stack.pid('identity')}/cmdline`, 'utf8');
    const logs = ['identity', 'management', 'supervisor'].map((name) =>
      readFileSync(join(stack.data, `logs/${name}.log`), 'utf8'),
    );
    for (const secret of Object.values(secrets()))
      for (const text of [line, ...logs]) expect(text).not.toContain(secret);
  });

  it('keeps its tables in a database that no other role may open', async () => {
    const { database, state_database: state } = stack.file();
    for (const other of [database, state]) {
      const url = new URL(other);
      url.pathname = '/identity';
      await expect(query(url.href, 'SELECT 1')).rejects.toThrow(/permission denied/);
    }
  });
});

describe('an outage', () => {
  it('"directory up but empty" turns identity critical', async () => {
    await query(identityDatabase(), "DELETE FROM user_group WHERE name LIKE 'core%'");
    const first = await live();
    expect(first.message).toMatch(/the directory answers, but its core base has no group core_ROLE_ADMIN/);
    await eventually('three failures in a row', async () => (await live()).status === 'critical', 15_000);
  });
});
