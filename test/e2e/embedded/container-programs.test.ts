// The programs of our image as containers run them: the light stack by nothing but environments.
// Where no mount of its own can be had (not root), it is skipped: a database refuses to start
// without one.

import { X509Certificate } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import {
  answerOf,
  canMount,
  type ContainerPrograms,
  endRole,
  newContainerPrograms,
  type RunningProgram,
  runRole,
  SECRETS,
} from './container-programs.ts';
import { type CorePlace, enroll } from './core-client.ts';
import { eventually, query } from './embedded.ts';
import { expectFlowsRights } from './flows-role.ts';
import { letIn } from './stream-device.ts';

const UP_WITHIN_MS = 60_000;
type Name = keyof ContainerPrograms['environments'];

let stack: ContainerPrograms;
const running = new Map<Name, RunningProgram>();

const roleOf = (name: Name): string => (name.endsWith('Database') ? 'database' : name);

/** As `depends_on: service_healthy` waits. */
async function up(name: Name): Promise<RunningProgram> {
  const environment = stack.environments[name];
  const program = runRole(roleOf(name), environment);
  running.set(name, program);
  const isHealthy = async (): Promise<boolean> => {
    if (program.child.exitCode !== null) throw new Error(`${name} ended: ${program.messagesOf()}`);
    return (await answerOf(roleOf(name), environment)).code === 0;
  };
  await eventually(`${name} is healthy`, isHealthy, UP_WITHIN_MS);
  return program;
}

async function down(name: Name, signal: NodeJS.Signals): Promise<number | string> {
  const program = running.get(name);
  running.delete(name);
  return program === undefined ? 'was not up' : endRole(program, signal);
}

const urlOf = (user: string, password: string, port: number, database: string): string =>
  `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port + stack.offset}/${database}`;
const coreUrl = (): string => urlOf('martiuser', SECRETS.CORE_DB_PASSWORD, 5432, 'cot');

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers = {
    authorization: basic('webadmin', SECRETS.CORE_WEBADMIN_PASSWORD),
    'content-type': 'application/json',
  };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(`http://127.0.0.1:${8080 + stack.offset}${path}`, { method, headers, ...sent });
  const text = await answer.text();
  expect([method, path, answer.ok, answer.ok ? '' : text]).toEqual([method, path, true, '']);
  return JSON.parse(text) as T;
}

/**
 * What the core has said of those who left in the middle of a handshake; management's own question
 * is answered to its end.
 */
function refused(): string[] {
  const lines = (running.get('core')?.messagesOf() ?? '').split('\n');
  return lines.filter((line) => line.includes('handshake_failed') && !line.includes('DID_NOT_RETURN_A_CERTIFICATE'));
}

function corePlace(): CorePlace {
  const { CORE_DATA_DIR: directory = '' } = stack.environments.core;
  return {
    directory,
    api: `https://127.0.0.1:${8443 + stack.offset}`,
    enrollment: `https://127.0.0.1:${8446 + stack.offset}`,
    streaming: `tls://127.0.0.1:${8089 + stack.offset}`,
  };
}

describe.skipIf(!canMount)('the programs of our image', () => {
  beforeAll(async () => {
    stack = await newContainerPrograms();
    await Promise.all([up('coreDatabase'), up('appDatabase')]);
    const configuration = runRole('configuration', stack.environments.configuration);
    expect([await configuration.ended, configuration.messagesOf()]).toEqual([0, expect.stringContaining('30')]);
    await up('identity');
    await up('core');
    await up('management');
  });
  afterAll(async () => {
    await Promise.all([...running.keys()].map((name) => down(name, 'SIGKILL')));
  });

  it('answer their health checks, and let an administrator in by its password', async () => {
    const isIn = async (): Promise<boolean> => {
      const headers = { authorization: basic('webadmin', SECRETS.CORE_WEBADMIN_PASSWORD) };
      return (await fetch(`http://127.0.0.1:${8080 + stack.offset}/api/settings`, { headers })).ok;
    };
    await eventually('the administrator is let in', isIn, UP_WITHIN_MS);
    const { settings } = await ask<{ settings: { name: string; value: unknown; source: string }[] }>(
      'GET',
      '/api/settings',
    );
    const shown = Object.fromEntries(settings.map(({ name, value, source }) => [name, [value, source]]));
    expect([shown['DATABASE_URL'], shown['CORE_RETENTION_UNIT']]).toEqual([
      ['set', 'stack'],
      ['days', 'stack'],
    ]);
  });

  it('enroll a device by a password of its person, and hear it on the stream', async () => {
    const { id } = await ask<{ id: number }>('POST', '/api/users', { username: 'ada', name: 'ada' });
    const { url } = await ask<{ url: string }>('POST', `/api/users/${id}/enrollment`);
    const token = new URL(url).searchParams.get('token') ?? '';
    const work = mkdtempSync(join(stack.root, 'work-'));
    const device = await enroll(corePlace(), work, 'ada', token);
    const ada = await letIn(corePlace(), device, 'ada');
    ada.report();
    const isStored = async (): Promise<boolean> =>
      (await query(coreUrl(), "SELECT FROM cot_router WHERE uid = 'ANDROID-ada'")).length > 0;
    await eventually('its position is stored', isStored, 10_000);
    ada.leave();
  });

  it('let flows read named tables, and come to the database by their own network alone', async () => {
    await expectFlowsRights(coreUrl());
    const flows = query(urlOf('holdfast_flows', SECRETS.FLOWS_DB_PASSWORD, 5432, 'cot'), 'SELECT 1');
    await expect(flows).rejects.toThrow(/pg_hba\.conf rejects connection/);
  });

  it('leave no line in a log of the core for its health checks', async () => {
    expect(refused()).toEqual([]);
    for (let count = 0; count < 3; count++) expect((await answerOf('core', stack.environments.core)).code).toBe(0);
    expect(refused()).toEqual([]);
  });

  it('give the proxy the certificate of the core with its key, under a name that stands in tls.caddy', async () => {
    const { HOLDFAST_PROXY_DIR: directory = '' } = stack.environments.management;
    await eventually('management has seen it', () => existsSync(join(directory, 'tls.caddy')), UP_WITHIN_MS);
    const files = readdirSync(directory).toSorted();
    const [, name = ''] = /^tls \/certificate\/(server-.+)\.pem \/certificate\/\1\.key\n$/.exec(
      readFileSync(join(directory, 'tls.caddy'), 'utf8'),
    ) ?? ['', ''];
    expect(files).toEqual(['ca.pem', `${name}.key`, `${name}.pem`, 'tls.caddy']);
    const certificate = new X509Certificate(readFileSync(join(directory, `${name}.pem`)));
    expect(name).toBe(`server-${certificate.serialNumber.toLowerCase()}`);
    expect(['core', 'takserver', 'localhost'].map((host) => certificate.checkHost(host))).not.toContain(undefined);
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
  });

  it('keep their secrets out of the database process, its command line and every log', () => {
    const { pid = 0 } = running.get('coreDatabase')?.child ?? {};
    const seen = ['environ', 'cmdline'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'latin1')).join('\0');
    expect(seen).toContain('autovacuum_vacuum_cost_limit=432');
    const all = [seen, ...[...running.values()].map((program) => program.messagesOf())].join('\n');
    for (const secret of Object.values(SECRETS)) {
      expect(all).not.toContain(secret);
      expect(all).not.toContain(encodeURIComponent(secret));
    }
  });

  it('take a database up again after it was killed, with everything that was in it', async () => {
    const before = await query(coreUrl(), 'SELECT count(*)::int AS n FROM cot_router');
    expect(await down('coreDatabase', 'SIGKILL')).toBe('SIGKILL');
    expect((await answerOf('database', stack.environments.coreDatabase)).code).toBe(1);
    await up('coreDatabase');
    expect(await query(coreUrl(), 'SELECT count(*)::int AS n FROM cot_router')).toEqual(before);
    expect(before).not.toEqual([{ n: 0 }]);
  });

  it('let no second database work on a volume that is in use', async () => {
    const second = runRole('database', {
      ...stack.environments.coreDatabase,
      HOLDFAST_DATABASE_PORT: String(1880 + stack.offset),
    });
    expect(await second.ended).toBe(75);
    expect(JSON.parse(second.messagesOf())).toMatchObject({
      event: 'database.failed',
      error: expect.stringMatching(/locked/),
    });
    expect(await query(coreUrl(), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('change a password of a role with the environment, and nothing else at a second start', async () => {
    const reader = async (password: string): Promise<number> => {
      const url = urlOf('holdfast_ro', password, 5432, 'cot');
      const [row] = await query<{ n: number }>(url, 'SELECT count(*)::int AS n FROM cot_router');
      return row?.n ?? 0;
    };
    const identifier = async (): Promise<unknown> =>
      query(coreUrl(), 'SELECT system_identifier::text AS id FROM pg_control_system()');
    const before = await identifier();
    // The core may still have an event to store.
    let rows = -1;
    const isSettled = async (): Promise<boolean> => {
      const earlier = rows;
      await new Promise((done) => setTimeout(done, 1000));
      rows = await reader(SECRETS.CORE_READER_PASSWORD);
      return rows > 0 && rows === earlier;
    };
    await eventually('all events are stored', isSettled, 10_000);
    expect(await down('coreDatabase', 'SIGINT')).toBe(0);
    const { coreDatabase } = stack.environments;
    stack.environments.coreDatabase = { ...coreDatabase, CORE_READER_PASSWORD: 'another password' };
    await up('coreDatabase');
    expect(await identifier()).toEqual(before);
    expect(await reader('another password')).toBe(rows);
    await expect(reader(SECRETS.CORE_READER_PASSWORD)).rejects.toThrow(/password authentication failed/);
    await down('coreDatabase', 'SIGINT');
    stack.environments.coreDatabase = coreDatabase;
    await up('coreDatabase');
    expect(await identifier()).toEqual(before);
    expect(await reader(SECRETS.CORE_READER_PASSWORD)).toBe(rows);
  });

  it('refuse a database that lies in the container itself, with which it would be gone', async () => {
    const bare = runRole('database', stack.environments.appDatabase, { mounted: false });
    expect(await bare.ended).toBe(1);
    expect(JSON.parse(bare.messagesOf())).toMatchObject({
      event: 'database.failed',
      error: expect.stringMatching(/recreating the container would delete the database/),
      remedy: expect.stringMatching(/^mount a volume at /),
    });
  });

  it('say whose a volume has to be that they may not write, and call no cluster broken that they may not read', async () => {
    const volume = mkdtempSync(join(stack.root, 'restored-'));
    const environment = { ...stack.environments.appDatabase, HOLDFAST_DATABASE_DIR: volume };
    const messagesOf = async (mode: number): Promise<unknown> => {
      chmodSync(volume, mode);
      const program = runRole('database', environment);
      expect(await program.ended).toBe(1);
      return JSON.parse(program.messagesOf());
    };
    expect(await messagesOf(0o755)).toMatchObject({
      error: expect.stringMatching(/65534:65534 couldn't write .*lock: .*denied/),
      remedy: expect.stringMatching(/chown -R 65534:65534$/),
    });
    mkdirSync(join(volume, 'pgdata'), { mode: 0o755 });
    mkdirSync(join(volume, 'pgdata/PG_VERSION'));
    expect(await messagesOf(0o777)).toMatchObject({ error: expect.stringMatching(/PG_VERSION is a directory/) });
  });

  it('end in order when they are told to, within ten seconds', async () => {
    const began = performance.now();
    const codes = await Promise.all((['management', 'core', 'identity'] as const).map((name) => down(name, 'SIGTERM')));
    expect(codes).toEqual([0, 0, 0]);
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});
