import { spawn, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { TlsState } from '../../shared/host/port.ts';
import { tlsEndpoints } from '../../shared/host/tls-endpoints.ts';
import { issue, type Issued } from '../support/certificates.ts';

let root: Issued;
let foreign: Issued;
let good: Issued;
beforeAll(async () => {
  root = await issue('own root', undefined, { ca: true });
  foreign = await issue('foreign root', undefined, { ca: true });
  good = await issue('good', root);
});

let directory: string;
let caFile: string;
let servers: Server[];
let peers: Socket[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-tls-'));
  caFile = join(directory, 'ca.pem');
  writeFileSync(caFile, root.pem);
  servers = [];
  peers = [];
});
afterEach(async () => {
  for (const peer of peers) peer.destroy();
  for (const server of servers) if (server.listening) await once(server.close(), 'close');
  rmSync(directory, { recursive: true, force: true });
});

async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  servers.push(server);
  server.on('connection', (socket: Socket) => {
    peers.push(socket);
    socket.on('error', () => {});
  });
  await once(server.listen(0, host), 'listening');
  return (server.address() as AddressInfo).port;
}

/** A TLS server on a port of its own, which remembers what happened to it. */
async function serve(leaf: Issued, options: TlsOptions & { chain?: Issued[] } = {}, host?: string) {
  const cert = [leaf, ...(options.chain ?? [])].map(({ pem }) => pem).join('');
  const server = createTlsServer({ cert, key: leaf.key, ...options });
  const seen = { names: [] as (string | false)[], data: 0, clean: 0, errors: [] as string[] };
  server.on('secureConnection', (socket: TLSSocket) => {
    seen.names.push(socket.servername ?? false);
    socket.on('data', (chunk) => (seen.data += chunk.length));
    socket.on('end', () => seen.clean++);
    socket.on('error', (error) => seen.errors.push(error.message));
  });
  server.on('tlsClientError', (error) => seen.errors.push(error.message));
  return { port: await listen(server, host), seen };
}

const MTLS_12: TlsOptions = { requestCert: true, rejectUnauthorized: true, maxVersion: 'TLSv1.2' };
const MTLS_13: TlsOptions = { requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' };

function inspect(port: number, host = 'localhost', trust: 'own' | 'public' = 'own'): Promise<TlsState> {
  return tlsEndpoints({ ownCaFile: caFile, withinMs: 1500 }).inspect({ name: 'it', host, port, trust });
}

async function stateOf(leaf: Issued, options: TlsOptions & { chain?: Issued[] } = {}): Promise<TlsState> {
  return inspect((await serve(leaf, options)).port);
}

/** What a process of its own says: trusted as public, trusted as own. */
async function inProcess(port: number, ownCaFile: string, extra: string): Promise<string> {
  const script = `const { tlsEndpoints } = await import(${JSON.stringify(resolve('shared/host/tls-endpoints.ts'))});
    const { inspect } = tlsEndpoints({ ownCaFile: process.argv[1], withinMs: 60_000 });
    const states = ['public', 'own'].map((trust) => inspect({ name: 'it', host: 'localhost', port: ${port}, trust }));
    console.log((await Promise.all(states)).map((state) => state.trusted).join());`;
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: extra };
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, ownCaFile], { env });
  return (await child.stdout.toArray()).join('').trim();
}

/** A server that handles each connection so. */
function raw(handle: (socket: Socket) => void): Promise<number> {
  return listen(createServer((socket) => handle(socket.resume())));
}

const NOTHING_SEEN = { reachable: false, trusted: false, expires_at: undefined, subject: undefined, issuer: undefined };

describe('a trusted endpoint', () => {
  it('has a certificate of the own CA, shown with its end, subject and issuer', async () => {
    expect(await stateOf(good)).toEqual({
      reachable: true,
      trusted: true,
      error: undefined,
      expires_at: new Date(Math.floor(good.certificate.notAfter.getTime() / 1000) * 1000).toISOString(),
      subject: 'CN=good, O=Holdfast test',
      issuer: 'CN=own root, O=Holdfast test',
      fingerprint: new X509Certificate(good.pem).fingerprint256,
    });
  });

  it('may be asked at another address than that of its name', async () => {
    const leaf = await issue('elsewhere', root, { names: ['cot.example.org'] });
    const { port, seen } = await serve(leaf);
    const endpoint = { name: 'it', host: 'cot.example.org', port, trust: 'own', address: '127.0.0.1' } as const;
    const state = await tlsEndpoints({ ownCaFile: caFile }).inspect(endpoint);
    expect(state).toMatchObject({ trusted: true, error: undefined });
    await expect.poll(() => seen.names).toEqual(['cot.example.org']);
  });

  it('may be an IP address that the certificate names, and is then asked without a server name', async () => {
    const leaf = await issue('by address', root, { names: ['127.0.0.1', '::1'] });
    const [v4, v6] = [await serve(leaf), await serve(leaf, {}, '::1')];
    expect(await inspect(v4.port, '127.0.0.1')).toMatchObject({ trusted: true, error: undefined });
    expect(await inspect(v6.port, '::1')).toMatchObject({ trusted: true, error: undefined });
    expect(await inspect(v4.port, 'localhost')).toMatchObject({ trusted: false });
    await expect.poll(() => [...v4.seen.names, ...v6.seen.names]).toEqual([false, 'localhost', false]);
  });

  it('may be signed by an intermediate authority that the server sends, or that is the own CA', async () => {
    const between = await issue('between', root, { ca: true });
    const leaf = await issue('below', between);
    expect(await stateOf(leaf, { chain: [between] })).toMatchObject({ trusted: true });
    writeFileSync(caFile, between.pem);
    expect(await stateOf(leaf)).toMatchObject({ trusted: true });
  });

  it('counts for the CA as it is at this moment', async () => {
    const { port } = await serve(await issue('next', foreign));
    const endpoints = tlsEndpoints({ ownCaFile: caFile });
    const endpoint = { name: 'it', host: 'localhost', port, trust: 'own' } as const;
    expect(await endpoints.inspect(endpoint)).toMatchObject({ trusted: false });
    writeFileSync(caFile, root.pem + foreign.pem);
    expect(await endpoints.inspect(endpoint)).toMatchObject({ trusted: true });
  });

  it('may be signed by an authority of NODE_EXTRA_CA_CERTS, be it public or own', async () => {
    const { port } = await serve(good);
    const foreignFile = join(directory, 'foreign.pem');
    writeFileSync(foreignFile, foreign.pem);
    const run = (extra: string): Promise<string> => inProcess(port, foreignFile, extra);
    expect(await run(caFile)).toBe('true,true');
    expect(await run(foreignFile)).toBe('false,false');
  });
});

describe('an endpoint that is reachable and not trusted', () => {
  it('has expired', async () => {
    const leaf = await issue('old', root, { from: new Date('2026-01-01'), to: new Date('2026-01-02T12:00:00Z') });
    expect(await stateOf(leaf)).toMatchObject({
      reachable: true,
      trusted: false,
      error: 'expired on 2026-01-02',
      expires_at: '2026-01-02T12:00:00.000Z',
    });
  });

  it('is not valid yet', async () => {
    const leaf = await issue('early', root, { from: new Date('2101-02-03'), to: new Date('2102-01-01') });
    expect(await stateOf(leaf)).toMatchObject({
      reachable: true,
      trusted: false,
      error: 'is not valid before 2101-02-03',
    });
  });

  it('has an authority that expired', async () => {
    const old = await issue('old root', undefined, { ca: true, to: new Date(Date.now() - 1000) });
    writeFileSync(caFile, old.pem);
    expect((await stateOf(await issue('orphan', old))).error).toMatch(/^has an authority that expired: CN=old root/);
  });

  it('has a foreign CA, with or without sending it', async () => {
    const leaf = await issue('stranger', foreign);
    const error = 'is signed by an unknown authority (CN=foreign root, O=Holdfast test)';
    expect(await stateOf(leaf, { chain: [foreign] })).toMatchObject({ reachable: true, trusted: false, error });
    expect((await stateOf(leaf)).error).toBe(`${error}, or does not send the intermediate certificates`);
  });

  it('has the own CA where only public ones count', async () => {
    const { port } = await serve(good);
    const state = await inspect(port, 'localhost', 'public');
    expect(state).toMatchObject({ reachable: true, trusted: false });
    expect(state.error).toMatch(/^is signed by an unknown authority/);
    const without = tlsEndpoints({ ownCaFile: undefined });
    expect(await without.inspect({ name: 'it', host: 'localhost', port, trust: 'own' })).toEqual(state);
  });

  it('does not send its intermediate certificate', async () => {
    const leaf = await issue('below', await issue('between', root, { ca: true }));
    const state = await stateOf(leaf);
    expect(state).toMatchObject({ reachable: true, trusted: false });
    expect(state.error).toBe(
      'is signed by an unknown authority (CN=between, O=Holdfast test), or does not send the intermediate certificates',
    );
  });

  it('is self-signed', async () => {
    const state = await stateOf(await issue('alone', undefined));
    expect(state).toMatchObject({ reachable: true, trusted: false, error: 'is self-signed' });
  });

  it('is made out to another host, of which it names a few', async () => {
    const leaf = await issue('other', root, { names: ['a.example', '192.0.2.1'] });
    const error = 'is issued to a.example, 192.0.2.1, not to localhost';
    expect(await stateOf(leaf)).toMatchObject({ reachable: true, trusted: false, error });
    const many = await issue('many', root, { names: Array.from({ length: 90 }, (_, index) => `h${index}.example`) });
    expect((await stateOf(many)).error).toMatch(/h4\.example, 85 more, not to localhost$/);
  });

  it('has all its faults named', async () => {
    const { error } = await stateOf(await issue('worst', undefined, { names: ['a.example'] }));
    expect(error).toBe('is self-signed; is issued to a.example, not to localhost');
  });

  it('is reported together with a CA file that is missing, no certificate, or no CA', async () => {
    rmSync(caFile);
    expect((await stateOf(good)).error).toContain(`; the CA file ${caFile} can't be read (ENOENT)`);
    writeFileSync(caFile, 'garbage');
    expect((await stateOf(good)).error).toContain(`; the CA file ${caFile} can't be read (`);
    writeFileSync(caFile, good.pem);
    const state = await stateOf(good);
    expect(state).toMatchObject({ reachable: true, trusted: false });
    expect(state.error).toContain(`; the CA file ${caFile} contains no CA certificate`);
  });
});

describe('an endpoint that demands a client certificate', () => {
  it('is inspected with TLS 1.3', async () => {
    expect(await stateOf(good, MTLS_13)).toMatchObject({ reachable: true, trusted: true, error: undefined });
    expect(await stateOf(await issue('x', foreign), MTLS_13)).toMatchObject({ reachable: true, trusted: false });
  });

  it('is inspected with TLS 1.2, though that handshake fails', async () => {
    const { port, seen } = await serve(good, MTLS_12);
    expect(await inspect(port)).toEqual(await stateOf(good));
    await expect.poll(() => seen.errors.join()).toMatch(/peer did not return a certificate/);
    expect(seen.names).toEqual([]);
  });

  it('is judged with TLS 1.2 as strictly as any other', async () => {
    const faulty: [Issued, string][] = [
      [await issue('x', foreign), 'is signed by an unknown authority (CN=foreign root'],
      [await issue('x', undefined), 'is self-signed'],
      [await issue('x', root, { names: ['a.example'] }), 'is issued to a.example, not to localhost'],
      [await issue('x', root, { from: new Date('2025-01-01'), to: new Date('2025-02-01') }), 'expired on 2025-02-01'],
    ];
    for (const [leaf, error] of faulty) {
      const state = await stateOf(leaf, MTLS_12);
      expect(state).toMatchObject({ reachable: true, trusted: false, expires_at: expect.any(String) });
      expect(state.error).toContain(error);
    }
  });

  it('is inspected even when it cuts the connection without a word; one that falls silent or talks nonsense is not reached', async () => {
    const { port } = await serve(good, MTLS_12);
    const endings: [(socket: Socket) => unknown, object][] = [
      [(socket) => socket.resetAndDestroy(), { reachable: true, trusted: true }],
      [(socket) => socket.end(), { reachable: true, trusted: true }],
      [() => undefined, { reachable: false, error: expect.stringMatching(/^does not finish the TLS handshake/) }],
      [(socket) => socket.write(Buffer.alloc(64, 'x')), { reachable: false, trusted: false }],
    ];
    for (const [end, expected] of endings) {
      const proxy = await raw((client) => {
        const server = connect(port, '127.0.0.1').on('data', (flight) => client.write(flight));
        peers.push(server);
        let flights = 0;
        client.on('data', (flight) => (flights++ === 0 ? server.write(flight) : end(client)));
      });
      expect(await inspect(proxy)).toMatchObject(expected);
    }
  });
});

describe('an endpoint that is not reachable', () => {
  it('refuses connections', async () => {
    const port = await raw(() => {});
    await once(servers[0]!.close(), 'close');
    const error = `refuses connections on port ${port}`;
    expect(await inspect(port)).toEqual({ ...NOTHING_SEEN, error });
    expect(await inspect(port, '127.0.0.1')).toEqual({ ...NOTHING_SEEN, error });
  });

  it('has a name that does not exist', async () => {
    const { error } = await inspect(443, 'no-such-host.invalid');
    expect(error).toMatch(
      /^has (an unknown host name|a host name that can't be resolved right now): no-such-host\.invalid$/,
    );
  });

  it('speaks HTTP, or greets with a banner', async () => {
    const http = await listen(createHttpServer((_, answer) => answer.end('hello')));
    const ssh = await raw((socket) => socket.write('SSH-2.0-OpenSSH_9.9\r\n'));
    for (const port of [http, ssh])
      expect(await inspect(port)).toEqual({ ...NOTHING_SEEN, error: `does not speak TLS on port ${port}` });
  });

  it('accepts connections and says nothing', async () => {
    const port = await raw(() => {});
    const error = `accepts connections on port ${port} but sends nothing within 1.5 s`;
    expect(await inspect(port)).toEqual({ ...NOTHING_SEEN, error });
  });

  it('closes each connection at once', async () => {
    const port = await raw((socket) => socket.end());
    const error = `closes the connection on port ${port} without a TLS handshake`;
    expect(await inspect(port)).toEqual({ ...NOTHING_SEEN, error });
  });

  it('refuses the handshake', async () => {
    const port = await listen(createTlsServer({}));
    const { reachable, error } = await inspect(port);
    expect(reachable).toBe(false);
    expect(error).toMatch(new RegExp(`^fails at the TLS handshake on port ${port}: .*alert`));
  });

  it('does not even answer the attempt to connect', async () => {
    const script = `require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
      process.stdout.write(String(this.address().port)); });`;
    const child = spawn(process.execPath, ['-e', script]);
    try {
      const port = Number(String(await once(child.stdout, 'data')));
      child.kill('SIGSTOP');
      for (let filler = 0; filler < 4; filler++) peers.push(connect(port, '127.0.0.1').on('error', () => {}));
      await new Promise((tick) => setTimeout(tick, 200));
      const error = `does not answer on port ${port} within 1.5 s`;
      expect(await inspect(port)).toEqual({ ...NOTHING_SEEN, error });
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('has a port that cannot exist, and still nothing is thrown', async () => {
    const state = await inspect(70_000);
    expect(state).toMatchObject(NOTHING_SEEN);
    expect(state.error).toMatch(/^can't be inspected: .*70000/);
  });

  it('waits in vain for a CA file that cannot be opened', async () => {
    rmSync(caFile);
    expect(spawnSync('mkfifo', [caFile]).status).toBe(0);
    const state = await inspect((await serve(good)).port);
    writeFileSync(caFile, root.pem);
    expect(state).toMatchObject(NOTHING_SEEN);
    expect(state.error).toContain(`the CA file ${caFile} can't be read (its file system does not answer)`);
  });
});

describe('an inspection', () => {
  it('leaves nothing open, sends no data, and lets the server see an orderly end', async () => {
    const { port, seen } = await serve(good);
    const mtls = await serve(good, MTLS_12);
    const silent = await raw(() => {});
    for (let round = 0; round < 5; round++) await Promise.all([inspect(port), inspect(mtls.port), inspect(silent)]);
    await expect.poll(() => peers.every((peer) => peer.destroyed)).toBe(true);
    await expect.poll(() => seen.clean).toBe(5);
    expect(seen).toMatchObject({ data: 0, errors: [] });
  });

  it('leaves nothing behind that keeps a process from its end', async () => {
    const begun = performance.now();
    expect(await inProcess((await serve(good)).port, caFile, '')).toBe('false,true');
    expect(performance.now() - begun).toBeLessThan(10_000);
  });
});
