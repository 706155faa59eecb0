import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { Engine, engineObstacle } from '../../packages/setup/test/container-engine.ts';
import { containerRuntime } from '../../shared/host/containers.ts';
import type { Container } from '../../shared/host/port.ts';
import { asRoot, home } from '../e2e/embedded/embedded.ts';

async function failureOf(call: Promise<unknown>): Promise<AppError> {
  const thrown: unknown = await call.catch((error: unknown) => error);
  if (thrown instanceof AppError) return thrown;
  throw new Error(`not an AppError: ${String(thrown)}`);
}

let directory: string;
const ends: (() => unknown)[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-runtime-'));
});
afterEach(() => {
  for (const end of ends.splice(0)) end();
  rmSync(directory, { recursive: true, force: true });
});

/** Listens on a socket whose path needs percent-encoding, or on a free port; the address that reaches it. */
async function listening(server: Server, over: string): Promise<string> {
  const path = join(directory, 'a socket %.sock');
  ends.push(() => server.close());
  server.on('connection', (socket) => ends.push(() => socket.destroy()));
  await once(over === 'unix' ? server.listen(path) : server.listen(0, '127.0.0.1'), 'listening');
  if (over === 'unix') return `unix://${encodeURI(path)}`;
  return `${over}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A runtime that answers as `play` says; `asked` collects what it was asked. */
async function playing(over: string, play: (path: string, response: ServerResponse) => unknown) {
  const requests: string[] = [];
  const server = createServer((incoming, response) => {
    requests.push(`${incoming.method} ${incoming.url}`);
    play(incoming.url ?? '', response);
  });
  return { url: await listening(server, over), asked: requests };
}

const LIST = '/containers/json?all=1';
const listed = (...ids: string[]): string => JSON.stringify(ids.map((Id) => ({ Id })));
const detailed = (name: string): string =>
  JSON.stringify({
    Name: `/${name}`,
    Config: { Image: 'some:1' },
    HostConfig: { RestartPolicy: { Name: 'always' } },
    State: { Status: 'running', ExitCode: 0, OOMKilled: false },
    RestartCount: 0,
  });

describe.each(['unix', 'http', 'tcp'])('a played runtime over %s', (over) => {
  it('is asked by GET alone, for each container, at most eight at once', async () => {
    const ids = Array.from({ length: 30 }, (_, index) => `id${index}`);
    let open = 0;
    let most = 0;
    const { url, asked: requests } = await playing(over, (path, response) => {
      most = Math.max(most, ++open);
      setTimeout(() => {
        open--;
        response.end(path === LIST ? listed(...ids) : detailed(path.split('/')[2] ?? ''));
      }, 5);
    });
    const containers = await containerRuntime(url).list();
    expect(containers.map(({ name }) => name)).toEqual(ids.toSorted());
    expect(requests.toSorted()).toEqual(
      [LIST, ...ids.map((id) => `/containers/${id}/json`)].map((p) => `GET ${p}`).toSorted(),
    );
    expect(most).toBe(8);
  });

  it('loses a container between the list and the question about it', async () => {
    const { url } = await playing(over, (path, response) => {
      if (path === LIST) return response.end(listed('stays', 'goes'));
      if (path.includes('stays')) return response.end(detailed('stays'));
      return response.writeHead(404).end('{"message":"No such container: goes"}');
    });
    expect((await containerRuntime(url).list()).map(({ name }) => name)).toEqual(['stays']);
  });

  it.each<[string, (path: string, response: ServerResponse) => unknown]>([
    ['at once', () => undefined],
    ['within an answer', (_path, response) => response.write('[')],
    ['at a question', (path, response) => (path === LIST ? response.end(listed('a', 'b')) : undefined)],
  ])('hangs %s: the call ends in time', async (_when, hang) => {
    const { url } = await playing(over, hang);
    const { code, message } = await failureOf(containerRuntime(url, { withinMs: 200 }).list());
    expect(code).toBe('unavailable');
    expect(message).toMatch(
      /^The container runtime at .+ does not answer: no answer within 0.2 s\. Start the container/,
    );
  });

  it('cuts the connection', async () => {
    const { url } = await playing(over, (_path, response) => response.destroy());
    expect(await failureOf(containerRuntime(url).list())).toMatchObject({ code: 'unavailable' });
  });

  it('does not speak HTTP', async () => {
    const server = createTcpServer((socket) => socket.on('error', () => undefined).end('SSH-2.0-x\r\n'));
    const failure = await failureOf(containerRuntime(await listening(server, over)).list());
    expect(failure.code).toBe('upstream');
    expect(failure.message).toMatch(/answered GET .+ with something other than HTTP .+ Set CONTAINER_RUNTIME_URL/);
  });

  const WRONG: [string, number, string, RegExp][] = [
    ['fails', 500, '{"message":"boom\u0007 \u202e"}', /with status 500: \{"message":"boom "\}\. Check its log\./],
    ['forbids', 403, '<h1>403</h1>', /with status 403: <h1>403<\/h1>\. If a proxy guards the socket, allow GET/],
    ['knows no containers', 404, '', /with status 404: nothing\. Set CONTAINER_RUNTIME_URL to a Docker Engine/],
    ['moved', 301, '', /with status 301/],
    [
      'is a web page',
      200,
      `<html>${'x'.repeat(999)}`,
      /with something other than JSON: <html>x{154} \.\.\.\. Set CONTAINER_/,
    ],
    ['says nothing', 200, '', /with something other than JSON: nothing/],
    [
      'is another program',
      200,
      '{"secret":"hunter2"}',
      /with JSON of another shape \(the response: [^{]+\)\. Set CONTAINER_/,
    ],
    ['has no ids', 200, '[{"Name":"x"}]', /another shape \(0\.Id: /],
    ['has ids that lead elsewhere', 200, listed('../../secrets'), /another shape \(0\.Id: /],
    ['never ends', 200, ' '.repeat(9 * 1024 * 1024), /with more than 8388608 bytes/],
  ];
  it.each(WRONG)('%s: that is said', async (_name, status, body, says) => {
    const { url, asked: asks } = await playing(over, (_path, response) => response.writeHead(status).end(body));
    const failure = await failureOf(containerRuntime(url).list());
    expect(failure).toMatchObject({ code: 'upstream', message: expect.stringMatching(says) as string });
    expect(failure.message).toContain(decodeURI(url));
    expect(failure.message).not.toContain('hunter2');
    expect(asks).toEqual([`GET ${LIST}`]);
  });

  it('answers wrongly about one container of many', async () => {
    const { url } = await playing(over, (path, response) => {
      if (path === LIST) return response.end(listed(...Array.from({ length: 50 }, (_, index) => `id${index}`)));
      return response.end(path.includes('id20') ? '{"Config":{"Env":["PASSWORD=hunter2"]}}' : detailed('x'));
    });
    const failure = await failureOf(containerRuntime(url).list());
    expect(failure.message).toMatch(/GET \/containers\/id20\/json with JSON of another shape \(Name: /);
    expect(failure.message).not.toContain('hunter2');
  });
});

describe('no runtime', () => {
  it('has no socket, nobody at the socket, nobody at the port', async () => {
    const missing = await failureOf(containerRuntime(`unix://${directory}/none.sock`).list());
    expect(missing.message).toBe(
      `The container runtime at unix://${directory}/none.sock does not answer: the socket does not exist. ` +
        'Start the container runtime, or correct CONTAINER_RUNTIME_URL.',
    );
    writeFileSync(join(directory, 'file'), '');
    const { url } = await playing('http', () => undefined);
    for (const end of ends.splice(0)) end();
    for (const place of [url, `unix://${directory}/file`]) {
      const refused = await failureOf(containerRuntime(place).list());
      expect(refused).toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('ECONNREFUSED') as string,
      });
    }
  });

  it('may not be asked by this user, who is named', async () => {
    const { url } = await playing('unix', (_path, response) => response.end('[]'));
    chmodSync(join(directory, 'a socket %.sock'), 0);
    const script = `import { containerRuntime } from ${JSON.stringify(join(home, 'shared/host/containers.ts'))};
      if (process.getuid() === 0) { process.setgroups([]); process.setgid(65534); process.setuid(65534); }
      await containerRuntime(process.argv[1]).list().catch(({ code, message }) => console.log(code, message));`;
    const text = execFileSync(process.execPath, ['--input-type=module', '-e', script, url], { encoding: 'utf8' });
    const uid = asRoot ? 65534 : process.getuid?.();
    expect(text).toMatch(
      new RegExp(
        `^unavailable The user with uid ${uid} isn't allowed to open the container runtime's socket.+Add this user to the group`,
      ),
    );
  });

  it('shows a certificate that nobody vouches for', async () => {
    const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
    const make = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x -keyout ${key} -out ${cert}`;
    execFileSync('openssl', make.split(' '), { stdio: 'ignore' });
    const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) });
    const failure = await failureOf(containerRuntime(await listening(server, 'https')).list());
    expect(failure).toMatchObject({ code: 'unavailable', message: expect.stringContaining('certificate') as string });
  });
});

const HALF_A_SECOND = 500_000_000;
const check = (command: string, Interval = HALF_A_SECOND): object => ({
  Healthcheck: { Test: ['CMD', '/bin/busybox', command], Interval, Retries: 1 },
});
const restarting = (Name: string, MaximumRetryCount = 0): { HostConfig: object } => ({
  HostConfig: { RestartPolicy: { Name, MaximumRetryCount } },
});
const SLEEP = '/bin/busybox sleep 1000';
const obstacleHere = engineObstacle();

describe.skipIf(obstacleHere !== '')(`a real engine${obstacleHere && ` (not here: ${obstacleHere})`}`, () => {
  let engine: Engine;
  let url: string;
  beforeAll(async () => {
    engine = new Engine();
    url = `unix://${engine.socket}`;
    await engine.ready();
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  const find = async (name: string): Promise<Container | undefined> =>
    (await containerRuntime(url).list()).find((container) => container.name === name);

  async function sees(name: string, like: object): Promise<void> {
    await expect.poll(() => find(name), { timeout: 10_000, interval: 50 }).toMatchObject(like);
  }

  it('has no container, then some that run: healthy, unhealthy, starting, without a health check', async () => {
    expect(await containerRuntime(url).list()).toEqual([]);
    await engine.run('well', SLEEP, { ...check('true'), ...restarting('unless-stopped') });
    await engine.run('sick', SLEEP, check('false'));
    await engine.run('new', SLEEP, check('true', 3600 * 2 * HALF_A_SECOND));
    await engine.run('plain', SLEEP, restarting('always'));
    await sees('well', { health: 'healthy', kept_running: true });
    await sees('sick', { health: 'unhealthy', kept_running: false });
    await sees('new', { health: 'starting', state: 'running' });
    await sees('plain', { health: undefined, state: 'running', kept_running: true });
    const none = { exit_code: undefined, out_of_memory: false, restarts: 0 };
    const well = { name: 'well', image: 'some:1', state: 'running', health: 'healthy', kept_running: true, ...none };
    expect(await find('well')).toEqual({ ...well, mounts: [], hosts: expect.arrayContaining(['well']) as string[] });
  });

  it('has containers that ended well, badly, and after all their restarts', async () => {
    await engine.run('done', 'exit 0', check('true'));
    await engine.run('failed', 'exit 3');
    await engine.run('tried', 'exit 4', restarting('on-failure', 2));
    await sees('done', { state: 'exited', exit_code: 0, kept_running: false, health: undefined });
    await sees('failed', { state: 'exited', exit_code: 3, restarts: 0 });
    await sees('tried', { state: 'exited', exit_code: 4, restarts: 2, kept_running: false });
  });

  it('has one that a person stopped although it should run, and one that was never started', async () => {
    await engine.run('stopped', SLEEP, { ...check('true'), ...restarting('unless-stopped') });
    await sees('stopped', { health: 'healthy' });
    await engine.ask('POST', '/containers/stopped/stop?t=0');
    await sees('stopped', { state: 'exited', exit_code: 137, kept_running: true, health: undefined });
    await engine.create('created', SLEEP);
    await sees('created', { state: 'created', exit_code: undefined });
  });

  it('has one that ends again and again', async () => {
    const several = expect.toSatisfy((restarts: number) => restarts > 1) as number;
    await engine.run('crashing', 'exit 1', restarting('always'));
    await sees('crashing', { state: 'restarting', exit_code: 1, restarts: several, kept_running: true });
    expect(await engine.ask('DELETE', '/containers/crashing?force=1')).toBe(true);
    expect(await find('crashing')).toBeUndefined();
  });

  it('has one that is paused, which says nothing about its health', async ({ skip }) => {
    await engine.run('paused', SLEEP, check('true'));
    await sees('paused', { health: 'healthy' });
    if (!(await engine.ask('POST', '/containers/paused/pause'))) skip('this kernel pauses no container');
    await sees('paused', { state: 'paused', health: undefined, exit_code: undefined });
    expect(await engine.ask('POST', '/containers/paused/unpause')).toBe(true);
    await sees('paused', { state: 'running', health: 'healthy' });
  });

  it('has one that used more memory than it may', async ({ skip }) => {
    const HostConfig = { Memory: 2 ** 24, MemorySwap: 2 ** 24 };
    await engine
      .run('greedy', 'exec /bin/busybox tail /dev/zero', { HostConfig })
      .catch(() => skip('no memory limits here'));
    await sees('greedy', { state: 'exited', exit_code: 137, out_of_memory: true });
  });

  it('has mounts of each kind, and the names under which others meet it', async () => {
    const host = join(engine.directory, 'of the host');
    mkdirSync(host);
    const kinds = ['named:/named', '/nameless', `${host}:/bound`];
    const HostConfig = { Binds: [kinds[0], kinds[2]], Tmpfs: { '/memory': '' } };
    const Labels = { 'com.docker.compose.service': 'core-database' };
    const wanted = { HostConfig, Labels, Volumes: { [`${kinds[1]}`]: {} }, Hostname: 'db' };
    await engine.run('mounted', SLEEP, wanted);
    const { mounts = [], hosts = [] } = (await find('mounted')) ?? {};
    expect(mounts.toSorted((one, other) => (one.destination < other.destination ? -1 : 1))).toEqual([
      { destination: '/bound', type: 'bind' },
      { destination: '/named', type: 'volume', name: 'named' },
      { destination: '/nameless', type: 'volume', name: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
    ]);
    expect(hosts).toEqual(expect.arrayContaining(['mounted', 'core-database', 'db']));
  });

  it('lists one Compose project, by name, while others come and go', async () => {
    const project = { Labels: { 'com.docker.compose.project': 'other' } };
    for (const name of ['zeta', 'alpha']) await engine.create(name, SLEEP, project);
    const names = async (project: string): Promise<string[]> =>
      (await containerRuntime(url, { project }).list()).map(({ name }) => name);
    expect(await names('other')).toEqual(['alpha', 'zeta']);
    expect(await names('holdfast')).toEqual(expect.arrayContaining(['alpha', 'plain', 'well', 'zeta']));
    let coming = true;
    const comings = (async () => {
      for (let round = 0; coming; round++) {
        await engine.create(`brief${round}`, SLEEP, project);
        await engine.ask('DELETE', `/containers/brief${round}?force=1`);
      }
    })();
    for (let round = 0; round < 100; round++)
      expect((await names('other')).filter((name) => !name.startsWith('brief'))).toEqual(['alpha', 'zeta']);
    coming = false;
    await comings;
  });

  it('is reached over TCP as over its socket', async () => {
    const proxy = createTcpServer((socket) => {
      const engineSide = connect(engine.socket);
      for (const side of [socket, engineSide]) side.on('error', () => undefined);
      socket.pipe(engineSide).pipe(socket);
    });
    const tcp = containerRuntime(await listening(proxy, 'tcp'));
    expect((await tcp.list()).length).toBeGreaterThan(10);
    // One of them is restarted again and again.
    const alike = async (): Promise<boolean> =>
      isDeepStrictEqual(...(await Promise.all([tcp.list(), containerRuntime(url).list()])));
    await expect.poll(alike, { timeout: 20_000 }).toBe(true);
  });

  it('ends with everything in it, and that is said', async () => {
    await engine.end();
    const failure = await failureOf(containerRuntime(url).list());
    expect(failure).toMatchObject({ code: 'unavailable', message: expect.stringContaining('ECONNREFUSED') as string });
    expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(engine.directory);
  });
});
