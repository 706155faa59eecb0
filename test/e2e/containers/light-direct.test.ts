// The light stack in direct mode, on the ports of production, as an operator has it: set up as the release before,
// upgraded to this version, through an upgrade that fails, back, and restored on an empty machine.

import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CorePlace, curl, type Device, enroll } from '../embedded/core-client.ts';
import { eventually, outcomeOf } from '../embedded/embedded.ts';
import { commitAll, git, releaseBefore } from '../embedded/release-before.ts';
import { letIn } from '../embedded/stream-device.ts';
import { ComposeStack, copyCheckout } from './compose-stack.ts';
import { type ContainerEngine, must, ran } from './engine.ts';
import { obstacle, sharedEngine } from './shared-engine.ts';
import { checkoutBefore, IMAGE_BEFORE, makeVersion } from './versions.ts';

const ONE_GIGABYTE = 1e9;
const [CURRENT, BROKEN] = ['99.0.0', '99.2.0'];
const TOKEN = 'a-token-for-the-backups-of-a-test-7';
const BROKEN_CORE = 'process.exit(3);\n';

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

/** Runs a script and kills it with all that it started as soon as `at` is true. */
async function killedWhen(
  stack: ComposeStack,
  at: () => boolean | Promise<boolean>,
  script: string,
  ...args: string[]
): Promise<void> {
  const child = stack.beginInside(script, ...args);
  const ended = outcomeOf(child);
  let isOver = false;
  void ended.then(() => (isOver = true));
  while (!isOver && !(await at())) await delay(2);
  if (!isOver) process.kill(-(child.pid ?? 0), 'SIGKILL');
  const { code, output } = await ended;
  if (code !== null) throw new Error(`${script} ended by itself: exit ${String(code)}\n${output}`);
}

const title = releaseBefore() ?? 'none in this clone, so this checkout stands for it';
describe.skipIf(obstacle !== '')(`the light stack in containers, from the release before (${title})`, () => {
  let stack: ComposeStack;
  /** Where a backup is restored. */
  let empty: ComposeStack;
  let before: string[];
  let device: Device;
  let secrets: Record<string, string>;
  const key = (): string => join(stack.engine.directory, 'key');
  const backup = (): string => join(stack.engine.directory, 'backup.age');

  beforeAll(async () => {
    const shared = await sharedEngine();
    // The stack of other files may stand beside it.
    before = await listening(shared.engine);
    empty = new ComposeStack(shared, { production: true });
    await copyCheckout(empty.root);
    await empty.build();
    stack = new ComposeStack(shared, {
      production: true,
      layers: ['compose/compose.runtime.yaml'],
      checkout: (directory) => checkoutBefore(shared.engine, directory),
    });
    await stack.prepare();
    commitAll(stack.root, 'the release before');
    writeFileSync(key(), `${BACKUP_PASSPHRASE}\n`);
  });
  afterAll(async () => {
    await stack?.down();
    const left = stack === undefined ? '' : await copies();
    if (left !== '') await stack.engine.docker(['volume', 'rm', ...left.split('\n')]);
  });

  const upgrade = (...args: string[]) => outcomeOf(stack.beginInside('upgrade.sh', ...args));

  /** A machine under load may be unhealthy for a while. */
  async function canApply(from: string): Promise<void> {
    const can = async (): Promise<boolean> => (await upgrade('check', '--from', from)).code === 10;
    await eventually('nothing prevents it', can, 120_000).catch(async () =>
      expect(await upgrade('check', '--from', from)).toMatchObject({ code: 10 }),
    );
  }

  /** True while the upgrade is in that phase. */
  const isIn = (phase: string) => (): boolean => {
    const file = join(stack.root, '.upgrade/containers');
    return existsSync(file) && readFileSync(file, 'utf8').startsWith(`phase=${phase}\n`);
  };

  const runs = async (): Promise<string> =>
    stack.engine.docker(['inspect', '--format', '{{.Config.Image}}', await stack.container('core')]);

  const copies = (): Promise<string> =>
    stack.engine.docker(['volume', 'ls', '--quiet', '--filter', 'label=holdfast.before-upgrade']);

  /** What an upgrade that has ended must not leave. */
  async function halfDone(): Promise<string[]> {
    const ids = ['label=holdfast.upgrading', 'label=com.docker.compose.oneoff=True'].map((label) =>
      stack.engine.docker(['ps', '--all', '--quiet', '--filter', label]),
    );
    const states = ['containers', 'containers.new'].filter((name) => existsSync(join(stack.root, '.upgrade', name)));
    return [...(await Promise.all(ids)), ...states].filter((each) => each !== '');
  }

  async function people(): Promise<string[]> {
    const { results } = await administer<{ results: { username: string }[] }>(
      stack,
      await placeOf(stack),
      '/api/users',
    );
    return results.map(({ username }) => username).filter((name) => ['dora', 'eve'].includes(name));
  }

  async function isLetIn(): Promise<void> {
    (await letIn(await placeOf(stack), device, 'dora')).leave();
  }

  it('lets a device in that trusts nothing but its CA: at the core itself, and on the stream', async () => {
    expect(await stack.scriptInside('start.sh')).toContain('A device can enroll, connect and send.');
    expect(await runs()).toBe(IMAGE_BEFORE);
    const core = await placeOf(stack);
    const { id } = await administer<{ id: number }>(stack, core, '/api/users', { username: 'dora', name: 'Dora' });
    await administer(stack, core, `/api/users/${id}/password`, { password: PASSWORD });
    const enrollment = await administer<{ url: string }>(stack, core, `/api/users/${id}/enrollment`, {});
    const link = new URL(enrollment.url);
    expect(link.searchParams.get('host')).toBe(stack.engine.address);
    device = await enroll(core, stack.root, 'dora', link.searchParams.get('token') ?? '');
    await isLetIn();
    secrets = stack.env;
  });

  it('becomes this version with its data and secrets, although the upgrade is killed during the start', async () => {
    const current = await makeVersion(stack.engine, CURRENT);
    commitAll(current, `version ${CURRENT}`);
    // The commit that stands for a release can't prepare a version with new required settings.
    if (!(releaseBefore() ?? '').startsWith('v')) appendFileSync(join(stack.root, '.env'), `BACKUP_TOKEN=${TOKEN}\n`);
    await canApply(current);
    await killedWhen(stack, isIn('start'), 'upgrade.sh', 'apply', '--from', current);
    const settings = { BACKUP_TARGET: '/var/lib/holdfast/backups', BACKUP_PASSPHRASE };
    for (const [name, value] of Object.entries(settings))
      appendFileSync(join(stack.root, '.env'), `${name}=${value}\n`);
    expect(await upgrade('check', '--from', current)).toMatchObject({
      code: 0,
      output: expect.stringMatching(/99\.0\.0 runs and passed[^]*Holdfast 99\.0\.0 is up to date/),
    });
    expect([await runs(), await people(), await halfDone()]).toEqual([`localhost/holdfast:${CURRENT}`, ['dora'], []]);
    // A version may add secrets of its own.
    expect(stack.env).toMatchObject(secrets);
    await isLetIn();
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

  it('goes back by itself, volumes included, when the core of a version cannot start, and health says so', async () => {
    secrets = stack.env;
    await stack.script('backup.sh', '--output', backup(), '--passphrase-file', key(), '--no-proof');
    const core = await placeOf(stack);
    await administer(stack, core, '/api/users', { username: 'eve', name: 'Eve' });
    const earlier = await copies();
    const broken = await makeVersion(stack.engine, BROKEN, { 'core.js': BROKEN_CORE });
    await canApply(broken);
    expect(await upgrade('apply', '--from', broken, '--timeout', '4')).toMatchObject({
      code: 4,
      output: expect.stringContaining(`${CURRENT} runs and passed the connection check`),
    });
    expect([await runs(), await people(), await copies(), await halfDone()]).toEqual([
      `localhost/holdfast:${CURRENT}`,
      ['dora', 'eve'],
      earlier,
      [],
    ]);
    await expect
      .poll(() => administer(stack, core, '/api/health/updates').catch(String))
      .toMatchObject({
        status: 'warning',
        message: expect.stringMatching(/upgrade to 99\.2\.0 .* failed and 99\.0\.0 runs again/),
      });
    expect(await upgrade('check', '--from', broken)).toMatchObject({
      code: 11,
      output: expect.stringMatching(/failed +earlier upgrade +the upgrade to 99\.2\.0 failed/),
    });
    const { output } = await upgrade('check', '--from', broken, '--clear');
    expect(output).toMatch(/ok +earlier upgrade/);
  });

  it('returns to the release before with its data, although that is killed while volumes are put back', async () => {
    expect(await upgrade('back')).toMatchObject({ code: 3, output: expect.stringContaining('--to-snapshot') });
    await killedWhen(stack, isIn('copy'), 'upgrade.sh', 'back', '--to-snapshot');
    expect(await upgrade('recover')).toMatchObject({ code: 0 });
    expect([await runs(), await people(), await copies(), await halfDone()]).toEqual([IMAGE_BEFORE, ['dora'], '', []]);
    expect(git(stack.root, 'status', '--porcelain', '--untracked-files=no')).toBe('');
    await isLetIn();
  });

  it('comes back on an empty machine from a backup and its passphrase alone, although the restore is killed', async () => {
    const { engine } = stack;
    await stack.down();
    // The release before does not know what this one added.
    for (const each of await stack.leftovers()) {
      const [kind = '', name = ''] = each.split(' ');
      await engine.docker([kind, 'rm', name]);
    }
    stack = empty;
    writeFileSync(`${key()}-of-another`, 'another passphrase\n');
    const wrong = stack.script('setup.sh', '--restore', backup(), '--passphrase-file', `${key()}-of-another`);
    await expect(wrong).rejects.toThrow(/passphrase/);
    const restore = ['--restore', backup(), '--passphrase-file', key()];
    const filters = ['project=holdfast', 'service=core-database'].flatMap((each) => ['--filter', `label=com.docker.compose.${each}`]); // prettier-ignore
    const databaseRuns = async (): Promise<boolean> => (await engine.docker(['ps', '--quiet', ...filters])) !== '';
    await killedWhen(stack, databaseRuns, 'setup.sh', ...restore);
    expect(existsSync(join(stack.root, '.env'))).toBe(false);
    await stack.script('setup.sh', ...restore);
    // The release before wrote settings without a value.
    expect(stack.env).toEqual(Object.fromEntries(Object.entries(secrets).filter(([, value]) => value !== '')));
    await stack.scriptInside('start.sh');
    expect([await people(), await halfDone()]).toEqual([['dora'], []]);
    await isLetIn();
    await expect(stack.script('setup.sh', ...restore)).rejects.toThrow(/\.env exists/);
  });

  it('leaves nothing behind when it is taken down with its volumes', async () => {
    expect(await stack.leftovers()).not.toEqual([]);
    await stack.down();
    expect(await stack.leftovers()).toEqual([]);
  });
});
