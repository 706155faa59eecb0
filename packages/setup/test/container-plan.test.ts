// What a container of ours decides from its environment before anything is started.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { takeCoreHandover } from '@holdfast/core/handover';
import { takeIdentityHandover } from '@holdfast/identity/handover';
import { loadSettings, readHandover } from '../../../shared/settings/load.ts';
import { describeProblem } from '../../../shared/settings/setting.ts';
import { type ContainerPlan, planContainer, type Role, withoutOurs } from '../containers/plan.ts';
import { takeIdentitySetupHandover } from '../identity/handover.ts';

const home = process.cwd();
const LIGHT = {
  HOLDFAST_STACK: 'light',
  SERVER_ADDRESS: 'cot.example.org',
  DEPLOY_MODE: 'subdomain',
  CORE_DB_PASSWORD: 'core:pass',
  CORE_READER_PASSWORD: 'reader/pass',
  APP_DB_PASSWORD: 'app@pass',
  IDENTITY_DB_PASSWORD: 'identity#pass',
  IDENTITY_SECRET_KEY: 'key-of-the-identity-provider-of-a-test',
  IDENTITY_TOKEN: 'identity-token',
  IDENTITY_BOOTSTRAP_TOKEN: 'first-token-of-the-identity-provider-of-a-test',
  LDAP_BIND_PASSWORD: 'bind-password',
  CORE_WEBADMIN_PASSWORD: 'webadmin-password',
  AUDIT_KEY: '0f'.repeat(32),
  SESSION_KEY: 'f0'.repeat(32),
  BACKUP_TOKEN: 'token-of-the-backups-of-a-test',
};
type Variable = keyof typeof LIGHT;
const without = (...names: Variable[]): Record<string, string> =>
  Object.fromEntries(Object.entries(LIGHT).filter(([name]) => !names.some((each) => each === name)));

const problemsOf = (role: Role, environment: Record<string, string>) => {
  const plan = planContainer(home, role, environment);
  return Array.isArray(plan) ? plan : [];
};
const namesOf = (role: Role, environment: Record<string, string>): string[] =>
  problemsOf(role, environment).map(({ name }) => name);

function planOf(role: Role, environment: Record<string, string>): ContainerPlan {
  const plan = planContainer(home, role, environment);
  if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
  return plan;
}

function environmentOf(role: Role, environment: Record<string, string>): Record<string, string> {
  const plan = planOf(role, environment);
  return plan.role === 'database' ? {} : { ...plan.environment };
}

function databaseOf(environment: Record<string, string>) {
  const plan = planOf('database', environment);
  if (plan.role !== 'database') throw new Error(plan.role);
  return plan.database;
}

function managementOf(environment: Record<string, string>) {
  const handover = readHandover(environmentOf('management', environment));
  return { handover, ...loadSettings(handover.layers, handover.mode) };
}

/** What each role cannot do without. */
const NEEDED: Record<Exclude<Role, 'preflight'>, Variable[]> = {
  management: [
    'SERVER_ADDRESS',
    'DEPLOY_MODE',
    'CORE_DB_PASSWORD',
    'CORE_READER_PASSWORD',
    'APP_DB_PASSWORD',
    'IDENTITY_TOKEN',
    'LDAP_BIND_PASSWORD',
    'CORE_WEBADMIN_PASSWORD',
    'AUDIT_KEY',
    'SESSION_KEY',
  ],
  core: ['SERVER_ADDRESS', 'DEPLOY_MODE', 'CORE_DB_PASSWORD', 'LDAP_BIND_PASSWORD'],
  identity: ['IDENTITY_DB_PASSWORD', 'IDENTITY_SECRET_KEY', 'IDENTITY_TOKEN', 'LDAP_BIND_PASSWORD'],
  database: ['CORE_DB_PASSWORD', 'CORE_READER_PASSWORD', 'APP_DB_PASSWORD', 'IDENTITY_DB_PASSWORD'],
  configuration: [],
  'container-proxy': [],
  'release-files': [],
  'identity-setup': ['IDENTITY_BOOTSTRAP_TOKEN', 'IDENTITY_TOKEN'],
  'release-core': [],
  backup: ['CORE_DB_PASSWORD', 'APP_DB_PASSWORD', 'IDENTITY_DB_PASSWORD', 'BACKUP_TOKEN'],
};
/** What the image of a release has in it. */
const RELEASE_TREE = mkdtempSync(join(tmpdir(), 'holdfast-plan-'));
for (const [name, text] of Object.entries({ 'takserver.war': '', 'version.txt': '5.7-RELEASE-8\n' }))
  writeFileSync(join(RELEASE_TREE, name), text);
afterAll(() => rmSync(RELEASE_TREE, { recursive: true }));
const EVERY_DATABASE = { HOLDFAST_DATABASES: 'cot,holdfast,identity', HOLDFAST_RELEASE_TREE: RELEASE_TREE };

describe.each(Object.keys(NEEDED) as (keyof typeof NEEDED)[])('the role %s', (role) => {
  it('starts with exactly what it needs, and names everything that is missing at once, with a remedy', () => {
    const needed: Record<string, string> = { ...EVERY_DATABASE, HOLDFAST_STACK: 'light' };
    for (const name of NEEDED[role]) needed[name] = LIGHT[name];
    expect(namesOf(role, needed)).toEqual([]);
    const problems = problemsOf(role, { ...EVERY_DATABASE, HOLDFAST_STACK: 'light' });
    expect(problems.map(({ name }) => name).toSorted()).toEqual(NEEDED[role].toSorted());
    for (const { remedy } of problems) expect(remedy).toMatch(/^(?:set |run \.\/scripts\/setup\.sh)/);
  });

  it.each(NEEDED[role])('does not start without %s, which it names alone', (name) => {
    expect(namesOf(role, { ...EVERY_DATABASE, ...without(name) })).toEqual([name]);
    expect(namesOf(role, { ...EVERY_DATABASE, ...LIGHT, [name]: '  ' })).toEqual([name]);
  });

  it('says every wrong value at once, secrets without theirs', () => {
    const wrong = { CORE_DB_PASSWORD: 'pässword', LDAP_BIND_PASSWORD: 'two\nlines', HOLDFAST_STACK: 'heavy' };
    const problems = problemsOf(role, { ...EVERY_DATABASE, ...LIGHT, ...wrong });
    const secrets = (['CORE_DB_PASSWORD', 'LDAP_BIND_PASSWORD'] as const).filter((name) => NEEDED[role].includes(name));
    const names = new Set(problems.map(({ name }) => name));
    for (const name of [...secrets, 'HOLDFAST_STACK']) expect(names).toContain(name);
    const message = problems.map(describeProblem).join('\n');
    for (const secret of ['pässword', 'two', encodeURIComponent('pässword')]) expect(message).not.toContain(secret);
  });
});

it('subdomain mode is refused on an address, and on a name that no authority knows', () => {
  for (const role of ['management', 'core'] as const) {
    for (const SERVER_ADDRESS of ['192.0.2.7', '2001:db8::7', 'cot']) {
      expect(namesOf(role, { ...LIGHT, SERVER_ADDRESS })).toEqual(['SERVER_ADDRESS']);
      expect(namesOf(role, { ...LIGHT, SERVER_ADDRESS, DEPLOY_MODE: 'direct' })).toEqual([]);
    }
  }
  const [problem] = problemsOf('core', { ...LIGHT, SERVER_ADDRESS: '192.0.2.7' });
  expect(problem?.remedy).toMatch(/cot\.example\.org, or choose direct mode: DEPLOY_MODE=direct$/);
});

it('a time zone that there is not is refused by every role, not taken for UTC', () => {
  for (const role of ['management', 'core', 'configuration'] as const) {
    expect(problemsOf(role, { ...LIGHT, TZ: 'Europe/Wien' }).map(describeProblem)).toEqual([
      expect.stringMatching(
        /^TZ=Europe\/Wien: is not a known time zone \(UTC would be used\)\n {4}Remedy: .*TZ=Europe\/Vienna/,
      ),
    ]);
    for (const zone of ['Europe/Vienna', 'UTC', '']) expect(namesOf(role, { ...LIGHT, TZ: zone })).toEqual([]);
  }
});

describe('management in a container', () => {
  it('finds everything at the services of the light stack, its databases by encoded passwords', () => {
    const { handover, settings, sources } = managementOf({ ...LIGHT, COMPOSE_PROJECT_NAME: 'holdfast-test' });
    expect([handover.mode, handover.composeProject]).toEqual(['light', 'holdfast-test']);
    expect(settings.DATABASE_URL?.reveal()).toBe('postgres://holdfast:app%40pass@app-database:5432/holdfast');
    expect(settings.CORE_DATABASE_URL?.reveal()).toBe('postgres://holdfast_ro:reader%2Fpass@core-database:5432/cot');
    expect(settings.CORE_DATABASE_OWNER_URL?.reveal()).toBe('postgres://martiuser:core%3Apass@core-database:5432/cot');
    expect([settings.IDENTITY_URL, settings.LDAP_URL]).toEqual(['http://identity:9000', 'ldap://identity:3389']);
    expect([settings.CORE_RETENTION_UNIT, sources.CORE_RETENTION_UNIT]).toEqual(['days', 'stack']);
    expect([settings.LISTEN_ADDRESS, settings.CORE_DATA_DIR]).toEqual(['0.0.0.0', '/var/lib/holdfast/core']);
  });

  it('is sent elsewhere by a setting, and then needs no password of the part that it leaves', () => {
    const elsewhere = {
      DATABASE_URL: 'postgres://h:p@db.example.org/holdfast',
      CORE_DATABASE_URL: 'postgres://r:p@cot.example.org/cot',
      IDENTITY_URL: 'https://id.example.org',
    };
    const { settings } = managementOf({
      ...without('APP_DB_PASSWORD', 'CORE_READER_PASSWORD', 'CORE_DB_PASSWORD'),
      ...elsewhere,
    });
    expect(settings.DATABASE_URL?.reveal()).toBe(elsewhere.DATABASE_URL);
    expect([settings.CORE_DATABASE_OWNER_URL, settings.CORE_DATABASE_DIR]).toEqual([undefined, undefined]);
    expect(settings.IDENTITY_URL).toBe(elsewhere.IDENTITY_URL);
  });

  it('passes on overrides of thresholds and nothing that is no setting', () => {
    const { handover } = managementOf({ ...LIGHT, MON_TLS_WARNING: '29', PATH: '/bin', AWS_SECRET: 'of others' });
    const [first] = handover.layers;
    expect(first?.values['MON_TLS_WARNING']).toBe('29');
    expect(Object.keys(first?.values ?? {})).not.toEqual(expect.arrayContaining(['PATH']));
    expect(JSON.stringify(handover)).not.toContain('of others');
  });

  it('gives the CA of the core to the proxy, and its key in direct mode alone', () => {
    const given = (mode: string) => {
      const plan = planOf('management', { ...LIGHT, DEPLOY_MODE: mode });
      return plan.role === 'database' ? undefined : plan.proxy;
    };
    const places = { core: '/var/lib/holdfast/core', directory: '/var/lib/holdfast/proxy' };
    expect(given('direct')).toEqual({ ...places, withKey: true });
    expect(given('subdomain')).toEqual({ ...places, withKey: false });
  });

  it('counts days in the light stack, refuses seconds there, and asks for the unit where a release may be', () => {
    expect(namesOf('management', { ...LIGHT, CORE_RETENTION_UNIT: 'seconds' })).toEqual(['CORE_RETENTION_UNIT']);
    expect(namesOf('configuration', { ...LIGHT, CORE_RETENTION_UNIT: 'seconds' })).toEqual(['CORE_RETENTION_UNIT']);
    const release = { ...without('HOLDFAST_STACK'), COT_RETENTION_DAYS: '30' };
    expect(namesOf('configuration', release)).toEqual(['CORE_RETENTION_UNIT']);
    expect(namesOf('configuration', { ...release, CORE_RETENTION_UNIT: 'seconds' })).toEqual([]);
    const { settings } = managementOf(without('HOLDFAST_STACK'));
    expect([settings.IDENTITY_URL, settings.CORE_RETENTION_UNIT]).toEqual(['http://authentik-server:9000', undefined]);
  });
});

describe('the core in a container', () => {
  it('listens everywhere, by a certificate with the name of the server and those of its container', () => {
    const core = takeCoreHandover(environmentOf('core', { ...LIGHT, PUBLIC_ADDRESSES: '198.51.100.7' }));
    expect(core).toMatchObject({
      databaseUrl: 'postgres://martiuser:core%3Apass@core-database:5432/cot',
      addresses: ['0.0.0.0'],
      serverNames: ['cot.example.org', 'core', 'takserver', 'localhost', '127.0.0.1', '198.51.100.7'],
      ldap: { url: 'ldap://identity:3389', bindPassword: 'bind-password' },
      trustedProxies: [],
    });
    expect([core.apiPort, core.enrollmentPort, core.streamingPort]).toEqual([8443, 8446, 8089]);
  });
});

it('leaves the certificates of the proxy and the flow engine to the first management process', () => {
  const proxyOf = (environment: Record<string, string>): unknown => {
    const plan = planOf('management', { ...LIGHT, ...environment });
    return plan.role === 'database' ? undefined : plan.proxy;
  };
  expect(proxyOf({ MANAGEMENT_REPLICA: '2' })).toBeUndefined();
  expect(proxyOf({ MANAGEMENT_REPLICA: '1' })).toEqual(proxyOf({}));
  expect(proxyOf({})).toMatchObject({ directory: '/var/lib/holdfast/proxy' });
});

describe('a core node of several', () => {
  const NODE = { ...LIGHT, CORE_NODE: '2', NATS_URL: 'tls://nats:4222', NATS_PASSWORD: 'nats-password-1' };
  const handoverOf = (environment: Record<string, string>) =>
    takeCoreHandover(environmentOf('core', { ...NODE, ...environment }));

  it('has a name, files of its own beside those of all, and the names of all in the certificate', () => {
    const { cluster, directory, serverNames } = handoverOf({});
    expect(directory).toBe('/var/lib/holdfast/core');
    expect(cluster).toEqual({
      node: 'core-2',
      index: 1,
      directory: '/var/lib/holdfast/core/nodes/core-2',
      nats: {
        url: 'tls://nats:4222',
        username: 'core',
        password: 'nats-password-1',
        caFile: '/var/lib/holdfast/core/certs/files/ca.pem',
      },
    });
    expect(serverNames).toEqual(expect.arrayContaining(['core', 'core-2', 'core-9']));
    expect(serverNames).toEqual(handoverOf({ CORE_NODE: '1' }).serverNames);
  });

  it('issues the certificate of NATS when it is the first, and no other CA is named', () => {
    expect(handoverOf({ CORE_NODE: '1' }).cluster).toMatchObject({
      node: 'core',
      index: 0,
      nats: { certificateDirectory: '/var/lib/holdfast/nats' },
    });
    const { nats } = handoverOf({ CORE_NODE: '1', NATS_CA_FILE: '/etc/nats-ca/ca.pem' }).cluster ?? {};
    expect([nats?.caFile, nats?.certificateDirectory]).toEqual(['/etc/nats-ca/ca.pem', undefined]);
  });

  it('does not start with half of its settings, and says which is missing', () => {
    const { CORE_NODE, NATS_URL, NATS_PASSWORD } = NODE;
    expect(namesOf('core', { ...LIGHT, CORE_NODE })).toEqual(['NATS_URL', 'NATS_PASSWORD']);
    expect(namesOf('core', { ...LIGHT, CORE_NODE, NATS_URL })).toEqual(['NATS_PASSWORD']);
    expect(problemsOf('core', { ...LIGHT, NATS_URL, NATS_PASSWORD }).map(describeProblem)).toEqual([
      expect.stringMatching(
        /^CORE_NODE.*must be set, because NATS_URL is\n {4}Remedy: set CORE_NODE=1 .*remove NATS_URL/,
      ),
    ]);
    expect(namesOf('core', { ...LIGHT, NATS_CA_FILE: '/etc/nats-ca/ca.pem' })).toEqual(['CORE_NODE']);
    expect(namesOf('core', { ...LIGHT, NATS_PASSWORD })).toEqual([]);
    for (const wrong of ['0', '10', 'core-2'])
      expect(namesOf('core', { ...NODE, CORE_NODE: wrong })).toContain('CORE_NODE');
    expect(namesOf('core', { ...NODE, NATS_URL: 'nats://nats:4222' })).toContain('NATS_URL');
  });
});

it('gives the identity provider its own database and nothing of the others', () => {
  const environment = environmentOf('identity', LIGHT);
  expect(Object.keys(environment)).toEqual(['HOLDFAST_IDENTITY']);
  for (const name of ['CORE_DB_PASSWORD', 'APP_DB_PASSWORD', 'SESSION_KEY'] as const)
    expect(JSON.stringify(environment)).not.toContain(LIGHT[name]);
  expect(takeIdentityHandover(environment)).toMatchObject({
    databaseUrl: 'postgres://identity:identity%23pass@app-database:5432/identity',
    address: '0.0.0.0',
    httpPort: 9000,
    ldapPort: 3389,
    searchPassword: 'bind-password',
  });
});

describe('a database in a container', () => {
  it('keeps what HOLDFAST_DATABASES says, with the passwords of just that', () => {
    const core = databaseOf({ ...LIGHT, HOLDFAST_DATABASES: 'cot', DB_AUTOVACUUM_SCALE_FACTOR: '0.3' });
    expect(core).toMatchObject({
      directory: '/var/lib/holdfast/database',
      listen: '*',
      port: 5432,
      databases: ['cot'],
      tuning: { scaleFactor: 0.3, costLimit: 1000, maintenanceWorkMem: '256MB' },
    });
    expect(core.passwords).toEqual({ core: 'core:pass', reader: 'reader/pass' });
    const ours = databaseOf({ ...LIGHT, HOLDFAST_DATABASES: 'holdfast,identity' });
    expect(ours.passwords).toEqual({ app: 'app@pass', identity: 'identity#pass' });
  });

  it('refuses to start without that list, and with a name that it does not know', () => {
    expect(namesOf('database', LIGHT)).toEqual(['HOLDFAST_DATABASES']);
    expect(namesOf('database', { ...LIGHT, HOLDFAST_DATABASES: 'cot,postgres' })).toEqual(['HOLDFAST_DATABASES']);
  });
});

it('says each HOLDFAST_ variable that is wrong, whatever the role', () => {
  const wrong = {
    HOLDFAST_PORT_OFFSET: '60000',
    HOLDFAST_CORE_DATABASE: 'no port',
    HOLDFAST_DATABASE_DIR: 'relative',
    HOLDFAST_DATABASE_PORT: '0',
  };
  expect(namesOf('core', { ...LIGHT, ...wrong }).toSorted()).toEqual(Object.keys(wrong).toSorted());
});

it('leaves nothing of ours in the environment that children inherit', () => {
  const kept = withoutOurs({ ...LIGHT, HOLDFAST_DATABASES: 'cot', MON_TLS_WARNING: '7', TZ: 'UTC', PATH: '/bin' });
  expect(kept).toEqual({ TZ: 'UTC', PATH: '/bin' });
});

describe('the role identity-setup', () => {
  const { IDENTITY_BOOTSTRAP_TOKEN, IDENTITY_TOKEN } = LIGHT;
  const tokens = { IDENTITY_BOOTSTRAP_TOKEN, IDENTITY_TOKEN };

  it('asks authentik in its container, whatever else is redirected, and gives the outpost its key in its volume', () => {
    expect(takeIdentitySetupHandover(environmentOf('identity-setup', tokens))).toEqual({
      url: 'http://authentik-server:9000',
      bootstrapToken: IDENTITY_BOOTSTRAP_TOKEN,
      managementToken: IDENTITY_TOKEN,
      keyFile: '/var/lib/holdfast/outpost/token',
    });
  });

  it('wants the web base beside the base of the core, which a blueprint cannot make of it, and says which', () => {
    const base = { ...tokens, LDAP_BASE_DN: 'DC=core,DC=example,DC=org' };
    expect(problemsOf('identity-setup', base)).toEqual([
      expect.objectContaining({
        name: 'LDAP_WEB_BASE_DN',
        remedy: 'set LDAP_WEB_BASE_DN=DC=web,DC=example,DC=org in .env',
      }),
    ]);
    expect(namesOf('identity-setup', { ...base, LDAP_WEB_BASE_DN: 'DC=web,DC=example,DC=org' })).toEqual([]);
  });
});
