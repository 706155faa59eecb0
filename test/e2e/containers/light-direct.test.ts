// The light stack in direct mode, brought up as an operator does it, on the ports of production.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CorePlace, curl, type Device, enroll } from '../embedded/core-client.ts';
import { eventually } from '../embedded/embedded.ts';
import { streamDevice } from '../embedded/stream-device.ts';
import { ComposeStack, composeStack, copyCheckout } from './compose-stack.ts';
import { type ContainerEngine, must, ran } from './engine.ts';
import { obstacle, sharedEngine } from './shared-engine.ts';

const ONE_GIGABYTE = 1e9;

const PASSWORD = 'a password of direct mode 7';
const BACKUP_PASSPHRASE = 'a passphrase of backups in direct mode 7';

/** The ports of production, trusted by the CA of the stack. */
async function placeOf(stack: ComposeStack): Promise<CorePlace> {
  const { address } = stack.engine;
  const directory = join(stack.root, 'core-of-tests');
  mkdirSync(join(directory, 'certs/files'), { recursive: true });
  const ca = await stack.exec('core', 'cat', '/var/lib/holdfast/core/certs/files/ca.pem');
  writeFileSync(join(directory, 'certs/files/ca.pem'), ca);
  const at = (port: number): string => `https://${address}:${port}`;
  return { api: at(8443), enrollment: at(8446), streaming: `tls://${address}:8089`, directory };
}

/** `ADDRESS:PORT` of everything that the engine's machine opens to others. */
async function listening(engine: ContainerEngine): Promise<string[]> {
  const sockets = await engine.inside('ss', '--no-header', '--listening', '--numeric', '--tcp', '--udp');
  const places = sockets.split('\n').map((line) => line.trim().split(/\s+/)[4] ?? '');
  return places.filter((place) => place !== '' && !place.startsWith('127.'));
}

/** By way of the proxy as webadmin; the answer must be a success. */
async function administer<T>(stack: ComposeStack, core: CorePlace, path: string, json?: object): Promise<T> {
  const sent = json === undefined ? [] : ['-H', 'content-type: application/json', '-d', JSON.stringify(json)];
  const who = `webadmin:${stack.env['CORE_WEBADMIN_PASSWORD'] ?? ''}`;
  const url = `https://${stack.engine.address}${path}`;
  const { status, body } = await curl(core, ['--http1.1', '-u', who, ...sent, url]);
  if (status < 200 || status > 299) throw new Error(`${path}: ${status} ${body}`);
  return (body === '' ? undefined : JSON.parse(body)) as T;
}

describe.skipIf(obstacle !== '')('the light stack in containers', () => {
  let stack: ComposeStack;
  let before: string[];
  let device: Device;
  beforeAll(async () => {
    const started = performance.now();
    // The stack of other files may stand beside it.
    before = await listening((await sharedEngine()).engine);
    stack = await composeStack(await sharedEngine(), {
      production: true,
      layers: ['compose/compose.runtime.yaml'],
      env: { BACKUP_TARGET: '/var/lib/holdfast/backups', BACKUP_PASSPHRASE },
    });
    process.stdout.write(`light stack in direct mode: ${String(Math.round(performance.now() - started))} ms\n`);
  });
  afterAll(async () => {
    await stack?.down();
  });

  it('comes up healthy from one command', async () => {
    const states = (await stack.ps()).map(({ Service, State, Health, ExitCode }) =>
      [Service, State, Health, ExitCode].join(' ').replace(/\s+/g, ' '),
    );
    expect(states.toSorted()).toEqual([
      'app-database running healthy 0',
      'backup running healthy 0',
      'caddy running healthy 0',
      'configuration exited 0',
      'container-proxy running healthy 0',
      'core running healthy 0',
      'core-database running healthy 0',
      'flows running healthy 0',
      'identity running healthy 0',
      'management running healthy 0',
      // The public image of the relay has nothing by which it could be asked.
      'video running 0',
    ]);
  });

  it('binds exactly the four ports of the specification on the host', async () => {
    const ours = (await listening(stack.engine)).filter((place) => !before.includes(place));
    expect(ours.toSorted()).toEqual(['0.0.0.0:443', '0.0.0.0:80', '0.0.0.0:8089', '0.0.0.0:8446'].toSorted());
  });

  it('answers at every one of them; the certificates are those of its own CA', async () => {
    const { address } = stack.engine;
    const authority = join((await placeOf(stack)).directory, 'certs/files/ca.pem');
    const request = (url: string): Promise<string> =>
      must('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code} %{redirect_url}', '--cacert', authority, url]);
    expect(await request(`http://${address}/`)).toBe(`308 https://${address}/`);
    expect(await request(`https://${address}/`)).toMatch(/^(200|30\d) /);
    expect(await request(`https://${address}/monitor/api/health`)).toMatch(/^(200|401) /);
    expect(await request(`https://${address}:8446/Marti/api/version`)).toMatch(/^(200|401) /);
    const streaming = await ran('curl', ['-sS', '--cacert', authority, `https://${address}:8089/`], {});
    expect(streaming.stderr).toMatch(/certificate required/);
  });

  it('lets a device in that trusts nothing but its CA: at the core itself, and on the stream', async () => {
    const core = await placeOf(stack);
    const { id } = await administer<{ id: number }>(stack, core, '/api/users', { username: 'dora', name: 'Dora' });
    await administer(stack, core, `/api/users/${id}/password`, { password: PASSWORD });
    const enrollment = await administer<{ url: string }>(stack, core, `/api/users/${id}/enrollment`, {});
    const link = new URL(enrollment.url);
    expect(link.searchParams.get('host')).toBe(stack.engine.address);
    device = await enroll(core, stack.root, 'dora', link.searchParams.get('token') ?? '');
    const stream = await streamDevice(core, device, 'dora');
    await stream.hears('which server this is', (event) => event.type() === 't-x-takp-v', 10_000);
    stream.leave();
  });

  it('sees by its read-only door each container, and the one that has ended', async () => {
    const core = await placeOf(stack);
    interface Seen {
      status: string;
      message: string;
      data: { container_count: number };
    }
    const seen = (): Promise<Seen> => administer<Seen>(stack, core, '/api/health/containers');
    expect(await seen()).toMatchObject({ status: 'ok', data: { container_count: 11 } });
    await stack.compose('stop', 'video');
    expect(await seen()).toMatchObject({ status: 'critical', message: expect.stringContaining('video') as string });
    await stack.compose('start', 'video');
    await eventually('all is well again', async () => (await seen()).status === 'ok', 30_000);
    // Its directory is on a volume: the module says nothing of that.
    const { message } = await administer<{ message: string }>(stack, core, '/api/health/database');
    expect(message).not.toMatch(/volume/);
  });

  it('takes less than a gigabyte while nobody uses it', async () => {
    const held = await stack.memory();
    const total = Object.values(held).reduce((sum, bytes) => sum + bytes, 0);
    const messages = Object.entries(held).map(([service, bytes]) => `${service} ${String(Math.round(bytes / 1e6))}`);
    process.stdout.write(`memory: ${String(Math.round(total / 1e6))} MB: ${messages.join(', ')}\n`);
    expect(total).toBeLessThan(ONE_GIGABYTE);
  });

  it('proves its backup in the container that made it', async () => {
    const core = await placeOf(stack);
    interface State {
      running: unknown;
      last_failure: unknown;
      backups: { proof: { level: string } | null }[];
    }
    await administer(stack, core, '/api/backups', {});
    const proven = async (): Promise<boolean> => {
      const { running, last_failure: failure, backups } = await administer<State>(stack, core, '/api/backups');
      expect(failure).toBeNull();
      return running === null && backups[0]?.proof?.level === 'serves';
    };
    await eventually('the backup is proven', proven, 120_000);
  });

  it('comes back on an empty machine from a backup and its passphrase alone', async () => {
    const { engine } = stack;
    const [file, key] = ['backup.age', 'key'].map((name) => join(engine.directory, name)) as [string, string];
    writeFileSync(key, `${BACKUP_PASSPHRASE}\n`);
    await stack.script('backup.sh', '--output', file, '--passphrase-file', key);
    const secrets = stack.env;
    await stack.down();
    const other = new ComposeStack(await sharedEngine(), { production: true });
    await copyCheckout(other.root);
    writeFileSync(`${key}-of-another`, 'another passphrase\n');
    const wrong = other.script('setup.sh', '--restore', file, '--passphrase-file', `${key}-of-another`);
    await expect(wrong).rejects.toThrow(/passphrase/);
    await other.script('setup.sh', '--restore', file, '--passphrase-file', key);
    stack = other;
    expect(other.env).toEqual(secrets);
    await other.up();
    const core = await placeOf(other);
    const { results } = await administer<{ results: { username: string }[] }>(other, core, '/api/users');
    expect(results.map(({ username }) => username)).toContain('dora');
    const stream = await streamDevice(core, device, 'dora');
    await stream.hears('which server this is', (event) => event.type() === 't-x-takp-v', 10_000);
    stream.leave();
    await expect(other.script('setup.sh', '--restore', file, '--passphrase-file', key)).rejects.toThrow(/\.env exists/);
  });

  it('leaves nothing behind when it is taken down with its volumes', async () => {
    expect(await stack.leftovers()).not.toEqual([]);
    await stack.down();
    expect(await stack.leftovers()).toEqual([]);
  });
});
