// Every variable is read and changes behaviour.

import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { composeObstacle, ComposeRoot } from '../../../packages/setup/test/compose.ts';
import { SETTING_NAMES, type SettingName } from '../../../shared/settings/table.ts';
import { sessionOf } from '../browser/house.ts';
import { basic } from '../../http/fake-deps.ts';
import { alertBehaviours } from './alert-settings.ts';
import { backupBehaviours } from './backup-settings.ts';
import { CLUSTER_BEHAVIOURS } from './cluster-settings.ts';
import { CONTAINER_BEHAVIOURS } from './container-settings.ts';
import { databaseSecretBehaviours } from './database-secret-settings.ts';
import {
  answersPing,
  eventually,
  newStack,
  outcomeOf,
  query,
  run,
  secretsOf,
  stop,
  type TestStack,
} from './embedded.ts';
import { bindsAt } from './ldap-bind.ts';
import { healthBehaviours, UNCHECKED_ADDRESS } from './health-settings.ts';
import { mapBehaviours } from './map-settings.ts';
import { healthOf, manageAlone, managed, portalBeside } from './managed.ts';
import { relayBehaviours } from './relay-settings.ts';
import { RETENTION_BEHAVIOURS } from './retention-settings.ts';
import { streamBehaviours, THINNING } from './stream-settings.ts';
import { UPDATE_BEHAVIOURS } from './update-settings.ts';
import { vacuumBehaviours } from './vacuum-settings.ts';

const noCompose = composeObstacle();
let stack: TestStack;
let other: TestStack;
const place = mkdtempSync(join(tmpdir(), 'holdfast-settings-'));

const manage = (env: Record<string, string>, use: (port: number) => Promise<void>): Promise<void> =>
  manageAlone({ DATABASE_URL: other.file().state_database, ...env }, use);

/** A process beside `other`, which knows its people, its sessions and its databases. */
function beside(): { stack: TestStack; env: Record<string, string> } {
  const { state_database: DATABASE_URL, database: CORE_DATABASE_URL, ldap } = other.file();
  const { AUDIT_KEY = '', SESSION_KEY = '', LDAP_BIND_PASSWORD = '' } = secretsOf(other);
  const directory = { LDAP_URL: ldap.url, LDAP_BASE_DN: ldap.base_dn, LDAP_BIND_PASSWORD };
  return { stack: other, env: { DATABASE_URL, CORE_DATABASE_URL, AUDIT_KEY, SESSION_KEY, ...directory } };
}

/** Settings of what health looks at, all of which answers, but no container runtime. */
function reachable() {
  const { core, database } = other.file();
  return {
    CORE_API_URL: core.api,
    CORE_ENROLLMENT_URL: core.enrollment,
    CORE_STREAMING_URL: core.streaming,
    CORE_DATA_DIR: join(other.data, 'core'),
    CORE_DATABASE_URL: database,
    IDENTITY_URL: `http://127.0.0.1:${9000 + stack.offset}`,
    LDAP_URL: stack.file().ldap.url,
    LDAP_BIND_PASSWORD: ENV.LDAP_BIND_PASSWORD,
    LDAP_BASE_DN: ENV.LDAP_BASE_DN,
    LDAP_WEB_BASE_DN: ENV.LDAP_WEB_BASE_DN,
    CONTAINER_RUNTIME_URL: 'unix:///nowhere/docker.sock',
    SERVER_ADDRESS: UNCHECKED_ADDRESS,
  };
}

const show = async (name: string): Promise<string> => {
  const [row] = await query<{ value: string }>(stack.file().database, `SELECT current_setting('${name}') AS value`);
  return row?.value ?? '';
};

const statusWith = async (authorization: string, path: string): Promise<number> =>
  (await fetch(`${stack.file().api}${path}`, { headers: { authorization } })).status;

const ENV = {
  DB_AUTOVACUUM_SCALE_FACTOR: '0.31',
  DB_AUTOVACUUM_COST_LIMIT: '432',
  DB_MAINTENANCE_WORK_MEM: '77MB',
  SERVER_ADDRESS: 'cot.example.net',
  CORE_DB_PASSWORD: 'core pass/word@1',
  CORE_READER_PASSWORD: 'reader pass?word%6',
  APP_DB_PASSWORD: 'app pass:word#2',
  IDENTITY_DB_PASSWORD: 'identity pass&word+7',
  FLOWS_DB_PASSWORD: 'flows pass=word;8',
  IDENTITY_SECRET_KEY: 'key-of-the-identity-provider-of-this-test',
  CORE_WEBADMIN_PASSWORD: 'admin password 3',
  METRICS_TOKEN: 'metrics-token-of-this-test',
  LDAP_BIND_PASSWORD: 'bind password 4',
  IDENTITY_TOKEN: 'identity-token-of-this-test',
  LDAP_BASE_DN: 'dc=rescue,dc=example',
  LDAP_WEB_BASE_DN: 'o=people',
  ADMIN_GROUP: 'Chiefs',
  VIEWER_GROUP: 'Crew',
  USERS_HIDDEN_PREFIXES: 'web',
  MAP_TILE_URL: 'https://tiles.example.org/{z}/{x}/{y}.png',
  CORE_ENROLLMENT_PORT: '8441',
  ENROLLMENT_TTL_MINUTES: '2000',
  KEEP_CLIENT_KEYS: 'false',
  STREAM_THINNING: THINNING,
};
const binds = (username: string, base: string, password: string): Promise<boolean> =>
  bindsAt(stack, username, password, base);

/** Of the only user that this stack shows. */
async function enrollmentOf<T>(method: string): Promise<T> {
  const headers = { authorization: basic('webadmin', ENV.CORE_WEBADMIN_PASSWORD) };
  const ask = async (path: string, how = 'GET'): Promise<unknown> =>
    (await fetch(`${stack.file().api}${path}`, { method: how, headers })).json();
  const { results } = (await ask('/api/users')) as { results: { id: number }[] };
  return (await ask(`/api/users/${results[0]?.id}/enrollment`, method)) as T;
}
async function groupNames(): Promise<string[]> {
  const headers = { authorization: `Bearer ${ENV.IDENTITY_TOKEN}` };
  const answer = await fetch(`http://127.0.0.1:${9000 + stack.offset}/api/v3/core/groups/`, { headers });
  return ((await answer.json()) as { results: { name: string }[] }).results.map(({ name }) => name);
}

const BEHAVIOURS: Partial<Record<SettingName, () => Promise<void>>> = {
  ...alertBehaviours(beside),
  ...CLUSTER_BEHAVIOURS,
  ...RETENTION_BEHAVIOURS,
  ...UPDATE_BEHAVIOURS,
  ...backupBehaviours(() => other),
  ...healthBehaviours(reachable),
  ...vacuumBehaviours(beside),
  ...relayBehaviours(beside),
  ...streamBehaviours(() => stack, ENV.METRICS_TOKEN),
  COMPOSE_FILE: async () => {
    const root = new ComposeRoot();
    try {
      expect(root.setUp(['--light', '--address', 'cot.example.org']).stderr).toBe('');
      const services = (): string[] => root.compose(['config', '--services']).stdout.trim().split('\n');
      root.layer(['base', 'light']);
      expect(services()).toEqual(expect.not.arrayContaining(['authentik-server', 'container-proxy']));
      root.layer(['base', 'runtime']);
      expect(services()).toEqual(expect.arrayContaining(['authentik-server', 'container-proxy']));
    } finally {
      root.remove();
    }
  },
  ...databaseSecretBehaviours(() => stack, ENV),
  DB_AUTOVACUUM_SCALE_FACTOR: async () => expect(await show('autovacuum_vacuum_scale_factor')).toBe('0.31'),
  DB_AUTOVACUUM_COST_LIMIT: async () => expect(await show('autovacuum_vacuum_cost_limit')).toBe('432'),
  DB_MAINTENANCE_WORK_MEM: async () => expect(await show('maintenance_work_mem')).toBe('77MB'),
  SERVER_ADDRESS: async () => {
    const certificate = new X509Certificate(readFileSync(join(stack.data, 'core/certs/files/takserver.pem')));
    expect(certificate.checkHost('cot.example.net')).toBe('cot.example.net');
  },
  CORE_WEBADMIN_PASSWORD: async () => {
    expect(await statusWith(basic('webadmin', ENV.CORE_WEBADMIN_PASSWORD), '/api/settings')).toBe(200);
    expect(await statusWith(basic('webadmin', 'something else'), '/api/settings')).toBe(401);
  },
  METRICS_TOKEN: async () => {
    expect(await statusWith(`Bearer ${ENV.METRICS_TOKEN}`, '/api/health')).toBe(200);
    expect(await statusWith('Bearer metrics-token-of-that-test', '/api/health')).toBe(401);
  },
  TRUSTED_PROXIES: async () => {
    const CORE_WEBADMIN_PASSWORD = ENV.CORE_WEBADMIN_PASSWORD;
    /** Ten wrong passwords of one client, then the right one of another behind the same proxy. */
    const statusOfOther = async (env: Record<string, string>): Promise<number> => {
      let status = 0;
      await manage({ CORE_WEBADMIN_PASSWORD, ...env }, async (port) => {
        await eventually('it answers', () => answersPing(`http://127.0.0.1:${port}`), 60_000);
        const ask = async (password: string, client: string): Promise<number> => {
          const headers = { authorization: basic('webadmin', password), 'x-forwarded-for': client };
          return (await fetch(`http://127.0.0.1:${port}/api/health`, { headers })).status;
        };
        for (let count = 0; count < 10; count++) await ask('something else', '198.51.100.1');
        expect(await ask(CORE_WEBADMIN_PASSWORD, '198.51.100.1')).toBe(429);
        status = await ask(CORE_WEBADMIN_PASSWORD, '198.51.100.2');
      });
      return status;
    };
    expect(await statusOfOther({})).toBe(429);
    // Every process over the database refuses this address now.
    const released = `UPDATE sign_in_failures SET failed_at = '{}', locked_until = NULL, changed_at = now()`;
    await query(other.file().state_database, released);
    expect(await statusOfOther({ TRUSTED_PROXIES: '127.0.0.0/8' })).toBe(200);
  },
  SESSION_KEY: async () => {
    const { api, webadmin } = other.file();
    const cookie = `holdfast=${await sessionOf(api, webadmin)}`;
    const statusUnder = async (env: Record<string, string>): Promise<number> =>
      (await fetch(`http://127.0.0.1:${await managed(env)}/api/sessions`, { headers: { cookie } })).status;
    const { env } = beside();
    expect([await statusUnder(env), await statusUnder({ ...env, SESSION_KEY: `${env['SESSION_KEY']}0` })]).toEqual([
      200, 401,
    ]);
  },
  DATABASE_URL: async () => {
    const before = await query(other.file().state_database, 'SELECT count(*)::int AS n FROM stack_start');
    const started = async (): Promise<boolean> => {
      const after = await query(other.file().state_database, 'SELECT count(*)::int AS n FROM stack_start');
      return JSON.stringify(after) !== JSON.stringify(before);
    };
    await manage({}, () => eventually('the start is recorded there', started, 60_000));
  },
  LISTEN_ADDRESS: () =>
    manage({ LISTEN_ADDRESS: '127.0.0.3' }, async (port) => {
      await eventually('it answers there', () => answersPing(`http://127.0.0.3:${port}`), 60_000);
      expect(await answersPing(`http://127.0.0.1:${port}`)).toBe(false);
    }),
  AUDIT_KEY: async () => {
    const DATABASE_URL = other.file().state_database;
    const key = 'key-of-the-audit-log-of-this-test-0123';
    await query(DATABASE_URL, 'TRUNCATE audit_record, audit_checkpoint');
    await manage({ AUDIT_KEY: key, METRICS_TOKEN: ENV.METRICS_TOKEN }, async (port) => {
      const headers = { authorization: `Bearer ${ENV.METRICS_TOKEN}` };
      const isRefused = async (): Promise<boolean> =>
        (await fetch(`http://127.0.0.1:${port}/api/settings`, { headers })).status === 403;
      await eventually('it answers', () => answersPing(`http://127.0.0.1:${port}`), 60_000);
      expect(await isRefused()).toBe(true);
      const isEntered = async (): Promise<boolean> =>
        (await query(DATABASE_URL, "SELECT FROM audit_record WHERE action = 'request.denied'")).length > 0;
      await eventually('the refusal is entered', isEntered, 60_000);
    });
    const verified = async (AUDIT_KEY: string) =>
      (await outcomeOf(run('audit.sh', ['verify', '--env', '/dev/null'], { env: { DATABASE_URL, AUDIT_KEY } }))).code;
    expect([await verified(key), await verified(`${key}.`)]).toEqual([0, 1]);
  },
  IDENTITY_TOKEN: async () => {
    const url = `http://127.0.0.1:${9000 + stack.offset}/api/v3/core/users/me/`;
    const status = async (token: string) =>
      (await fetch(url, { headers: { authorization: `Bearer ${token}` } })).status;
    expect([await status(ENV.IDENTITY_TOKEN), await status('identity-token-of-that-test')]).toEqual([200, 403]);
    expect((await healthOf(reachable(), 'identity')).data['api_error']).toMatch(/set IDENTITY_TOKEN/);
  },
  LDAP_BIND_PASSWORD: async () => {
    expect(await binds('adm_ldapservice', ENV.LDAP_BASE_DN, ENV.LDAP_BIND_PASSWORD)).toBe(true);
    expect(await binds('adm_ldapservice', ENV.LDAP_BASE_DN, 'bind password 5')).toBe(false);
  },
  LDAP_BASE_DN: async () => {
    expect(stack.file().ldap.base_dn).toBe(ENV.LDAP_BASE_DN);
    expect(await binds('webadmin', ENV.LDAP_BASE_DN, ENV.CORE_WEBADMIN_PASSWORD)).toBe(true);
    expect(await binds('webadmin', 'DC=core,DC=holdfast', ENV.CORE_WEBADMIN_PASSWORD)).toBe(false);
  },
  LDAP_WEB_BASE_DN: async () => {
    expect(await binds('webadmin', ENV.LDAP_WEB_BASE_DN, ENV.CORE_WEBADMIN_PASSWORD)).toBe(true);
    expect(await binds('webadmin', 'dc=web,dc=example', ENV.CORE_WEBADMIN_PASSWORD)).toBe(false);
  },
  ...mapBehaviours(() => ({ stack, other })),
  ADMIN_GROUP: async () => expect(await groupNames()).toContain(ENV.ADMIN_GROUP),
  VIEWER_GROUP: async () => expect(await groupNames()).toContain(ENV.VIEWER_GROUP),
  USERS_HIDDEN_PREFIXES: async () => {
    const of = async (each: TestStack): Promise<string[]> => {
      const { username, password } = each.file().webadmin;
      const authorization = basic(username, password);
      const answer = await fetch(`${each.file().api}/api/users`, { headers: { authorization } });
      return ((await answer.json()) as { results: { username: string }[] }).results.map((user) => user.username);
    };
    expect([await of(stack), await of(other)]).toEqual([['akadmin'], ['webadmin']]);
  },
  CORE_ENROLLMENT_PORT: async () => {
    const { checks, notes } = await enrollmentOf<{ checks: { stage: string }[]; notes: string[] }>('GET');
    expect([checks.length, notes]).toEqual([8, expect.arrayContaining([expect.stringMatching(/on port 8441 /)])]);
  },
  ENROLLMENT_TTL_MINUTES: async () => {
    const { expires_at: end } = await enrollmentOf<{ expires_at: string }>('POST');
    const minutes = (Date.parse(end) - Date.now()) / 60_000;
    expect([minutes > 1999, minutes <= 2000]).toEqual([true, true]);
  },
  KEEP_CLIENT_KEYS: async () => {
    /**
     * Whether a new certificate can be downloaded, also later, and whether the answer has the key.
     */
    const issuedAt = async (each: TestStack): Promise<unknown[]> => {
      const { username, password } = each.file().webadmin;
      const headers = { authorization: basic(username, password), 'content-type': 'application/json' };
      const certs = `${each.file().api}/api/ops/certs`;
      const users = await fetch(`${each.file().api}/api/users`, { headers });
      const { results } = (await users.json()) as { results: { username: string }[] };
      const body = JSON.stringify({ username: results[0]?.username, name: 'phone' });
      const answer = await fetch(certs, { method: 'POST', headers, body });
      const made = (await answer.json()) as { file: string; downloadable: boolean; p12_base64?: string };
      const download = await fetch(`${certs}/${encodeURIComponent(made.file)}/download`, { headers });
      return [answer.status, made.downloadable, typeof made.p12_base64, download.status];
    };
    expect(await issuedAt(other)).toEqual([201, true, 'undefined', 200]);
    expect(await issuedAt(stack)).toEqual([201, false, 'string', 409]);
  },
  MANAGEMENT_REPLICA: async () => {
    const data = join(place, 'of-two');
    mkdirSync(data, { recursive: true });
    await manage({ DATA_DIR: data, MANAGEMENT_REPLICA: '2' }, () =>
      eventually('its own socket', () => existsSync(join(data, 'operator-2.sock')), 60_000),
    );
    expect(existsSync(join(data, 'operator.sock'))).toBe(false);
  },
  API_PORT: async () => expect(await answersPing(`http://127.0.0.1:${await managed({})}`)).toBe(true),
  PORTAL_PORT: async () => {
    const port = await managed({});
    await eventually('it answers', () => answersPing(portalBeside(port)), 60_000);
  },
  LOG_DIR: async () => {
    mkdirSync(join(place, 'logs'), { recursive: true });
    writeFileSync(join(place, 'logs/mine.log'), 'one\ntwo\n');
    const { LDAP_BIND_PASSWORD, LDAP_BASE_DN, LDAP_WEB_BASE_DN } = ENV;
    const directory = { LDAP_URL: stack.file().ldap.url, LDAP_BIND_PASSWORD, LDAP_BASE_DN, LDAP_WEB_BASE_DN };
    await manage({ LOG_DIR: join(place, 'logs'), ...directory }, async (port) => {
      await eventually('it answers', () => answersPing(`http://127.0.0.1:${port}`), 60_000);
      const headers = { authorization: basic('webadmin', ENV.CORE_WEBADMIN_PASSWORD) };
      const answer = await fetch(`http://127.0.0.1:${port}/api/logs?name=mine&tail=1`, { headers });
      expect(await answer.json()).toEqual({ name: 'mine', lines: ['two'] });
    });
  },
};

describe('every setting', () => {
  beforeAll(async () => {
    stack = await newStack();
    other = await newStack();
    expect((await stack.start([], { env: ENV })).code).toBe(0);
    expect((await other.start()).code).toBe(0);
  });
  afterAll(async () => {
    await stop(stack.data);
    await stop(other.data);
    rmSync(place, { recursive: true, force: true });
  });

  it('has a behaviour below', () => {
    const named = [...Object.keys(BEHAVIOURS), ...Object.keys(CONTAINER_BEHAVIOURS)];
    expect(named.toSorted()).toEqual(SETTING_NAMES.toSorted());
  });

  const { COMPOSE_FILE: composeFile, ...behaviours } = BEHAVIOURS;
  for (const [name, behaves] of Object.entries(behaviours)) it(`${name} changes behaviour`, behaves);
  const requested = noCompose === undefined ? '' : ` (not asked, because ${noCompose})`;
  for (const [name, behaves] of Object.entries({ COMPOSE_FILE: composeFile, ...CONTAINER_BEHAVIOURS }))
    it.skipIf(noCompose !== undefined)(`${name} changes behaviour${requested}`, async () => behaves?.());

  it('is shown in force with its source', async () => {
    const headers = { authorization: basic('webadmin', ENV.CORE_WEBADMIN_PASSWORD) };
    const answer = await fetch(`${stack.file().api}/api/settings`, { headers });
    const text = await answer.text();
    const { settings } = JSON.parse(text) as { settings: { name: string; value: unknown; source: string }[] };
    const shown = Object.fromEntries(settings.map(({ name, value, source }) => [name, [value, source]]));
    expect(shown['DB_AUTOVACUUM_COST_LIMIT']).toEqual([432, 'environment']);
    expect(shown['API_PORT']).toEqual([8080 + stack.offset, 'command line']);
    expect(shown['PORTAL_PORT']).toEqual([3000 + stack.offset, 'command line']);
    expect(shown['CORE_RETENTION_UNIT']).toEqual(['days', 'stack']);
    expect(shown['LDAP_BIND_PASSWORD']).toEqual(['set', 'environment']);
    expect(shown['AUDIT_KEY']).toEqual(['set', 'generated']);
    expect(shown['DATABASE_URL']).toEqual(['set', 'stack']);
    for (const secret of [ENV.CORE_DB_PASSWORD, ENV.APP_DB_PASSWORD, ENV.CORE_WEBADMIN_PASSWORD, ENV.METRICS_TOKEN]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(encodeURIComponent(secret));
    }
  });
});
