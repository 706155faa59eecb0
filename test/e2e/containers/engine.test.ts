// The engine that the tests of containers use leaves this machine as it was, and its builds reach
// npm and nothing else.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { nodeImage, standIns } from './base-images.ts';
import { ContainerEngine, freePrefix, must } from './engine.ts';
import { obstacle, sharedEngine, type SharedEngine } from './shared-engine.ts';

/** Everything of an engine that can be seen on this machine. */
async function tracesOf({ directory, interface: wire }: { directory: string; interface: string }): Promise<string[]> {
  const group = basename(directory);
  // By way of the environment: the command line of who looks must not be found.
  const env = { DIRECTORY: directory, WIRE: wire, GROUP: `[${group.slice(0, 1)}]${group.slice(1)}` };
  const look = `
    ls -d "$DIRECTORY" 2>/dev/null
    find /sys/fs/cgroup -type d -name "$GROUP*"
    grep -l "$GROUP" /proc/[0-9]*/cmdline /proc/[0-9]*/mountinfo /proc/[0-9]*/cgroup 2>/dev/null
    test -e "/sys/class/net/$WIRE" && echo "$WIRE"
    true`;
  return (await must('sh', ['-c', look], { env })).split('\n').filter((line) => line !== '');
}

const machine = async (): Promise<string> =>
  must('sh', ['-c', 'iptables-save | grep -v "^#"; ip route; cat /proc/sys/net/ipv4/ip_forward; ls -A /etc /opt']);

const BUSY = 'FROM scratch\nADD busybox.tar /\n';

async function runSomething(engine: ContainerEngine): Promise<void> {
  const context = join(engine.directory, 'something');
  mkdirSync(context);
  await must('tar', ['-cf', join(context, 'busybox.tar'), '-C', '/', 'bin/busybox']);
  writeFileSync(join(context, 'Dockerfile'), BUSY);
  await engine.docker(['build', '--quiet', '--tag', 'something', context]);
  await engine.docker(['network', 'create', 'some']);
  const command = ['/bin/busybox', 'httpd', '-f', '-p', '80'];
  for (const name of ['one', 'two'])
    await engine.docker([
      'run',
      '-d',
      '--name',
      name,
      '--network',
      'some',
      '-v',
      '/data',
      '-P',
      '--expose',
      '80',
      'something',
      ...command,
    ]);
  await engine.docker(['pause', 'two']);
}

describe.skipIf(obstacle !== '')('an engine of the tests', () => {
  it('leaves no process, mount, interface, control group or directory, even with a paused container', async () => {
    const before = await machine();
    const engine = await new ContainerEngine().start();
    await runSomething(engine);
    expect(await tracesOf(engine)).not.toEqual([]);
    expect(Object.keys(networkInterfaces())).toContain(engine.interface);
    await engine[Symbol.asyncDispose]();
    expect(await tracesOf(engine)).toEqual([]);
    expect(await machine()).toBe(before);
  });

  it('is gone too when the process that started it is killed', async () => {
    const [directory, wire] = [mkdtempSync(join(tmpdir(), 'holdfast-engine-')), 'holdfkilled'];
    writeFileSync(join(directory, 'daemon.json'), '{}');
    const words = JSON.stringify([directory, wire, freePrefix()]);
    const options = `{ stdio: ['pipe', 'ignore', 'ignore'], detached: true }`;
    const start = `spawn(${JSON.stringify(join(import.meta.dirname, 'engine.sh'))}, ${words}, ${options})`;
    const program = `import { spawn } from 'node:child_process'; ${start}; setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'ignore' });
    await expect.poll(() => existsSync(join(directory, 'engine.sock'))).toBe(true);
    const engine = { directory, interface: wire };
    expect(await tracesOf(engine)).not.toEqual([]);
    child.kill('SIGKILL');
    await expect.poll(() => tracesOf(engine)).toEqual([]);
  });
});

describe.skipIf(obstacle !== '')('the images that others are built on', () => {
  let shared: SharedEngine;
  beforeAll(async () => {
    shared = await sharedEngine();
  });

  it('have the very names that the compose files and Dockerfiles use', async () => {
    const listed = (await shared.engine.docker(['images', '--format', '{{.Repository}}:{{.Tag}}'])).split('\n');
    expect(listed).toEqual(expect.arrayContaining([...standIns().keys()]));
  });

  it('let a build install packages of npm, and reach nobody else', async () => {
    const { engine, relay } = shared;
    const context = join(engine.directory, 'npm-build');
    mkdirSync(context);
    const ask = `fetch('https://example.org').then(() => console.log('reached'), (e) => console.log(e.cause.message))`;
    const node = `NODE_USE_ENV_PROXY=1 node -e "${ask}" > /app/answer`;
    writeFileSync(join(context, 'Dockerfile'), `FROM ${nodeImage()}\nWORKDIR /app\nRUN npm install qr && ${node}\n`);
    await engine.docker(['build', '--quiet', '--build-arg', `HTTPS_PROXY=${relay.url}`, '--tag', 'npm-build', context]);
    const inside = await engine.docker(['run', '--rm', 'npm-build', 'sh', '-c', 'ls node_modules; cat answer; env']);
    expect(inside).toContain('qr\n');
    expect(inside).not.toContain('reached');
    expect(inside).not.toContain(relay.url);
    expect(relay.refused).toContain('example.org:443');
  });

  it('keep the file capability by which Caddy is started as in the public image', async () => {
    const caddy = [...standIns()].find(([, stage]) => stage === 'caddy')?.[0];
    if (caddy === undefined) return;
    const limits = ['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--user', '10001'];
    const refused = await shared.engine.tryDocker(['run', '--rm', ...limits, caddy, 'caddy', 'version']);
    expect(refused.code).not.toBe(0);
    const allowed = [...limits, '--cap-add', 'NET_BIND_SERVICE'];
    expect(await shared.engine.docker(['run', '--rm', ...allowed, caddy, 'caddy', 'version'])).toMatch(/^2\.1\d/);
  });
});

it.skipIf(process.getuid?.() === 0)('says without root that only root can start one', () => {
  expect(obstacle).toBe('only root can start a container engine');
});
