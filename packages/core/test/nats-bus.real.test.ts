import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, TLSSocket } from 'node:tls';
import { afterEach, expect, it, vi } from 'vitest';
import { ensureServerCertificate, type ServerCertificateFiles } from '@holdfast/pki/server-certificate';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { NatsBus, type NatsOptions } from '../mesh/nats-bus.ts';

const MEGABYTE = Buffer.alloc(1024 * 1024);
const WITHIN = { timeout: 30_000 };
const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function certified(...names: string[]): Promise<ServerCertificateFiles> {
  const directory = mkdtempSync(join(tmpdir(), 'nats-bus-'));
  ends.push(() => rmSync(directory, { recursive: true }));
  return ensureServerCertificate(directory, names, new Date());
}

/** Answers as a NATS server does, until it hangs: then it takes nothing in. */
class SmallNats {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];
  /** Also of those that did not get in. */
  connections = 0;
  hangs = false;

  constructor(files: ServerCertificateFiles) {
    const context = { cert: readFileSync(files.certificate), key: readFileSync(files.key) };
    this.#server = createServer((socket) => this.#greet(socket, context));
  }

  #greet(socket: Socket, context: { cert: Buffer; key: Buffer }): void {
    this.connections++;
    this.#sockets.push(socket);
    socket.on('error', () => undefined);
    if (this.hangs) return;
    socket.write(
      'INFO {"server_id":"S","proto":1,"version":"2.12.12","max_payload":1048576,"tls_required":true,"headers":true}\r\n',
    );
    const secure = new TLSSocket(socket, { isServer: true, secureContext: createSecureContext(context) });
    secure.on('error', () => undefined);
    secure.on('data', (chunk: Buffer) => {
      if (this.hangs) socket.pause();
      else for (const _ of chunk.toString('latin1').matchAll(/PING\r\n/g)) secure.write('PONG\r\n');
    });
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    ends.push(() => {
      for (const socket of this.#sockets) socket.destroy();
      this.#server.close();
    });
    return (this.#server.address() as AddressInfo).port;
  }
}

function busOf(port: number, caFile: string, options: Partial<NatsOptions> = {}) {
  const log = memoryLog();
  const bus = new NatsBus({
    url: `tls://127.0.0.1:${port}`,
    username: 'core',
    password: 'nats-password-1',
    caFile,
    node: 'core',
    log,
    ...options,
  });
  ends.push(() => bus.close());
  return { bus, log };
}

async function untilUp(bus: NatsBus): Promise<void> {
  await vi.waitFor(() => expect(bus.isUp).toBe(true), WITHIN);
}

it('knows a server by its address alone', async () => {
  const files = await certified('127.0.0.1');
  const nats = new SmallNats(files);
  const { bus } = busOf(await nats.listen(), files.ca);
  await untilUp(bus);
});

it('refuses a server of another address', async () => {
  const files = await certified('127.0.0.2', 'localhost');
  const nats = new SmallNats(files);
  const { bus, log } = busOf(await nats.listen(), files.ca);
  await vi.waitFor(() => expect(nats.connections).toBeGreaterThan(2), WITHIN);
  expect(bus.isUp).toBe(false);
  expect(log.events).toEqual([
    { level: 'warn', event: 'mesh.unreachable', fields: { error: expect.stringMatching(/127\.0\.0\.1/) } },
  ]);
});

it('says why it does not get in, and trusts a CA that comes to the file later', async () => {
  const [files, others] = [await certified('127.0.0.1'), await certified('127.0.0.1')];
  const nats = new SmallNats(files);
  const { bus, log } = busOf(await nats.listen(), others.ca);
  await vi.waitFor(() => expect(nats.connections).toBeGreaterThan(2), WITHIN);
  expect(log.events.map(({ event }) => event)).toEqual(['mesh.unreachable']);
  writeFileSync(others.ca, readFileSync(files.ca));
  await untilUp(bus);
});

it('leaves a server that hangs, whatever still waits for it, and comes back', async () => {
  const files = await certified('127.0.0.1');
  const nats = new SmallNats(files);
  const { bus } = busOf(await nats.listen(), files.ca, { pingEveryMs: 100 });
  await untilUp(bus);
  nats.hangs = true;
  for (let n = 0; n < 64; n++) bus.publish('events', MEGABYTE);
  await vi.waitFor(() => expect(bus.isUp).toBe(false), WITHIN);
  nats.hangs = false;
  await untilUp(bus);
});

it('lets no more wait for a server than the limit', async () => {
  const files = await certified('127.0.0.1');
  const nats = new SmallNats(files);
  const { bus, log } = busOf(await nats.listen(), files.ca, { maxUnconfirmedBytes: 8 * MEGABYTE.length });
  await untilUp(bus);
  for (let n = 0; n < 64; n++) {
    bus.publish('events', MEGABYTE);
    await bus.fence();
  }
  expect(bus.isUp).toBe(true);
  nats.hangs = true;
  for (let n = 0; n < 8; n++) bus.publish('events', MEGABYTE);
  expect(bus.isUp).toBe(true);
  bus.publish('events', MEGABYTE);
  expect(bus.isUp).toBe(false);
  expect(log.events.map(({ event }) => event)).toEqual(['mesh.connected', 'mesh.overloaded', 'mesh.disconnected']);
  nats.hangs = false;
  await untilUp(bus);
});
