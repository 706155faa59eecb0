// The read-only door to a container engine: what it lets through of questions and of answers; at a
// played engine and, where one can be had, at a real one.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { containerRuntime } from '../../../shared/host/containers.ts';
import { containerProxy, type ProxyRefusal } from '../containers/container-proxy.ts';
import { Engine, engineObstacle } from './container-engine.ts';

const OWN = { 'com.docker.compose.project': 'holdfast', 'com.docker.compose.service': 'core', secret: 'hunter2' };
const ID = 'a'.repeat(64);
const FOREIGN_ID = 'b'.repeat(64);
const ends: (() => unknown)[] = [];
let refusals: ProxyRefusal[];
beforeEach(() => {
  refusals = [];
});
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

async function open(socket: string, withinMs = 5_000): Promise<number> {
  const server: Server = containerProxy({
    socket,
    project: 'holdfast',
    refused: (each) => void refusals.push(each),
    withinMs,
  });
  ends.push(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

interface Got {
  status: number | undefined;
  headers: IncomingMessage['headers'];
  text: string;
}

async function ask(port: number, path: string, method = 'GET', headers: Record<string, string> = {}): Promise<Got> {
  const requested = request({ port, path, method, headers, agent: false }).end();
  const [response] = (await once(requested, 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, text: await textOf(response) };
}

/** Bytes as they are, and what comes back until the end. */
async function sendRaw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(bytes);
  return textOf(socket);
}

const inspected = (project: string, id = ID) => ({
  Id: id,
  Name: '/core',
  Path: 'hunter2',
  Args: ['hunter2'],
  RestartCount: 2,
  Config: {
    Image: 'some:1',
    Hostname: 'core',
    Env: ['PASSWORD=hunter2'],
    Cmd: ['hunter2'],
    Labels: { ...OWN, 'com.docker.compose.project': project },
  },
  Mounts: [{ Type: 'volume', Name: 'v', Source: '/hunter2', Destination: '/data', Driver: 'hunter2' }],
  NetworkSettings: { SandboxKey: 'hunter2', Networks: { edge: { Aliases: ['core'], IPAddress: '172.16.64.9' } } },
  HostConfig: { Binds: ['/hunter2:/data'], RestartPolicy: { Name: 'always', MaximumRetryCount: 0 } },
  State: {
    Status: 'running',
    ExitCode: 0,
    OOMKilled: false,
    Pid: 4711,
    Health: { Status: 'healthy', Log: ['hunter2'] },
  },
});

describe('at a played engine', () => {
  let directory: string;
  let requests: string[];
  let port: number;
  let answers: (path: string) => [status: number, body: string] | undefined;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'holdfast-proxy-'));
    requests = [];
    answers = (path) => {
      if (path === '/_ping') return [200, 'OK'];
      if (path.startsWith('/containers/json'))
        return [
          200,
          JSON.stringify([
            { Id: ID, Labels: OWN, Command: 'hunter2', Mounts: [{ Source: '/hunter2' }] },
            { Id: FOREIGN_ID, Labels: { 'com.docker.compose.project': 'other' } },
            { Id: FOREIGN_ID, Labels: null },
          ]),
        ];
      if (path === `/containers/${ID}/json`) return [200, JSON.stringify(inspected('holdfast'))];
      if (path === `/containers/${FOREIGN_ID}/json`) return [200, JSON.stringify(inspected('other', FOREIGN_ID))];
      return [404, '{"message":"No such container: hunter2"}'];
    };
    const socket = join(directory, 'engine.sock');
    const engine = createServer((incoming, response) => {
      requests.push(`${incoming.method} ${incoming.url}`);
      const answer = answers(incoming.url ?? '');
      if (answer !== undefined) response.writeHead(answer[0]).end(answer[1]);
    });
    ends.push(
      () => engine.close(),
      () => engine.closeAllConnections(),
    );
    await once(engine.listen(socket), 'listening');
    port = await open(socket);
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  it.each(['', '/v1.24', '/v1.47'])(
    'asks for the own project alone, and tells no more than is read (%s)',
    async (version) => {
      const list = await ask(port, `${version}/containers/json?all=1`);
      expect(JSON.parse(list.text)).toEqual([
        { Id: ID, Labels: { 'com.docker.compose.project': 'holdfast', 'com.docker.compose.service': 'core' } },
      ]);
      const one = await ask(port, `${version}/containers/${ID}/json`);
      expect([list.status, one.status, one.headers.connection]).toEqual([200, 200, 'close']);
      expect(JSON.parse(one.text)).toMatchObject({ Name: '/core', State: { Health: { Status: 'healthy' } } });
      for (const { text } of [list, one]) expect(text).not.toMatch(/hunter2|Env|Cmd|Args|Source|Binds|Pid/);
      const filters = encodeURIComponent('{"label":["com.docker.compose.project=holdfast"]}');
      expect(requests).toEqual([`GET /containers/json?all=1&filters=${filters}`, `GET /containers/${ID}/json`]);
    },
  );

  it('narrows the list further down, and answers a ping', async () => {
    for (const filters of ['{"label":["a=b"]}', '{"label":{"a=b":true}}'])
      expect((await ask(port, `/containers/json?filters=${encodeURIComponent(filters)}`)).status).toBe(200);
    expect(decodeURIComponent(requests[1] ?? '')).toBe(
      'GET /containers/json?all=0&filters={"label":["com.docker.compose.project=holdfast","a=b"]}',
    );
    expect(await ask(port, '/_ping')).toMatchObject({ status: 200, text: 'OK' });
    expect(refusals).toEqual([]);
  });

  it('knows no container of another project, nor one that is gone, and says the same of both', async () => {
    const [foreign, gone] = [
      await ask(port, `/containers/${FOREIGN_ID}/json`),
      await ask(port, `/containers/${'c'.repeat(64)}/json`),
    ];
    expect([foreign.status, foreign.text]).toEqual([404, gone.text]);
    expect(foreign.text).not.toContain('hunter2');
  });

  it.each([
    '/',
    '/version',
    '/info',
    '/events',
    '/containers',
    '/containers/json/',
    '//containers/json',
    '/containers/./json',
    '/containers/../containers/json',
    '/containers/core/json',
    `/containers/${ID}/json?size=1`,
    `/containers/${ID}/logs`,
    `/containers/${ID}/export`,
    `/containers/${ID}/archive?path=/etc`,
    `/containers/${ID}%2fjson`,
    `/containers/${ID}/../../exec/json`,
    `/containers/${ID.toUpperCase()}/json`,
    `/containers/${ID}a/json`,
    '/v1.24/v1.24/_ping',
    '/v2.0/_ping',
    '/V1.24/_ping',
    '/_ping?x=1',
    '/_ping#x',
    '/containers/json?all=1&all=0',
    '/containers/json?all=yes',
    '/containers/json?size=1',
    '/containers/json?limit=1&all=1',
    '/containers/json?filters=x',
    '/containers/json?filters={%22name%22:[%22a%22]}',
    '/containers/json?filters={%22label%22:%22a%22}',
    '/containers/json?all=1?all=1',
    '/images/json',
    '/volumes',
    '/secrets',
    '/swarm',
    `/exec/${ID}/json`,
    `/containers/json?all=1&x=${'x'.repeat(5_000)}`,
    'http://127.0.0.1/_ping',
  ])('refuses GET %s, and the engine never hears of it', async (path) => {
    expect((await ask(port, path)).status).toBe(403);
    expect(requests).toEqual([]);
    expect(refusals).toEqual([{ status: 403, method: 'GET', target: path.slice(0, 200), address: '127.0.0.1' }]);
  });

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'])('refuses %s wherever it goes', async (method) => {
    for (const path of [
      '/_ping',
      '/containers/json',
      `/containers/${ID}/json`,
      '/containers/create',
      `/containers/${ID}/exec`,
    ]) {
      const { status, headers } = await ask(port, path, method);
      expect([status, headers.allow]).toEqual([405, 'GET']);
    }
    expect([requests, refusals.length]).toEqual([[], 5]);
  });

  it.each([
    ['a body', 'GET /_ping HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}', '400'],
    ['a body in pieces', 'GET /_ping HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', '400'],
    ['two lengths', 'GET /_ping HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n', '400'],
    ['an expectation', 'GET /_ping HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n', '400'],
    ['an upgrade', 'GET /_ping HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\n', '403'],
    ['a hijack', `POST /exec/${ID}/start HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\n`, '403'],
    ['a tunnel', 'CONNECT engine:80 HTTP/1.1\r\nHost: x\r\n\r\n', '403'],
    ['no HTTP', 'hello\r\n\r\n', '400'],
    ['a header without end', `GET /_ping HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, '4'],
  ])('refuses %s and hangs up', async (_, bytes, status) => {
    const got = await sendRaw(port, bytes);
    expect(got).toMatch(new RegExp(`^HTTP/1\\.1 ${status}`));
    expect([requests, refusals.length]).toEqual([[], 1]);
  });

  it('answers the first of several requests on one connection, and ends it', async () => {
    const one = 'GET /_ping HTTP/1.1\r\nHost: x\r\n\r\n';
    const got = await sendRaw(port, `${one}${one}GET /version HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(got.match(/HTTP\/1\.1 200/g)).toHaveLength(1);
    expect(requests).toEqual(['GET /_ping']);
  });

  it('is done with who neither ends a question nor hangs up, and serves the next', async () => {
    // Not one of them reads, or hangs up.
    const holders = Array.from({ length: 64 }, () => connect({ port, host: '127.0.0.1' }).pause());
    ends.push(() => holders.forEach((each) => each.destroy()));
    await Promise.all(holders.map((each) => once(each, 'connect')));
    for (const each of holders) each.on('error', () => undefined).write('GET /_p');
    const answered = (): Promise<number> =>
      ask(port, '/_ping').then(
        ({ status = 0 }) => status,
        () => 0,
      );
    await expect.poll(answered, { timeout: 30_000, interval: 250 }).toBe(200);
  });

  it('says 502 to an engine that answers wrongly, too much or not at all, without its words', async () => {
    const wrong: [number, string][] = [
      [500, 'hunter2'],
      [200, 'hunter2'],
      [200, '[{"Id":"hunter2","Labels":"hunter2"}]'],
      [200, `[${' '.repeat(9 * 1024 * 1024)}]`],
    ];
    for (const answer of wrong) {
      answers = () => answer;
      const { status, text } = await ask(port, '/containers/json');
      expect([status, text.includes('hunter2')]).toEqual([502, false]);
    }
    answers = () => undefined;
    const impatient = await open(join(directory, 'engine.sock'), 50);
    expect((await ask(impatient, '/_ping')).status).toBe(502);
    expect((await ask(await open(join(directory, 'nothing.sock')), '/_ping')).status).toBe(502);
  });
});

const obstacle = engineObstacle();

describe.skipIf(obstacle !== '')(`at a real engine${obstacle && ` (not here: ${obstacle})`}`, () => {
  const SLEEP = 'exec /bin/busybox sleep 1000';
  const secretly = (more: object): object => ({ Env: ['PASSWORD=hunter2'], ...more });
  let engine: Engine;

  beforeAll(async () => {
    engine = new Engine();
    await engine.ready();
    const HostConfig = { Binds: ['named:/named', `${engine.directory}:/bound`] };
    await engine.run('own', SLEEP, secretly({ Labels: OWN, HostConfig, Hostname: 'core' }));
    await engine.create('made', SLEEP, secretly({ Labels: { 'com.docker.compose.project': 'holdfast' } }));
    await engine.run('foreign', SLEEP, secretly({ Labels: { 'com.docker.compose.project': 'other' } }));
    await engine.run('alone', SLEEP, secretly({}));
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  it('shows what the engine shows of the own project, and nothing else', async () => {
    const options = { project: 'holdfast', alone: true };
    const straight = await containerRuntime(`unix://${engine.socket}`, options).list();
    const through = await containerRuntime(`http://127.0.0.1:${await open(engine.socket)}`, options).list();
    expect(through).toEqual(straight);
    expect(through.map(({ name }) => name)).toEqual(['made', 'own']);
    expect(through[1]?.mounts).toHaveLength(2);
    const other = { project: 'other', alone: true };
    const foreign = containerRuntime(`http://127.0.0.1:${await open(engine.socket)}`, other);
    expect(await foreign.list()).toEqual([]);
    expect(refusals).toEqual([]);
  });

  it('shows no environment, no label of others, and no path of the host', async () => {
    const port = await open(engine.socket);
    const { text: list } = await ask(port, '/v1.24/containers/json?all=1');
    const ids = (JSON.parse(list) as { Id: string }[]).map(({ Id }) => Id);
    expect(ids).toHaveLength(2);
    const details = await Promise.all(ids.map((id) => ask(port, `/containers/${id}/json`)));
    for (const { status, text } of details) {
      expect(status).toBe(200);
      for (const hidden of ['hunter2', engine.directory, 'busybox', 'Env', 'Cmd', 'Args'])
        expect(text).not.toContain(hidden);
    }
  });

  it('makes, starts and removes nothing', async () => {
    const port = await open(engine.socket);
    const all = await containerRuntime(`unix://${engine.socket}`, { project: 'holdfast' }).list();
    for (const [method, path] of [
      ['POST', '/containers/create?name=new'],
      ['POST', '/containers/own/exec'],
      ['POST', '/containers/own/kill'],
      ['DELETE', '/containers/own?force=1'],
      ['GET', '/containers/own/json'],
      ['GET', '/containers/own/logs?stdout=1'],
    ] as const)
      expect([403, 405]).toContain((await ask(port, path, method)).status);
    expect(await containerRuntime(`unix://${engine.socket}`, { project: 'holdfast' }).list()).toEqual(all);
  });
});
