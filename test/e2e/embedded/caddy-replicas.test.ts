// Several management processes behind the proxy; the real Caddy in front of echoes.

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestPki, testPki } from '../../core/fake-test-pki.ts';
import { type Arrived, type EchoAnswer, type EchoServer, startEcho } from '../../support/echo-server.ts';
import { asManagement, GOOD } from './behind-caddy.ts';
import { type Caddy, caddyMissing, newCaddy } from './caddy.ts';
import { eventually } from './embedded.ts';
import { answerOf, ask, openTls, type RawRequest } from './raw-request.ts';

const ADDRESS = '192.0.2.44';
const PING = '/api/ping';

let pki: TestPki;
let caddy: Caddy;
let replicas: EchoServer[];
let flows: EchoServer;
/** The next request that is not a check of its health meets a replica that hangs up. */
let breaks: string | undefined;

function replica(arrived: Arrived): EchoAnswer | 'hang up' {
  if (arrived.url !== breaks) return asManagement(arrived);
  breaks = undefined;
  return 'hang up';
}

const to = (request: Partial<RawRequest> = {}): RawRequest => ({
  port: caddy.ports.https,
  ca: pki.ca.certificate,
  name: '',
  host: `${ADDRESS}:${caddy.ports.https}`,
  ...request,
});

const arrivals = (url: string): number[] =>
  replicas.map(({ arrived }) => arrived.filter((each) => each.url === url).length);

const statuses = async (request: Partial<RawRequest>, count: number): Promise<number[]> => {
  const answers = Array.from({ length: count }, async () => (await ask(to(request))).status);
  return Promise.all(answers);
};

describe.skipIf(caddyMissing !== undefined)(caddyMissing ?? 'several management processes behind the proxy', () => {
  beforeAll(async () => {
    pki = await testPki();
    replicas = await Promise.all([startEcho(undefined, replica), startEcho(undefined, replica)]);
    flows = await startEcho();
    const upstreams = replicas.map(({ place }) => place).join(' ');
    const env = { MANAGEMENT: upstreams, PORTAL: upstreams, FLOWS: flows.place };
    caddy = await newCaddy({ mode: 'direct', serverAddress: ADDRESS, env: { ...env, REPLICAS: 'several' } });
    writeFileSync(join(caddy.certificates, 'ca.pem'), pki.ca.certificate);
    const { certificateFile, keyFile } = await pki.server('server-1', ['tak.test']);
    writeFileSync(join(caddy.certificates, 'tls.caddy'), `tls ${certificateFile} ${keyFile}\n`);
    await caddy.start();
    await caddy.healthy();
  });
  afterAll(async () => {
    await caddy?.end();
    await Promise.all([...(replicas ?? []), flows].map((each) => each?.end()));
    if (pki !== undefined) rmSync(pki.directory, { recursive: true, force: true });
  });

  it('share the requests, and each is asked for its health', async () => {
    expect(await statuses({ line: 'GET /shared' }, 8)).toEqual(Array.from({ length: 8 }, () => 200));
    expect(arrivals('/shared').every((count) => count > 0)).toBe(true);
    await eventually('a check of each', () => arrivals(PING).every((count) => count > 0), 15_000);
  });

  it('repeats a request that reads on the other one when its connection breaks, and no request that writes', async () => {
    for (const [method, status, count] of [
      ['GET', 200, 2],
      ['HEAD', 200, 2],
      ['POST', 502, 1],
      ['DELETE', 502, 1],
    ] as const) {
      const url = `/broken/${method}`;
      breaks = url;
      const body = method === 'POST' ? { body: 'a=1' } : {};
      expect([method, (await ask(to({ line: `${method} ${url}`, ...body }))).status]).toEqual([method, status]);
      expect(arrivals(url).reduce((sum, each) => sum + each)).toBe(count);
    }
  });

  it('keeps both while a client sends bodies that break off', async () => {
    const before = arrivals('/after');
    for (let count = 0; count < 8; count++) {
      const socket = await openTls(to());
      socket.write(`POST /odd HTTP/1.1\r\nHost: ${ADDRESS}\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n`);
      const { status } = await answerOf(socket);
      expect(status).toBeGreaterThanOrEqual(400);
    }
    expect(await statuses({ line: 'GET /after' }, 8)).toEqual(Array.from({ length: 8 }, () => 200));
    expect(arrivals('/after').map((count, index) => count > (before[index] ?? 0))).toEqual([true, true]);
  });

  it('fails no request when one is gone, at the door either, and uses it again when it is back', async () => {
    const [gone] = replicas;
    const place = gone?.place ?? '';
    await gone?.end();
    const door = { headers: [`Authorization: ${GOOD}`] };
    expect(await statuses({ line: 'GET /one-left' }, 12)).toEqual(Array.from({ length: 12 }, () => 200));
    expect(await statuses({ line: 'POST /one-left', body: 'a=1' }, 12)).toEqual(Array.from({ length: 12 }, () => 200));
    expect(await statuses({ line: 'GET /nodered/flows', ...door }, 6)).toEqual(Array.from({ length: 6 }, () => 200));
    expect(arrivals('/one-left')).toEqual([0, 24]);

    replicas[0] = await startEcho(undefined, replica, Number(place.split(':')[1]));
    await eventually(
      'a request at the one that came back',
      async () => {
        await ask(to({ line: 'GET /back' }));
        return (arrivals('/back')[0] ?? 0) > 0;
      },
      15_000,
    );
  });

  it('is refused with the name of the second upstream without REPLICAS', async () => {
    const upstreams = replicas.map(({ place }) => place).join(' ');
    const env = { MANAGEMENT: upstreams, PORTAL: upstreams, FLOWS: flows.place };
    const other = await newCaddy({ mode: 'direct', serverAddress: ADDRESS, env });
    try {
      writeFileSync(join(other.certificates, 'ca.pem'), pki.ca.certificate);
      writeFileSync(join(other.certificates, 'tls.caddy'), 'tls internal\n');
      await other.start();
      await expect(other.healthy()).rejects.toThrow(`unrecognized subdirective ${replicas[1]?.place}`);
    } finally {
      await other.end();
    }
  });
});
