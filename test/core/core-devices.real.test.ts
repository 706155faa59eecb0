// Certificates tried at servers that do what no core should, over real TLS.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { type AddressInfo, createServer as createRawServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer, type TlsOptions, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { TlsCoreDevices, type CoreDevicesOptions } from '../../shared/core/devices/devices.ts';
import type { CoreDevices } from '../../shared/core/devices/port.ts';
import { freePort } from '../support/free-port.ts';
import { connectionOf } from './core-devices-contract.ts';
import { type TestCertificate, type TestPki, testPki } from './fake-test-pki.ts';

const PONG = '<?xml version="1.0"?><event version="2.0" uid="takPong" type="t-x-c-t-r"><detail/></event>';
let pki: TestPki;
let other: TestPki;
let server: TestCertificate;
let client: TestCertificate;
beforeAll(async () => {
  pki = await testPki();
  other = await testPki();
  server = await pki.server();
  client = await pki.client('ada');
});
afterAll(() => {
  for (const { directory } of [pki, other]) rmSync(directory, { recursive: true, force: true });
});

const open: { servers: Server[]; sockets: Socket[] } = { servers: [], sockets: [] };
afterEach(() => {
  for (const socket of open.sockets.splice(0)) socket.destroy();
  for (const each of open.servers.splice(0)) each.close();
});

async function listen(each: Server): Promise<number> {
  open.servers.push(each);
  each.on('connection', (socket: Socket) => {
    open.sockets.push(socket);
    socket.on('error', () => undefined);
  });
  await once(each.listen(0, '127.0.0.1'), 'listening');
  return (each.address() as AddressInfo).port;
}

/** A server of our CA that asks for a certificate and takes any. */
function serve(talk: (socket: TLSSocket) => void, options: TlsOptions = {}): Promise<number> {
  const { certificate: cert, key } = server;
  const each = createServer({ cert, key, requestCert: true, rejectUnauthorized: false, ...options }, (socket) => {
    socket.on('error', () => undefined);
    talk(socket);
  });
  each.on('tlsClientError', () => undefined);
  return listen(each);
}

/** The newest connection; what lies below TLS. */
const reset = (): void => void open.sockets.at(-1)?.resetAndDestroy();
const answering = (socket: TLSSocket): void => void socket.on('data', () => socket.write(PONG));

function devicesAt(port: number, options: Partial<CoreDevicesOptions> = {}): CoreDevices {
  return new TlsCoreDevices({
    apiUrl: `https://127.0.0.1:${port}`,
    streamingUrl: `tls://127.0.0.1:${port}`,
    caFile: pki.ca.certificateFile,
    clientKeys: {
      read: async () => ({ keyPem: client.key, certificatePem: client.certificate, chainPem: [pki.ca.certificate] }),
    },
    ...options,
  });
}

const connect = (port: number, options: Partial<CoreDevicesOptions> = {}) => devicesAt(port, options).connect('AA');

describe('a certificate is refused', () => {
  it.each([
    ['-tls1_2', /^the core refused it \([a-z ]+\)$/],
    // Here the ping is on its way already, and a reset may take the alert with it.
    ['-tls1_3', /^the core (refused it \([a-z ]+\)|ended the connection)$/],
  ])('by an alert, in its words where they come (%s)', async (protocol, words) => {
    const port = await freePort();
    const files = ['-cert', server.certificateFile, '-key', server.keyFile, '-CAfile', other.ca.certificateFile];
    const strict = ['-Verify', '1', '-verify_return_error', '-accept', `127.0.0.1:${port}`, '-quiet', protocol];
    const peer = spawn('openssl', ['s_server', ...files, ...strict], { stdio: 'ignore' });
    try {
      await expect
        .poll(() => connect(port).catch(() => undefined))
        .toEqual({
          refused: expect.stringMatching(words),
        });
      expect(await devicesAt(port).roles('AA')).toBeUndefined();
    } finally {
      peer.kill();
    }
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('by a server that verifies it and says nothing (%s)', async (version) => {
    const strict = { ca: other.ca.certificate, rejectUnauthorized: true, minVersion: version, maxVersion: version };
    const port = await serve(answering, strict);
    expect(await connect(port)).toEqual({ refused: 'the core ended the connection' });
    expect(await devicesAt(port).roles('AA')).toBeUndefined();
  });

  it('when the connection is closed or reset after the handshake, and the port is still there', async () => {
    const closing = await serve((socket) => socket.end());
    expect(await connect(closing)).toEqual({ refused: 'the core ended the connection' });
    expect(await devicesAt(closing).roles('AA')).toBeUndefined();
    const resetting = await serve((socket) => socket.once('data', reset));
    expect(await connect(resetting)).toEqual({ refused: 'the core ended the connection' });
  });

  it('when there is silence, or anything but an answer, for 5 s', async () => {
    const silent = await serve(() => undefined);
    const garbage = await serve((socket) => socket.write('\0<event </event> t-x-c-t-r <event type="t-x-c-t">'));
    const refused = { refused: 'the core sent nothing for 5 s after the handshake' };
    expect(await Promise.all([connect(silent), connect(garbage)])).toEqual([refused, refused]);
  });
});

describe('of several addresses', () => {
  it('the first that can be reached is used, and a refusal by it counts', async () => {
    const [nobody, port] = [await freePort(), await serve(answering)];
    const refusing = await serve((socket) => socket.end());
    const urls = (...ports: number[]) => ({
      streamingUrl: ports.map((each) => `tls://127.0.0.1:${each}`).join(),
      apiUrl: ports.map((each) => `https://127.0.0.1:${each}`).join(),
    });
    expect(await connect(0, urls(nobody, port))).toHaveProperty('connection');
    expect(await connect(0, urls(nobody, refusing, port))).toEqual({ refused: 'the core ended the connection' });
    expect(await devicesAt(0, urls(nobody, refusing)).roles('AA')).toBeUndefined();
  });

  it('all are named when none can be reached', async () => {
    const [first, second] = [await freePort(), await freePort()];
    const streamingUrl = `tls://127.0.0.1:${first},tls://127.0.0.1:${second}`;
    await expect(connect(0, { streamingUrl })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(new RegExp(`:${first} refuses connections.*:${second} refuses connections`)),
    });
  });
});

describe('nothing is said of the certificate', () => {
  it('where nobody listens, or nobody finishes a handshake', async () => {
    const mute = await listen(createRawServer(() => undefined));
    const hasty = await listen(createRawServer((socket) => socket.destroy()));
    const unavailable = (message: RegExp) => ({ code: 'unavailable', message: expect.stringMatching(message) });
    await expect(connect(await freePort())).rejects.toMatchObject(unavailable(/refuses connections/));
    await expect(connect(mute)).rejects.toMatchObject(unavailable(/did not finish the TLS handshake/));
    await expect(connect(hasty)).rejects.toMatchObject(unavailable(/before it presented its certificate/));
    await expect(devicesAt(hasty).roles('AA')).rejects.toMatchObject(unavailable(/before it presented/));
  });

  it('by a server that dies after the handshake', async () => {
    const port = await serve(() => {
      for (const each of open.servers) each.close();
      reset();
    });
    await expect(connect(port)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/no longer listens/),
    });
  });

  it('by a server of another CA, of another name, or that speaks no TLS', async () => {
    const upstream = (message: RegExp) => ({ code: 'upstream', message: expect.stringMatching(message) });
    const port = await serve(answering);
    const elsewhere = { streamingUrl: `tls://localhost:${port}` };
    await expect(connect(port, { caFile: other.ca.certificateFile })).rejects.toMatchObject(
      upstream(/is not from our CA .*CORE_DATA_DIR/),
    );
    await expect(connect(port, elsewhere)).rejects.toMatchObject(upstream(/not issued to localhost/));
    const plain = await listen(createRawServer((socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n')));
    await expect(connect(plain)).rejects.toMatchObject(upstream(/does not speak TLS/));
  });

  it('where an address, the CA or a usable key is missing; the key is not in the error', async () => {
    const port = await serve(answering);
    await expect(connect(port, { streamingUrl: undefined })).rejects.toThrow(/set CORE_STREAMING_URL/);
    await expect(devicesAt(port, { apiUrl: undefined }).roles('AA')).rejects.toThrow(/set CORE_API_URL/);
    await expect(connect(port, { caFile: join(pki.directory, 'none.pem') })).rejects.toThrow(/none\.pem \(ENOENT\)/);
    const key = { keyPem: 'SECRET', certificatePem: client.certificate, chainPem: [] };
    await expect(connect(port, { clientKeys: { read: async () => key } })).rejects.toMatchObject({
      code: 'upstream',
      message: expect.not.stringContaining('SECRET'),
    });
  });

  it('by an endless event', async () => {
    const port = await serve((socket) => {
      socket.write('<event uid="endless">');
      const more = (error?: Error | null): void => {
        if (!error) socket.write('x'.repeat(65_536), more);
      };
      more();
    });
    await expect(connect(port)).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringMatching(/more than/),
    });
  });
});

describe('connections', () => {
  it('never resume a session', async () => {
    const resumed: boolean[] = [];
    const port = await serve((socket) => {
      resumed.push(socket.isSessionReused());
      answering(socket);
    });
    const devices = devicesAt(port);
    for (let n = 0; n < 3; n++) await devices.close(connectionOf(await devices.connect('AA')));
    expect(resumed).toEqual([false, false, false]);
  });

  it('are 50 at most, however many are asked for at once, and make room when they end', async () => {
    const devices = devicesAt(await serve(answering));
    const tried = await Promise.allSettled(Array.from({ length: 60 }, () => devices.connect('AA')));
    const met = tried.flatMap((each) => (each.status === 'fulfilled' ? [connectionOf(each.value)] : []));
    expect(met).toHaveLength(50);
    expect(tried.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'unavailable' } });
    for (const each of met) await devices.close(each);
    await expect.poll(async () => devices.connect('AA').catch(() => undefined)).toBeDefined();
  });

  it('end by themselves, and then answer no more', async () => {
    const devices = devicesAt(await serve(answering), { heldForMs: 300 });
    const connection = connectionOf(await devices.connect('AA'));
    await expect.poll(() => devices.answers(connection)).toBe(false);
    await expect(devices.send(connection, 'x')).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('do not take an answer to an earlier ping for one to this', async () => {
    let pings = 0;
    const port = await serve((socket) => socket.on('data', () => ++pings === 1 && socket.write(PONG)));
    const devices = devicesAt(port);
    expect(await devices.answers(connectionOf(await devices.connect('AA')))).toBe(false);
  });
});

describe('the roles', () => {
  const roles = async (answer: string | undefined) =>
    devicesAt(
      await serve((socket) => socket.once('data', () => (answer === undefined ? undefined : socket.end(answer)))),
    ).roles('AA');
  const ok = (body: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

  it('are what 8443 says', async () => {
    expect(await roles(ok('["ROLE_ADMIN","ROLE_ANONYMOUS"]'))).toEqual(['ROLE_ADMIN', 'ROLE_ANONYMOUS']);
  });

  it.each([401, 403])('are none for a certificate that gets %i', async (status) => {
    expect(await roles(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`)).toBeUndefined();
  });

  it.each([
    ['an error', 'HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n', 'upstream'],
    ['no JSON', ok('<html>'), 'upstream'],
    ['something else', ok('{"roles":[1]}'), 'upstream'],
    ['too much', ok(`["${'x'.repeat(100_000)}"]`), 'upstream'],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n', 'upstream'],
    ['half an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n["', 'unavailable'],
    ['nothing', undefined, 'unavailable'],
  ])('are not read out of %s', async (_, answer, code) => {
    await expect(roles(answer)).rejects.toMatchObject({ code });
  });
});
