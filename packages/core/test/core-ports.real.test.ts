import { once } from 'node:events';
import { copyFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { connect as connectRaw } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestCertificate, type TestPki, testPki } from '../../../test/core/fake-test-pki.ts';
import { eventually, freeOffset } from '../../../test/e2e/embedded/embedded.ts';
import { opensslClient } from '../../../test/e2e/embedded/openssl-client.ts';
import { type CorePorts, createCorePorts } from '../core-ports.ts';
import type { CoreConnection, RefusedConnection } from '../model/parts.ts';
import { KeptRevocations } from '../revocations.ts';
import { createLiveConnections } from '../tls/connections.ts';
import { memoryCertificates } from './fake-core-certificates.ts';

const PROTOCOLS = ['-tls1_2', '-tls1_3'] as const;
const PEER = { '-tls1_2': 'TLSv1.2', '-tls1_3': 'TLSv1.3' } as const;
const events: { event: string; fields: Record<string, unknown> }[] = [];
const note = (event: string, fields = {}): void => void events.push({ event, fields });
const log = { info: note, warn: note, error: note };
const certificates = memoryCertificates();
const live = createLiveConnections();
let pki: TestPki;
const refused: RefusedConnection[] = [];
let ports: CorePorts;
let revocations: KeptRevocations;
let port: { api: number; enrollment: number; streaming: number };
let at = new Date();

beforeAll(async () => {
  pki = await testPki();
  await pki.server();
  const offset = await freeOffset();
  port = { api: 8443 + offset, enrollment: 8446 + offset, streaming: 8089 + offset };
  revocations = new KeptRevocations({
    authority: {
      revokedInFiles: () => [],
      writeRevocationList: async (_, now) => ({
        thisUpdate: now,
        nextUpdate: new Date(now.getTime() + 7 * 86_400_000),
      }),
    },
    certificates,
    tableMark: () => certificates.mark(),
    live,
    rebuildContexts: () => ports.rebuildContexts(),
    log,
    now: () => at,
  });
  ports = createCorePorts({
    files: filesOf('server'),
    addresses: ['127.0.0.1'],
    ports: port,
    api: answer,
    enrollment: answer,
    stream: ({ socket, known }) => void socket.write(`for ${known?.certificate.commonName}`),
    refused: (who) => void refused.push(who),
    revocations,
    live,
    log,
    now: () => at,
    limits: { headWithinMs: 1_000 },
    limit: { streaming: 12, http: 12, reason: 'the limits of a test' },
  });
  await ports.listen();
});
afterAll(async () => {
  await ports.close(100);
  rmSync(pki.directory, { recursive: true, force: true });
});

async function answer(request: Request, connection: CoreConnection): Promise<Response> {
  const { pathname } = new URL(request.url);
  const name = connection.certificate?.commonName ?? 'nobody';
  if (pathname === '/fails') throw new Error('as the test wants it');
  if (pathname === '/revoke-me') {
    const [row] = await certificates.list('all', at, name);
    if (row !== undefined) await revocations.revoke(row, { except: connection.socket });
  }
  return new Response(`for ${name}`);
}

function filesOf(name: string): { ca: string; certificate: string; key: string } {
  const place = (file: string): string => join(pki.directory, file);
  return { ca: place('ca.pem'), certificate: place(`${name}.pem`), key: place(`${name}.key`) };
}

/** A device with a row in the table. */
async function device(name: string): Promise<TestCertificate & { id: number }> {
  const made = await pki.client(name);
  const { id } = await certificates.add(made.signed, { creator: name, clientUid: name }, at);
  return { ...made, id };
}

async function revoke(id: number): Promise<void> {
  const [row] = await certificates.byIds([id]);
  if (row !== undefined) await revocations.revoke(row);
}

const query = (certificate: TestCertificate | undefined, order = {}) =>
  opensslClient({ port: port.api, caFile: pki.ca.certificateFile, certificate, ...order });

/**
 * One request by an agent of Node; the error's code instead of a status when there is no answer.
 */
async function through(
  agent: Agent,
  path = '/',
): Promise<{ answer: number | string; socket?: object; closes?: boolean }> {
  return new Promise((resolve) => {
    const sent = request({ agent, path, host: '127.0.0.1', port: port.api }, (response) => {
      response.resume();
      const { socket } = response;
      response.once('end', () =>
        resolve({ answer: response.statusCode ?? 0, socket, closes: response.headers.connection === 'close' }),
      );
    });
    sent.once('error', (error: NodeJS.ErrnoException) => resolve({ answer: error.code ?? error.message }));
    sent.end();
  });
}

const agentOf = (certificate: TestCertificate): Agent =>
  new Agent({
    keepAlive: true,
    maxSockets: 1,
    ca: pki.ca.certificate,
    cert: certificate.certificate,
    key: certificate.key,
  });

describe.each(PROTOCOLS)('8443 by OpenSSL with %s', (protocol) => {
  it('opens to a certificate of our CA, and says whose it is', async () => {
    const { status, output } = await query(await device('ada'), { protocol });
    expect([status, /for ([a-z]{3})/.exec(output)?.[1]]).toEqual([200, 'ada']);
    const forEverything = await pki.client('ada', { usages: [] });
    expect((await query(forEverything, { protocol })).status).toBe(200);
  });

  it('answers nothing to nobody, to a certificate signed by itself, of another CA of the same name, for a server, or out of its time', async () => {
    const other = await testPki();
    const strangers = [
      undefined,
      pki.ca,
      other.ca,
      await other.client('ada'),
      await pki.client('ada', { to: new Date(Date.now() - 1000) }),
      await pki.client('ada', { from: new Date(Date.now() + 3_600_000) }),
      await pki.client('ada', { usages: ['1.3.6.1.5.5.7.3.1'] }),
      await pki.client('takserver', { usages: ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'] }),
    ];
    for (const stranger of strangers) {
      const sessionOut = join(pki.directory, 'stranger');
      rmSync(sessionOut, { force: true });
      expect((await query(stranger, { protocol, sessionOut })).status).toBeUndefined();
      // Whatever ticket came before the refusal is worth nothing.
      const again = await query(stranger, { protocol, sessionIn: sessionOut }).catch(() => ({ status: undefined }));
      expect(again.status).toBeUndefined();
    }
    rmSync(other.directory, { recursive: true, force: true });
  });

  it('resumes a session, but none from before a revocation: a new handshake of the others, nothing for the revoked', async () => {
    const [ada, ben] = [await device('ada'), await device('ben')];
    const [adas, bens] = [join(pki.directory, 'ada.session'), join(pki.directory, 'ben.session')];
    expect((await query(ada, { protocol, sessionOut: adas })).status).toBe(200);
    expect((await query(ben, { protocol, sessionOut: bens })).status).toBe(200);
    expect(await query(ada, { protocol, sessionIn: adas })).toMatchObject({ status: 200, resumed: true });
    await revoke(ada.id);
    expect(await query(ada, { protocol, sessionIn: adas })).toMatchObject({ status: undefined });
    expect(await query(ada, { protocol })).toMatchObject({ status: undefined });
    expect(await query(ben, { protocol, sessionIn: bens })).toMatchObject({ status: 200, resumed: false });
  });

  it('takes no ticket of 8446', async () => {
    const sessionOut = join(pki.directory, 'enrollment.session');
    const order = { protocol, sessionOut, port: port.enrollment };
    expect((await query(undefined, order)).status).toBe(200);
    expect(await query(undefined, { protocol, sessionIn: sessionOut, port: port.enrollment })).toMatchObject({
      resumed: true,
    });
    expect(await query(undefined, { protocol, sessionIn: sessionOut })).toMatchObject({ status: undefined });
  });

  it('looks at the dates of a resumed session too', async () => {
    const short = await pki.client('short', { to: new Date(Date.now() + 86_400_000) });
    const sessionOut = join(pki.directory, 'short.session');
    expect((await query(short, { protocol, sessionOut })).status).toBe(200);
    at = new Date(Date.now() + 2 * 86_400_000);
    const { status, resumed } = await query(short, { protocol, sessionIn: sessionOut });
    at = new Date();
    expect([status, resumed]).toEqual([undefined, true]);
  });

  it('ends the kept connection of whoever is revoked, and no other', async () => {
    const [ada, ben] = [await device('ada'), await device('ben')];
    const [adas, bens] = [agentOf(ada), agentOf(ben)];
    adas.options.maxVersion = PEER[protocol];
    const first = await through(bens);
    expect([(await through(adas)).answer, first.answer]).toEqual([200, 200]);
    await revoke(ada.id);
    expect((await through(adas)).answer).not.toBe(200);
    const second = await through(bens);
    expect([second.answer, second.socket]).toEqual([200, first.socket]);
    adas.destroy();
    bens.destroy();
  });
});

describe('the stream', () => {
  it('says whose certificate it refuses, if it is one of ours', async () => {
    const ada = await device('ada');
    await revoke(ada.id);
    refused.length = 0;
    expect((await query(ada, { port: port.streaming })).status).toBeUndefined();
    await eventually('the refusal is known', async () => refused.length > 0, 5_000);
    expect(refused).toEqual([{ username: 'ada', address: '127.0.0.1', reason: 'its certificate is revoked' }]);
  });
});

describe('8443', () => {
  it('answers the request by which somebody revokes himself, and nothing after it', async () => {
    const eve = agentOf(await device('eve'));
    expect((await through(eve)).answer).toBe(200);
    expect(await through(eve, '/revoke-me')).toMatchObject({ answer: 200, closes: true });
    expect((await through(eve)).answer).not.toBe(200);
    eve.destroy();
  });

  it('shows a renewed server certificate to whoever comes next, while open connections go on', async () => {
    const ada = await device('ada');
    const kept = agentOf(ada);
    const { socket } = await through(kept);
    const shown = async (): Promise<string> => {
      const peer = connect({ host: '127.0.0.1', port: port.enrollment, ca: pki.ca.certificate });
      await once(peer, 'secureConnect');
      const { fingerprint256 } = peer.getPeerCertificate();
      peer.destroy();
      return fingerprint256;
    };
    const before = await shown();
    const next = await pki.server('next');
    copyFileSync(next.certificateFile, join(pki.directory, 'server.pem'));
    // Only half of it is there yet.
    expect(() => ports.renew()).toThrow(/do not belong together/);
    expect(await shown()).toBe(before);
    copyFileSync(next.keyFile, join(pki.directory, 'server.key'));
    ports.renew();
    expect(await shown()).toBe(next.signed.hash);
    const after = await through(kept);
    expect([after.answer, after.socket]).toEqual([200, socket]);
    kept.destroy();
  });

  it('ends an open connection at the next request once its certificate has expired', async () => {
    const short = agentOf(await pki.client('short', { to: new Date(Date.now() + 86_400_000) }));
    expect((await through(short)).answer).toBe(200);
    at = new Date(Date.now() + 2 * 86_400_000);
    expect((await through(short)).answer).not.toBe(200);
    at = new Date();
    short.destroy();
  });
});

describe('a port', () => {
  it('gives 400 for what cannot be read, 500 for what fails, and tells the client nothing of it', async () => {
    const messagesOf = async (text: string): Promise<string> => {
      const socket = connect({ host: '127.0.0.1', port: port.enrollment, ca: pki.ca.certificate });
      let heard = '';
      socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
      socket.write(text);
      await once(socket, 'close');
      return heard;
    };
    const closing = 'Connection: close\r\n\r\n';
    expect(await messagesOf(`GET / HTTP/1.1\r\nHost: [[\r\n${closing}`)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await messagesOf('\0\x01\x02 no request\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
    const failed = await messagesOf(`GET /fails HTTP/1.1\r\nHost: a\r\n${closing}`);
    expect(failed).toMatch(/^HTTP\/1\.1 500 /);
    expect(failed).not.toContain('as the test wants it');
    expect(await messagesOf('GET / HTTP/1.1\r\n')).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('costs whoever speaks no TLS his connection, and the log a bounded number of lines', async () => {
    for (let n = 0; n < 30; n++) {
      const raw = connectRaw(port.api, '127.0.0.1');
      raw.on('error', () => undefined);
      raw.write('GET / HTTP/1.1\r\n\r\n');
      await once(raw, 'close');
    }
    expect((await query(await device('ada'))).status).toBe(200);
    expect(events.filter(({ event }) => event === 'core.handshake_failed').length).toBeLessThanOrEqual(40);
  });

  it('that is full closes the oldest connection that does nothing', async () => {
    const silent = Array.from({ length: 12 }, () => connectRaw(port.api, '127.0.0.1'));
    let closed = 0;
    for (const socket of silent) socket.on('close', () => closed++).on('error', () => undefined);
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    const ada = agentOf(await device('ada'));
    expect((await through(ada)).answer).toBe(200);
    expect(closed).toBeGreaterThanOrEqual(1);
    ada.destroy();
    for (const socket of silent) socket.destroy();
  });
});
