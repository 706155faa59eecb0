import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect as connectRaw, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type TestCertificate, type TestPki, testPki } from '../../../test/core/fake-test-pki.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { type CorePorts, createCorePorts } from '../core-ports.ts';
import { CoreListener } from '../tls/core-listener.ts';
import { createLiveConnections } from '../tls/connections.ts';
import { readServerIdentity } from '../tls/server-identity.ts';

/** Every address of 127.0.0.0/8 is this machine's. */
const BALANCER = '127.0.0.2';
const V1 = 'PROXY TCP4 198.51.100.9 192.0.2.1 50123 8089\r\n';
const SIGNATURE = '0d0a0d0a000d0a515549540a';
const ASK = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
const events: { event: string; fields: Record<string, unknown> }[] = [];
const note = (event: string, fields = {}): void => void events.push({ event, fields });
const log = { info: note, warn: note, error: note };
const live = createLiveConnections();
let pki: TestPki;
let ports: CorePorts;
let port: { api: number; enrollment: number; streaming: number };
let ada: TestCertificate;

function files(): { ca: string; certificate: string; key: string } {
  const place = (file: string): string => join(pki.directory, file);
  return { ca: place('ca.pem'), certificate: place('server.pem'), key: place('server.key') };
}

beforeAll(async () => {
  pki = await testPki();
  await pki.server();
  ada = await pki.client('ada');
  port = { api: await freePort(), enrollment: await freePort(), streaming: await freePort() };
  const answer = ({ clientAddress }: { clientAddress: string }): Response => new Response(`at ${clientAddress}`);
  ports = createCorePorts({
    files: files(),
    addresses: ['127.0.0.1'],
    ports: port,
    api: (_, connection) => answer(connection),
    enrollment: (_, connection) => answer(connection),
    stream: ({ socket, clientAddress, clientPort }) => void socket.write(`at ${clientAddress} ${clientPort}`),
    isTrustedProxy: (address) => address === BALANCER,
    revocations: { isRevoked: () => false },
    live,
    log,
    now: () => new Date(),
    limit: { streaming: 12, http: 12, reason: 'the limits of a test' },
  });
  await ports.listen();
});
beforeEach(() => (events.length = 0));
afterAll(async () => {
  await ports.close(100);
  rmSync(pki.directory, { recursive: true, force: true });
});

interface Order {
  to?: number;
  from?: string;
  /** After the handshake. */
  say?: string;
}

/** What comes first after a header in these parts and a handshake as ada. */
async function heard(header: readonly (Buffer | string)[], order: Order = {}): Promise<string> {
  const { to = port.streaming, from = BALANCER, say = '' } = order;
  const raw = connectRaw({ host: '127.0.0.1', port: to, localAddress: from, noDelay: true });
  raw.on('error', () => undefined);
  await once(raw, 'connect');
  for (const part of header) {
    raw.write(part);
    if (header.length > 1) await delay(2);
  }
  const { key, certificate: cert } = ada;
  const socket = connect({ socket: raw, ca: pki.ca.certificate, key, cert, checkServerIdentity: () => undefined });
  if (say !== '') socket.write(say);
  const word = await new Promise<string>((resolve) => {
    socket.on('error', () => resolve('closed')).on('close', () => resolve('closed'));
    socket.once('data', (chunk: Buffer) => resolve(chunk.toString()));
  });
  socket.destroy();
  return word;
}

async function looks(header: string, from: string): Promise<void> {
  const raw = connectRaw({ host: '127.0.0.1', port: port.streaming, localAddress: from });
  await once(raw, 'connect');
  raw.end(header);
  await once(raw.resume(), 'close');
}

describe('the PROXY protocol', () => {
  it('names the client of a connection on 8089, however the header is cut', async () => {
    expect(await heard([V1])).toBe('at 198.51.100.9 50123');
    expect(await heard(V1.split(''))).toBe('at 198.51.100.9 50123');
    const address = '20010db8000000000000000000000001';
    const v2 = Buffer.from(`${SIGNATURE}21210027${address}${address}c3cb1f99040000`, 'hex');
    expect(await heard([v2])).toBe('at 2001:db8::1 50123');
    expect(await heard([v2.subarray(0, 13), v2.subarray(13, 17), v2.subarray(17)])).toBe('at 2001:db8::1 50123');
  });

  it('counts on 8443 and 8446 too', async () => {
    expect(await heard([V1], { to: port.api, say: ASK })).toContain('at 198.51.100.9');
    expect(await heard([V1], { to: port.enrollment, say: ASK })).toContain('at 198.51.100.9');
  });

  it('writes IPv4 as IPv4', async () => {
    expect(await heard(['PROXY TCP6 ::ffff:198.51.100.9 ::1 50123 8089\r\n'])).toBe('at 198.51.100.9 50123');
  });

  it('leaves its own address to a proxy that names no client or speaks TLS at once', async () => {
    const local = Buffer.from(`${SIGNATURE}20000000`, 'hex');
    for (const header of [[], ['PROXY UNKNOWN\r\n'], [local]])
      expect(await heard(header)).toMatch(/^at 127\.0\.0\.2 \d+$/);
  });

  it('is no TLS from anybody else', async () => {
    expect(await heard([V1], { from: '127.0.0.1' })).toBe('closed');
    expect(events.map(({ event, fields }) => [event, fields['address']])).toEqual([
      ['core.handshake_failed', '127.0.0.1'],
    ]);
  });

  it('ends a connection with an invalid header', async () => {
    expect(await heard([V1.replace('100.9', '100.900')])).toBe('closed');
    expect(await heard([`PROXY TCP4 ${'9'.repeat(200)}`])).toBe('closed');
    const why = { port: 'streaming', address: BALANCER };
    expect(events).toEqual([
      { event: 'core.proxy_header_refused', fields: { ...why, reason: 'an invalid PROXY header' } },
      { event: 'core.proxy_header_refused', fields: { ...why, reason: 'a PROXY header without an end' } },
    ]);
  });

  it('logs no health check, and of others the client', async () => {
    await looks('', BALANCER);
    await looks(V1, BALANCER);
    await looks(`${V1}GET / HTTP/1.1\r\n\r\n`, BALANCER);
    expect(events.map(({ event, fields }) => [event, fields['address']])).toEqual([
      ['core.handshake_failed', '198.51.100.9'],
    ]);
  });

  it('logs no health check that is gone before it is accepted', async () => {
    const leave = `
      const raw = require('node:net').connect({ host: '127.0.0.1', port: ${port.streaming}, localAddress: '${BALANCER}' });
      raw.on('connect', () => raw.write(${JSON.stringify(V1)}, () => raw.resetAndDestroy()));`;
    // Nothing is accepted here before it ends.
    expect(spawnSync(process.execPath, ['-e', leave]).status).toBe(0);
    expect(await heard([V1])).toBe('at 198.51.100.9 50123');
    expect(events).toEqual([]);
  });

  it('gives each client behind a proxy the share of one address', async () => {
    const open: Socket[] = [];
    for (let count = 0; count < 10; count++) {
      const raw = connectRaw({ host: '127.0.0.1', port: port.streaming, localAddress: BALANCER });
      await once(raw, 'connect');
      raw.on('error', () => undefined).write(`${V1.replace('100.9', '100.7')}\x16`);
      open.push(raw);
    }
    await once((open[0] as Socket).resume(), 'close');
    expect(events[0]).toEqual({ event: 'core.gave_way', fields: { port: 'streaming', address: '198.51.100.7' } });
    for (const raw of open) raw.destroy();
  });

  it('waits only so long for a header, and ends with the port', async () => {
    const number = await freePort();
    const listener = new CoreListener({
      name: 'late',
      port: number,
      addresses: ['127.0.0.1'],
      identity: readServerIdentity(files()),
      live,
      accepted: () => undefined,
      isTrustedProxy: () => true,
      log,
      maxConnections: 1,
      handshakeWithinMs: 300,
    });
    await listener.listen();
    const silent = async (): Promise<Socket> => {
      const raw = connectRaw({ host: '127.0.0.1', port: number });
      await once(raw, 'connect');
      return raw.resume();
    };
    const first = await silent();
    await once(await silent(), 'close');
    await once(first, 'close');
    const own = events.filter(({ fields }) => fields['port'] === 'late');
    expect(own.map(({ event, fields }) => [event, fields['reason']])).toEqual([
      ['core.turned_away', '1 connections without a PROXY header'],
      ['core.proxy_header_refused', 'no PROXY header in time'],
    ]);
    const last = await silent();
    await Promise.all([listener.close(60_000), once(last, 'close')]);
  });
});
