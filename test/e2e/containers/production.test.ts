// Production as an operator has it: two commands from an archive, and everything is kept over
// whatever happens.

import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Device } from '../embedded/core-client.ts';
import { eventually, query } from '../embedded/embedded.ts';
import { expectFlowsRights } from '../embedded/flows-role.ts';
import { deviceUntilRevoked, staysOut } from './device-until-revoked.ts';
import { type LightAuthenticator, openAuthenticator } from './light-authenticator.ts';
import { startedAt } from './light-services.ts';
import { type LightWorld, makeWorld } from './light-world.ts';
import {
  BACKUPS,
  isReal,
  NEXT_RELEASE,
  type Production,
  production,
  PRODUCTION_SERVICES,
  RELEASE,
} from './production-stack.ts';
import { obstacle } from './shared-engine.ts';
import { administer } from './through-caddy.ts';

const HEALS_WITHIN_MS = isReal ? 400_000 : 120_000;
/** What start.sh says when the probe came through. */
const PROVEN = 'A device can enroll, connect and send.';
/** As a release calls them, by what stands in their command lines. The made-up ones are alike. */
const JVMS = isReal
  ? [
      'spring.profiles.active=config',
      'spring.profiles.active=messaging',
      'spring.profiles.active=api',
      'takserver-retention.jar',
      'takserver-pm.jar',
    ]
  : ['spring.profiles.active=messaging', 'takserver-pm.jar'];
/** Every service, in two groups: what the others talk to, and the others. */
const KILLED_TOGETHER = [/database$|^(?:management|caddy|flows)$/, /^authentik|^(?:core|video)$/].map((name) => ({
  services: PRODUCTION_SERVICES.filter((service) => name.test(service)),
}));
/** What makes a certificate of this stack what it is. */
const KEPT = [
  'CoreConfig.xml',
  ...['ca.pem', 'ca-do-not-share.key', 'takserver.pem', 'svc_api.pem'].map((name) => `certs/files/${name}`),
];

const SECRET = /_(?:PASSWORD|KEY|TOKEN)$/;
const HOLDERS = {
  acme: [],
  release: [],
  configuration: ['CORE_DB_PASSWORD', 'LDAP_BIND_PASSWORD'],
  core: [],
  'core-database': ['CORE_DB_PASSWORD', 'CORE_READER_PASSWORD', 'FLOWS_DB_PASSWORD'],
  'app-database': ['APP_DB_PASSWORD', 'IDENTITY_DB_PASSWORD'],
  'authentik-server': ['IDENTITY_DB_PASSWORD', 'IDENTITY_SECRET_KEY'],
  'authentik-worker': [
    'IDENTITY_DB_PASSWORD',
    'IDENTITY_SECRET_KEY',
    'IDENTITY_TOKEN',
    'LDAP_BIND_PASSWORD',
    'IDENTITY_BOOTSTRAP_TOKEN',
    'IDENTITY_ADMIN_PASSWORD',
  ],
  'authentik-ldap': [],
  'identity-setup': ['IDENTITY_TOKEN', 'IDENTITY_BOOTSTRAP_TOKEN'],
  management: [
    'CORE_DB_PASSWORD',
    'CORE_READER_PASSWORD',
    'APP_DB_PASSWORD',
    'IDENTITY_TOKEN',
    'LDAP_BIND_PASSWORD',
    'CORE_WEBADMIN_PASSWORD',
    'AUDIT_KEY',
    'SESSION_KEY',
    'METRICS_TOKEN',
    'BACKUP_TOKEN',
  ],
  caddy: ['FLOWS_TOKEN'],
  flows: ['FLOWS_DB_PASSWORD', 'FLOWS_TOKEN', 'FLOWS_CREDENTIAL_KEY'],
  video: ['VIDEO_PUBLISH_PASSWORD', 'VIDEO_READ_PASSWORD'],
};

describe.skipIf(obstacle !== '')('production', () => {
  let stack: Production;
  let authenticator: LightAuthenticator;
  let world: LightWorld;
  let revoked: Device;

  beforeAll(async () => {
    stack = await production();
    authenticator = await openAuthenticator(stack);
    world = await makeWorld(stack, authenticator);
  });
  afterAll(async () => {
    await authenticator?.[Symbol.asyncDispose]();
    await stack?.down();
  });

  const inCore = (name: string): string => readFileSync(join(authenticator.stack.data, 'core', name), 'utf8');

  async function isUp(): Promise<boolean> {
    const states = new Map(
      (await stack.ps()).map(({ Service, State, Health }) => [Service, `${State} ${Health}`.trim()]),
    );
    return PRODUCTION_SERVICES.every((name) => ['running', 'running healthy'].includes(states.get(name) ?? ''));
  }

  async function nothingIsLost(): Promise<void> {
    await eventually('every service is healthy', isUp, HEALS_WITHIN_MS);
    await authenticator.lookAgain();
    await world.isWhole();
  }

  it('is set up and started by two commands, and the probe says that a device comes through', () => {
    expect(stack.firstStart).toContain(PROVEN);
    expect(stack.firstStart).toContain('https://cot.example.org/');
    expect(stack.firstStart).not.toContain(stack.env['CORE_WEBADMIN_PASSWORD']);
    expect(statSync(join(stack.root, '.env')).mode & 0o777).toBe(0o600);
  });

  it('changes no byte when it is set up again, and starts a second time with the same containers', async () => {
    const before = readFileSync(join(stack.root, '.env'), 'utf8');
    const containers = await stack.compose('ps', '--quiet', ...PRODUCTION_SERVICES);
    await stack.script('setup.sh', stack.archiveOf(RELEASE));
    expect(readFileSync(join(stack.root, '.env'), 'utf8')).toBe(before);
    expect(await stack.scriptInside('start.sh')).toContain(PROVEN);
    expect(await stack.compose('ps', '--quiet', ...PRODUCTION_SERVICES)).toBe(containers);
  });

  it('lets a device enroll, stream and be stored until its certificate is revoked', async () => {
    revoked = await deviceUntilRevoked(stack, authenticator);
  });

  it('keeps the database on its volume, with the flags of the settings and without an archive', async () => {
    const show = async (name: string): Promise<string | undefined> => {
      const [row] = await query<Record<string, string>>(authenticator.stack.file().database, `SHOW ${name}`);
      return row?.[name];
    };
    expect(await show('archive_mode')).toBe('off');
    expect(await show('autovacuum_vacuum_scale_factor')).toBe('0.05');
    expect(await show('autovacuum_vacuum_cost_limit')).toBe('1000');
    const { Mounts } = await stack.inspect<{ Mounts: { Type: string; Name: string; Destination: string }[] }>(
      'core-database',
    );
    const mount = Mounts.find(({ Name }) => Name.endsWith('_core-database-data'));
    const ofServer = await stack.exec('core-database', 'cat', `${mount?.Destination ?? ''}/pgdata/postmaster.pid`);
    expect(ofServer.split('\n')[1]).toBe(`${mount?.Destination ?? ''}/pgdata`);
  });

  it('lets the flow engine read its tables and nothing else, from its own network alone', async () => {
    const asFlows = (network: string, sql: string) =>
      stack.engine.tryDocker(
        [
          ['run', '--rm', '--network', `${stack.project}_${network}`],
          ['--env', `PGPASSWORD=${stack.env['FLOWS_DB_PASSWORD'] ?? ''}`],
          ['--entrypoint', 'psql', `localhost/holdfast-core-database:${RELEASE}`],
          ['-h', 'core-database', '-U', 'holdfast_flows', '-d', 'cot', '-Atc', sql],
        ].flat(),
      );
    await expectFlowsRights(authenticator.stack.file().database);
    expect(await asFlows('flows-data', 'SELECT FROM cot_router, cot_router_chat')).toMatchObject({
      code: 0,
      stderr: '',
    });
    for (const sql of [
      'SELECT * FROM certificate',
      'BEGIN READ WRITE; DELETE FROM cot_router',
      'SELECT pg_read_file($$/etc/passwd$$)',
    ])
      expect([sql, (await asFlows('flows-data', sql)).stderr]).toEqual([
        sql,
        expect.stringContaining('permission denied'),
      ]);
    expect((await asFlows('core-data', 'SELECT 1')).stderr).toMatch(/no pg_hba.conf entry|rejects connection/);
  });

  it('shows each secret to the containers that need it, and in no list of processes and no log', async () => {
    const secrets = Object.entries(stack.env).filter(([name, value]) => SECRET.test(name) && value.length >= 20);
    expect(secrets.length).toBeGreaterThan(15);
    const namesIn = (text: string): string[] =>
      secrets.filter(([, value]) => text.includes(value)).map(([name]) => name);
    const found: Record<string, string[]> = {};
    for (const { Service } of await stack.ps()) {
      const { Config, ...rest } = await stack.inspect<{ Config: { Env: string[] } }>(Service);
      const { Env, ...others } = Config;
      found[Service] = namesIn(Env.join('\n'));
      expect([Service, namesIn(JSON.stringify([rest, others]))]).toEqual([Service, []]);
      expect([Service, namesIn(await stack.logs(Service))]).toEqual([Service, []]);
    }
    // A backup holds them all.
    expect(sorted(found)).toEqual(sorted({ ...HOLDERS, backup: secrets.map(([name]) => name) }));
    expect(namesIn(await stack.engine.inside('sh', '-c', 'cat /proc/[0-9]*/cmdline 2>/dev/null; true'))).toEqual([]);
  });

  it.each(JVMS)('starts the core anew when %s is gone, which ended with an error', async (jvm) => {
    const before = await startedAt(stack, 'core');
    const since = String(Math.floor(Date.now() / 1000));
    const find = `for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q -- '^java .*${jvm}' && echo \${p#/proc/}; done; true`;
    const [process = ''] = (await stack.exec('core', 'bash', '-c', find)).split('\n');
    expect(process).toMatch(/^\d+$/);
    await stack.exec('core', 'bash', '-c', `kill -KILL ${process}`);
    await eventually('it is started again', async () => (await startedAt(stack, 'core')) !== before, 60_000);
    const filter = ['--filter', 'event=die', '--filter', `container=${await stack.container('core')}`];
    const until = String(Math.ceil(Date.now() / 1000));
    const died = await stack.engine.docker([
      'events',
      '--since',
      since,
      '--until',
      until,
      ...filter,
      '--format',
      '{{.Actor.Attributes.exitCode}}',
    ]);
    expect(died.split('\n')).toEqual(['1']);
    await eventually('every service is healthy', isUp, HEALS_WITHIN_MS);
  });

  it('has every service in one of the groups', () => {
    expect(KILLED_TOGETHER.flatMap(({ services }) => services).toSorted()).toEqual(PRODUCTION_SERVICES.toSorted());
  });

  it.each(KILLED_TOGETHER)('heals by itself when $services are killed', async ({ services }) => {
    await stack.killTogether(services);
    await nothingIsLost();
  });

  it('is all there when it was taken down, and is started again as the next release', async () => {
    const before = KEPT.map(inCore);
    const next = isReal ? RELEASE : NEXT_RELEASE;
    await stack.compose('down', '--timeout', '30');
    await stack.script('setup.sh', stack.archiveOf(next));
    await stack.scriptInside('start.sh');
    expect([stack.env['CORE_RELEASE'], isReal || inCore('version.txt').trim() === next]).toEqual([next, true]);
    expect(KEPT.map(inCore)).toEqual(before);
    await nothingIsLost();
  });

  it('proves its backup as far as a release can be proven beside itself', async () => {
    interface State {
      running: unknown;
      last_failure: unknown;
      backups: { proven: boolean; proof: { level: string; checks: unknown[] } | null }[];
    }
    await administer(stack, '/api/backups', { method: 'POST', json: {} });
    const proven = async (): Promise<boolean> => {
      const { running, last_failure: failure, backups } = await administer<State>(stack, '/api/backups');
      expect(failure).toBeNull();
      return running === null && backups[0]?.proven === true && backups[0].proof?.level === 'restores';
    };
    await eventually('the backup is proven', proven, 120_000);
  });

  it('comes back on an empty machine from a backup, its passphrase and the archive of its release', async () => {
    const { engine, root, env: settings } = stack;
    const archive = stack.archiveOf(settings['CORE_RELEASE'] ?? '');
    const [file, key] = ['production.age', 'production.key'].map((name) => join(engine.directory, name)) as [
      string,
      string,
    ];
    writeFileSync(key, `${BACKUPS.BACKUP_PASSPHRASE}\n`);
    const before = [await rowsOf(authenticator), ...KEPT.map(inCore)];
    await stack.script('backup.sh', '--output', file, '--passphrase-file', key, '--no-proof');
    await stack.down();
    for (const name of ['.env', 'release']) rmSync(join(root, name), { recursive: true });
    const restore = (...args: string[]) =>
      stack.script('setup.sh', ...args, '--restore', file, '--passphrase-file', key);
    await expect(restore()).rejects.toThrow(`archive is needed too: ${basename(archive)} SHA-256`);
    const other = settings['CORE_RELEASE'] === RELEASE ? NEXT_RELEASE : RELEASE;
    await expect(restore(stack.archiveOf(other))).rejects.toThrow(`is ${other}. Nothing was changed`);
    expect(existsSync(join(root, '.env'))).toBe(false);
    await restore(archive);
    expect(stack.env).toEqual(settings);
    expect(await stack.scriptInside('start.sh')).toContain(PROVEN);
    await authenticator.lookAgain();
    expect([await rowsOf(authenticator), ...KEPT.map(inCore)]).toEqual(before);
    await world.isWhole('restore');
    await staysOut(world.core, revoked, 'device-ada');
    await expect(restore(archive)).rejects.toThrow(/\.env exists/);
  });
});

/** By table of the core; a start adds to none of these. */
async function rowsOf(authenticator: LightAuthenticator): Promise<Record<string, number>[]> {
  const count = ['mission', 'resource', 'cot_router_chat', 'schema_version']
    .map((table) => `(SELECT count(*)::int FROM ${table}) AS ${table}`)
    .join(', ');
  return query(authenticator.stack.file().database, `SELECT ${count}`);
}

function sorted(lists: Record<string, readonly string[]>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, list.toSorted()]));
}
