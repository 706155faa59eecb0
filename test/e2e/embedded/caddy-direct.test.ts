// Direct mode: one host of any name, with the certificate that the core writes; the real Caddy in
// front of echoes.

import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestPki, testPki } from '../../core/fake-test-pki.ts';
import { type Arrived, type EchoServer, startEcho } from '../../support/echo-server.ts';
import { asManagement, BAD, GOOD } from './behind-caddy.ts';
import { type Caddy, caddyMissing, newCaddy } from './caddy.ts';
import { eventually } from './embedded.ts';
import { answerOf, ask, askPlain, openTls, type RawRequest, textOf } from './raw-request.ts';

/** Nothing of the network: no client names an address in the handshake. */
const ADDRESS = '192.0.2.44';
const WEBSOCKET = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

let pki: TestPki;
let caddy: Caddy;
let management: EchoServer;
let portal: EchoServer;
let flows: EchoServer;
let core: EchoServer;

/** As the core does it: the pair first, then the line that names it, in one step. */
async function writeCertificate(serial: string): Promise<void> {
  const { certificateFile, keyFile } = await pki.server(`server-${serial}`, ['tak.test', 'takserver']);
  const file = join(caddy.certificates, 'tls.caddy');
  writeFileSync(`${file}.new`, `tls ${certificateFile} ${keyFile}\n`);
  renameSync(`${file}.new`, file);
}

const to = (request: Partial<RawRequest> = {}): RawRequest => ({
  port: caddy.ports.https,
  ca: pki.ca.certificate,
  name: '',
  host: `${ADDRESS}:${caddy.ports.https}`,
  ...request,
});

async function servedSerial(): Promise<string> {
  const socket = await openTls(to());
  const serial = socket.getPeerX509Certificate()?.serialNumber ?? '';
  socket.destroy();
  return serial;
}

const last = ({ arrived }: EchoServer): Arrived | undefined => arrived.at(-1);
const value = (arrived: Arrived | undefined, name: string): string | undefined =>
  arrived?.headers.find(([each]) => each === name)?.[1];

describe.skipIf(caddyMissing !== undefined)(caddyMissing ?? 'the proxy in direct mode', () => {
  beforeAll(async () => {
    pki = await testPki();
    [management, portal, flows] = await Promise.all([startEcho(undefined, asManagement), startEcho(), startEcho()]);
    core = await startEcho(await pki.server('core', ['core']));
    const env = { MANAGEMENT: management.place, PORTAL: portal.place, FLOWS: flows.place, CORE: core.place };
    caddy = await newCaddy({ mode: 'direct', serverAddress: ADDRESS, env });
    writeFileSync(join(caddy.certificates, 'ca.pem'), pki.ca.certificate);
  });
  afterAll(async () => {
    await caddy?.end();
    await Promise.all([management?.end(), portal?.end(), flows?.end(), core?.end()]);
    if (pki !== undefined) rmSync(pki.directory, { recursive: true, force: true });
  });

  it('ends with the name of the file while the core has not written it, and serves when it is started again', async () => {
    await caddy.start();
    await expect(caddy.healthy()).rejects.toThrow(/caddy ended with 1[^]*certificates\/tls\.caddy/);
    await writeCertificate('1');
    await caddy.start();
    await caddy.healthy();
    expect((await ask(to())).status).toBe(200);
  });

  it('serves every name and address in Host, and any or none in the handshake', async () => {
    for (const name of ['', 'tak.test', 'takserver', 'evil.test'])
      for (const host of [ADDRESS, 'tak.test', 'localhost', 'evil.test', '[::1]']) {
        const trusted = name === 'evil.test' ? { ca: undefined } : {};
        const answer = await ask(to({ name, host, ...trusted, headers: [`Authorization: ${GOOD}`, 'Cookie: a=1'] }));
        expect(answer.status).toBe(200);
        expect([value(last(portal), 'authorization'), value(last(portal), 'cookie')]).toEqual([GOOD, 'a=1']);
      }
  });

  it("guards the core's enrollment: no password reaches it that was not counted and found right", async () => {
    const { enrollment: port } = caddy.ports;
    const enroll = (headers: string[]) =>
      ask(to({ port, host: `${ADDRESS}:${port}`, headers, line: 'POST /Marti/api/tls/signClient/v2', body: 'x' }));
    expect((await enroll([`Authorization: ${BAD}`])).status).toBe(401);
    expect(core.arrived).toEqual([]);
    expect((await enroll([`Authorization: ${GOOD}`])).status).toBe(200);
    expect(value(last(core), 'authorization')).toBe(GOOD);
    expect(last(management)?.url).toBe('/auth/verify?base=core');
    await ask(to({ port, host: `${ADDRESS}:${port}`, line: 'POST /oauth/token', body: 'username=a&password=b' }));
    expect([core.arrived.length, last(management)?.url]).toEqual([1, '/oauth/token']);
  });

  it('gives the portal the root and the monitor its own place, each as it knows its addresses', async () => {
    const console = 'a=1; holdfast_face=console';
    for (const [requested, cookie, upstream, arrived] of [
      ['/', 'a=1', portal, '/'],
      ['/', 'holdfast_face=portal', portal, '/'],
      ['/', 'xholdfast_face=console', portal, '/'],
      ['/', console, management, '/'],
      ['/people?page=2', console, management, '/people?page=2'],
      ['/api/health?view=status', 'a=1', portal, '/api/health?view=status'],
      ['/monitor/api/health?view=status', 'a=1', management, '/api/health?view=status'],
      ['/monitor/auth/verify', 'a=1', management, '/auth/verify'],
      ['/monitors', 'a=1', portal, '/monitors'],
      ['/noderedx/', 'a=1', portal, '/noderedx/'],
    ] as const) {
      const headers = ['Remote-User: webadmin', 'X-Forwarded-For: 192.0.2.9', `Cookie: ${cookie}`];
      await ask(to({ line: `GET ${requested}`, headers }));
      expect([requested, last(upstream)?.url]).toEqual([requested, arrived]);
      expect([value(last(upstream), 'remote-user'), value(last(upstream), 'x-forwarded-for')]).toEqual([
        undefined,
        '127.0.0.1',
      ]);
    }
  });

  it('turns a browser to the monitor and back, by a cookie and a way to a path of the same host alone', async () => {
    const here = `https://${ADDRESS}:${caddy.ports.https}`;
    for (const [query, face, location] of [
      ['/monitor/', 'console', '/'],
      ['/monitor/people?page=2', 'console', '/people?page=2'],
      ['/monitor//evil.test', 'console', '/evil.test'],
      ['/portal/', 'portal', '/'],
    ] as const) {
      const { status, headers } = await ask(to({ line: `GET ${query}` }));
      expect([query, status, headers.get('location')]).toEqual([query, 303, `${here}${location}`]);
      expect(headers.get('set-cookie')).toBe(
        `holdfast_face=${face}; Path=/; Max-Age=43200; Secure; HttpOnly; SameSite=Lax`,
      );
    }
    for (const place of ['/monitor', '/portal', '/nodered'])
      expect((await ask(to({ line: `GET ${place}` }))).headers.get('location')).toBe(`${place}/`);
  });

  it('turns nobody away from the host, however the address is written', async () => {
    const requests = [
      '/monitor%2F@evil.test',
      '/monitor%2f@evil.test/',
      '/monitor%2F.evil.test',
      '/monitor%2F:1@evil.test',
      '/%6Donitor%2F@evil.test',
      '/MONITOR%2F@evil.test',
      '/x/../monitor%2F@evil.test',
      '/monitor%2Fapi/health',
      '/portal%2F@evil.test',
      '/portal%2F.evil.test',
      '/monitor/../portal%2F@evil.test',
      '//portal%2F@evil.test',
    ];
    const before = management.arrived.length;
    for (const path of requests) {
      const { status, headers } = await ask(to({ line: `GET ${path}` }));
      const answer = [path, status, headers.get('location'), headers.get('set-cookie')];
      expect(answer).toEqual([path, 404, undefined, undefined]);
    }
    expect(management.arrived.length).toBe(before);
    for (const path of ['/@evil.test', '/%2Fevil.test', '/%5Cevil.test', '///evil.test', '/./@evil.test'])
      for (const place of ['/monitor', '//monitor', '/%6Donitor', '/portal']) {
        const { headers } = await ask(to({ line: `GET ${place}${path}` }));
        expect(new URL(headers.get('location') ?? '').host).toBe(`${ADDRESS}:${caddy.ports.https}`);
      }
  });

  it('turns nobody by what a page of another site loads or sends, and by nothing but GET and HEAD', async () => {
    const fetched = (site: string, mode: string, dest: string): string[] => [
      `Sec-Fetch-Site: ${site}`,
      `Sec-Fetch-Mode: ${mode}`,
      `Sec-Fetch-Dest: ${dest}`,
    ];
    for (const [method, headers, status] of [
      ['GET', fetched('cross-site', 'no-cors', 'image'), 403],
      ['GET', fetched('same-site', 'cors', 'empty'), 403],
      ['GET', fetched('cross-site', 'navigate', 'iframe'), 403],
      ['POST', fetched('cross-site', 'navigate', 'document'), 403],
      ['POST', ['Origin: https://evil.test'], 403],
      ['POST', [], 405],
      ['DELETE', fetched('same-origin', 'cors', 'empty'), 405],
      ['GET', fetched('cross-site', 'navigate', 'document'), 303],
      ['GET', fetched('none', 'navigate', 'document'), 303],
      ['HEAD', fetched('same-origin', 'cors', 'empty'), 303],
    ] as const)
      for (const place of ['/monitor/', '/portal/']) {
        const answer = await ask(to({ line: `${method} ${place}`, headers: [...headers] }));
        const turned = answer.headers.has('set-cookie');
        expect([method, headers, answer.status, turned]).toEqual([method, headers, status, status === 303]);
        expect(answer.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD' : undefined);
      }
  });

  it('lets nobody to the flow engine but by the door, without what signs in', async () => {
    const line = 'GET /nodered/flows?a=1';
    const lies = ['Cookie: __Host-holdfast=x', 'Remote-User: webadmin', 'remote_user: webadmin'];
    for (const place of [
      '/nodered/',
      '//nodered/',
      '/NodeRED/',
      '/monitor/../nodered/',
      '/nodered/../nodered/',
      '/%6eodered/',
    ]) {
      const before = flows.arrived.length;
      const { status } = await ask(to({ line: `GET ${place}`, headers: [`Authorization: ${BAD}`, ...lies] }));
      expect([place, status, flows.arrived.length]).toEqual([
        place,
        /^\/(monitor|\/)/.test(place) ? status : 401,
        before,
      ]);
    }
    expect((await ask(to({ line, headers: [`Authorization: ${GOOD}`, ...lies] }))).status).toBe(200);
    expect(last(management)?.url).toBe('/auth/verify?role=admin');
    expect(last(flows)?.url).toBe('/flows?a=1');
    const names = (last(flows)?.headers ?? []).map(([name]) => name);
    expect(names.filter((name) => /^(authorization|cookie|remote.*)$/.test(name)).toSorted()).toEqual([
      'remote-groups',
      'remote-user',
    ]);
    expect(value(last(flows), 'remote-user')).toBe('ada');
    const foreign = [`Authorization: ${GOOD}`, 'Origin: https://evil.test'];
    expect((await ask(to({ line: 'POST /nodered/flows', headers: foreign }))).status).toBe(403);
  });

  it('redirects plain HTTP, and promises no browser that there will always be TLS', async () => {
    const answer = await askPlain(to({ port: caddy.ports.http, host: ADDRESS, line: 'GET /x?y=1' }));
    expect([answer.status, answer.headers.get('location')]).toEqual([308, `https://${ADDRESS}/x?y=1`]);
    expect([answer.headers.get('server'), (await ask(to())).headers.get('strict-transport-security')]).toEqual([
      undefined,
      undefined,
    ]);
  });

  it('takes up a new certificate without a restart, and hangs up on nobody', async () => {
    const pid = caddy.pid();
    const before = await servedSerial();

    const signed = [`Authorization: ${GOOD}`];
    const socket = await openTls(to());
    let heard = '';
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')));
    socket.write(textOf(to({ line: 'GET /nodered/comms', headers: [...signed, ...WEBSOCKET] })));
    await expect.poll(() => heard).toContain('101 Switching Protocols');

    const slow = await openTls(to());
    const whole = textOf(to({ line: 'POST /nodered/flows', headers: signed, body: 'first half, second half' }));
    slow.write(whole.slice(0, -5));
    await new Promise((written) => slow.write('', written));

    await writeCertificate('2');
    await eventually('the new certificate', async () => (await servedSerial()) !== before, 15_000);

    slow.write(whole.slice(-5));
    expect((await answerOf(slow)).status).toBe(200);
    expect(last(flows)?.body).toBe('first half, second half');
    socket.write('still here');
    await expect.poll(() => heard).toMatch(/still here$/);
    socket.destroy();
    expect(caddy.pid()).toBe(pid);
    expect((await ask(to())).status).toBe(200);
  });

  it('goes on with the certificate it has when the new one cannot be read, and says so', async () => {
    const before = await servedSerial();
    writeFileSync(join(caddy.certificates, 'tls.caddy'), 'tls /nowhere/server-3.pem /nowhere/server-3.key\n');
    await eventually('the complaint', () => caddy.log().includes('/nowhere/server-3.pem'), 15_000);
    expect(await servedSerial()).toBe(before);
    await writeCertificate('4');
    await eventually('the next certificate', async () => (await servedSerial()) !== before, 15_000);
  });
});
