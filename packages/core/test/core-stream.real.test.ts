// The stream over real TLS, with @tak-ps/node-cot as the codec on the other side: XML and protobuf
// mixed, a client that never reads, one that is revoked.

import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';
import { CoTParser } from '@tak-ps/node-cot';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type TestCertificate, type TestPki, testPki } from '../../../test/core/fake-test-pki.ts';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { freePort } from '../../../test/support/free-port.ts';
import type { PlacedMembership } from '../model/stream.ts';
import { LargeEvents } from '../stream/large-events.ts';
import { Stream } from '../stream/stream.ts';
import { Admission } from '../tls/admission.ts';
import { readServerIdentity } from '../tls/server-identity.ts';
import { createLiveConnections } from '../tls/connections.ts';
import { WebSockets } from '../stream/websocket.ts';
import { CoreListener } from '../tls/core-listener.ts';
import { HttpPort } from '../tls/http-port.ts';
import { emptyArchive } from './fake-core-archive.ts';
import { cot, sa } from './fake-cot-stream.ts';

const REQUEST = cot('q1', 't-x-takp-q', '<TakControl><TakRequest version="1"/></TakControl>');
const OPS: PlacedMembership[] = [
  { name: 'Ops', direction: 'IN', place: 3 },
  { name: 'Ops', direction: 'OUT', place: 3 },
];
const revoked = new Set<string>();
const live = createLiveConnections();
const log = memoryLog();
const stream = new Stream({
  nodeId: 'node1',
  serverVersion: '5.7-RELEASE-0',
  groups: { of: async () => OPS, forget: () => undefined },
  archive: emptyArchive(),
  presence: { came: () => undefined, went: () => undefined },
  missions: { post: async () => [] },
  largeEvents: new LargeEvents({ apiUrl: 'https://127.0.0.1:8443', now: () => new Date() }),
  log,
  now: () => new Date(),
  limits: { maxWaitingBytes: 2_000_000, stalledMs: 1_500 },
});
type Protocol = 'TLSv1.2' | 'TLSv1.3';
const open: Peer[] = [];
let pki: TestPki;
let listener: CoreListener;
let port: number;
let api: HttpPort;
let apiPort: number;

beforeAll(async () => {
  pki = await testPki();
  const server = await pki.server();
  const identity = readServerIdentity({
    ca: pki.ca.certificateFile,
    certificate: server.certificateFile,
    key: server.keyFile,
  });
  port = await freePort();
  apiPort = await freePort();
  const now = (): Date => new Date();
  const admission = new Admission({
    ca: identity.ca,
    revocations: { isRevoked: (serial) => revoked.has(serial) },
    now,
  });
  const webSockets = new WebSockets((arrival) => stream.accepted(arrival));
  api = new HttpPort({
    name: 'api',
    maxConnections: 100,
    port: apiPort,
    addresses: ['127.0.0.1'],
    identity,
    admission,
    live,
    fetch: ({ url }) => new Response(new URL(url).pathname),
    upgrade: (...given) => webSockets.upgrade(...given),
    log,
  });
  await api.listen();
  listener = new CoreListener({
    name: 'stream',
    maxConnections: 100,
    port,
    addresses: ['127.0.0.1'],
    identity,
    admission,
    live,
    accepted: (arrival) => stream.accepted(arrival),
    log,
  });
  await listener.listen();
});
afterAll(async () => {
  for (const { socket } of open) socket.destroy();
  await stream.close();
  await listener.close(100);
  await api.close(100);
  rmSync(pki.directory, { recursive: true, force: true });
});

interface Heard {
  uid: string;
  type: string;
  callsign: string | undefined;
}

interface Peer {
  socket: TLSSocket;
  certificate: TestCertificate;
  heard: Heard[];
  say(text: string): void;
  /** From now on it reads and writes protobuf, once the server has agreed. */
  protobuf(): Promise<void>;
  sayProtobuf(text: string): Promise<void>;
  types(): string[];
}

function connectAs({ key, certificate: cert }: TestCertificate, protocol: Protocol = 'TLSv1.3'): TLSSocket {
  const { certificate: ca } = pki.ca;
  return connect({ port, host: '127.0.0.1', key, cert, ca, minVersion: protocol, maxVersion: protocol });
}

async function peer(name: string, protocol?: Protocol): Promise<Peer> {
  const certificate = await pki.client(name);
  const socket = connectAs(certificate, protocol);
  const heard: Heard[] = [];
  let rest: Buffer = Buffer.alloc(0);
  let form: 'xml' | 'protobuf' = 'xml';
  /** One after the other: the codec answers later. */
  let reading = Promise.resolve();
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    reading = reading.then(async () => {
      rest = Buffer.concat([rest, chunk]);
      for (let frame = nextFrame(); frame !== undefined; frame = nextFrame()) {
        const read =
          form === 'xml' ? CoTParser.from_xml(frame.toString()) : await CoTParser.from_proto(new Uint8Array(frame));
        const { uid, type } = read.raw.event._attributes;
        heard.push({ uid, type, callsign: read.raw.event.detail?.contact?._attributes?.callsign });
        if (type === 't-x-takp-r') form = 'protobuf';
      }
    });
  });

  function nextFrame(): Buffer | undefined {
    const { from, to } = form === 'xml' ? xmlFrame(rest) : protobufFrame(rest);
    if (to < 0 || to > rest.length) return undefined;
    const frame = rest.subarray(from, to);
    rest = rest.subarray(to);
    return frame;
  }

  const made: Peer = {
    socket,
    certificate,
    heard,
    say: (text) => void socket.write(text),
    async protobuf() {
      socket.write(REQUEST);
      await expect.poll(() => form).toBe('protobuf');
    },
    async sayProtobuf(text) {
      const message = Buffer.from(await CoTParser.to_proto(CoTParser.from_xml(text)));
      socket.write(Buffer.concat([Buffer.from([0xbf]), varint(message.length), message]));
    },
    types: () => heard.map(({ type }) => type),
  };
  open.push(made);
  await expect.poll(() => made.types()).toContain('t-x-takp-v');
  return made;
}

function xmlFrame(bytes: Buffer): { from: number; to: number } {
  const end = bytes.indexOf('</event>');
  return { from: bytes.indexOf('<event'), to: end < 0 ? -1 : end + '</event>'.length };
}

function protobufFrame(bytes: Buffer): { from: number; to: number } {
  let [length, at] = [0, 1];
  for (let shift = 0; at < bytes.length; shift += 7) {
    const byte = bytes[at++] ?? 0;
    length += (byte & 0x7f) << shift;
    if (byte < 0x80) return { from: at, to: bytes[0] === 0xbf ? at + length : -1 };
  }
  return { from: 0, to: -1 };
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 0x80; left >>>= 7) bytes.push((left & 0x7f) | 0x80);
  return Buffer.from([...bytes, left]);
}

describe('the stream over TLS', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)('two see each other, XML and protobuf mixed: %s', async (protocol) => {
    const ada = await peer('ada', protocol);
    ada.say(sa('uid-ada', 'ADA'));
    const bob = await peer('bob', protocol);
    await expect.poll(() => bob.heard).toContainEqual({ uid: 'uid-ada', type: 'a-f-G-U-C', callsign: 'ADA' });
    await bob.protobuf();
    await bob.sayProtobuf(sa('uid-bob', 'BÖB'));
    await expect.poll(() => ada.heard).toContainEqual({ uid: 'uid-bob', type: 'a-f-G-U-C', callsign: 'BÖB' });
    ada.say(sa('uid-ada', 'ADA', { type: 'a-f-A' }));
    await expect.poll(() => bob.heard).toContainEqual({ uid: 'uid-ada', type: 'a-f-A', callsign: 'ADA' });
    const late = await peer('late', protocol);
    expect(late.heard.map(({ uid }) => uid)).toEqual(expect.arrayContaining(['uid-ada', 'uid-bob']));
    bob.socket.destroy();
    await expect.poll(() => ada.types()).toContain('t-x-d-d');
    for (const { socket } of [ada, late]) socket.destroy();
    await expect.poll(() => stream.counts().clients).toBe(0);
  });

  it('a client that never reads loses the oldest, then the connection; the others have all', async () => {
    const [ada, bob] = [await peer('ada'), await peer('bob')];
    const slow = await peer('slow');
    slow.socket.pause();
    const much = `<remarks>${'x'.repeat(50_000)}</remarks>`;
    const before = bob.heard.length;
    for (let n = 0; n < 400; n++) {
      ada.say(cot(`m${n}`, 'a-h-G', much));
      // Bob reads in this process too, when he gets round to it: at most half of what may wait for
      // him is on its way.
      while (bob.heard.length - before < n - 16) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await expect.poll(() => bob.heard.length - before, { timeout: 15_000 }).toBe(400);
    expect(bob.heard.slice(before).map(({ uid }) => uid)).toEqual(Array.from({ length: 400 }, (_, n) => `m${n}`));
    expect(stream.counts().dropped).toBeGreaterThan(0);
    await expect.poll(() => stream.list().map(({ username }) => username)).not.toContain('slow');
    for (const { socket } of [ada, bob]) socket.destroy();
  });

  it('one that is revoked falls off at once, and cannot come back', async () => {
    const [ada, bob] = [await peer('ada'), await peer('bob')];
    bob.say(sa('uid-bob', 'BOB'));
    await expect.poll(() => stream.list().some(({ callsign }) => callsign === 'BOB')).toBe(true);
    const { serial } = bob.certificate.signed;
    revoked.add(serial);
    live.end(serial);
    await expect.poll(() => bob.socket.closed).toBe(true);
    await expect.poll(() => ada.types()).toContain('t-x-d-d');
    const again = connectAs(bob.certificate);
    again.on('error', () => undefined).resume();
    await once(again, 'close');
    expect(stream.list().map(({ username }) => username)).toEqual(['ada']);
  });

  it('broken bytes in either framing end one connection, whatever they are', async () => {
    const ada = await peer('ada');
    for (const [form, bytes] of [
      ['xml', Buffer.from('<event uid="x"><point/></detail></event>')],
      ['xml', Buffer.from([...Buffer.from('<event uid="'), 0xff, 0xfe, ...Buffer.from('"></event>')])],
      ['protobuf', Buffer.from([0xbe, 1, 2])],
      ['protobuf', Buffer.from([0xbf, 4, 0xff, 0xff, 0xff, 0xff])],
      ['protobuf', Buffer.from([0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])],
    ] as const) {
      const bad = await peer('bad');
      if (form === 'protobuf') await bad.protobuf();
      bad.socket.write(bytes);
      await expect.poll(() => bad.socket.closed).toBe(true);
    }
    ada.say(cot('p', 't-x-c-t'));
    await expect.poll(() => ada.types()).toContain('t-x-c-t-r');
  });
});

describe('the stream over WebSocket', () => {
  function dial({ key, certificate: cert }: TestCertificate, path = '/takproto/1', headers = {}): WebSocket {
    const { certificate: ca } = pki.ca;
    return new WebSocket(`wss://127.0.0.1:${apiPort}${path}`, { key, cert, ca, headers });
  }
  const webClients = (): string[] =>
    stream.list().flatMap(({ username }) => (/^(web|bad)/.test(username) ? [username] : []));
  const frame = async (text: string): Promise<Buffer> => {
    const message = Buffer.from(await CoTParser.to_proto(CoTParser.from_xml(text)));
    return Buffer.concat([Buffer.from([0xbf]), varint(message.length), message]);
  };
  async function webPeer(name: string) {
    const certificate = await pki.client(name);
    const socket = dial(certificate);
    const messages: Buffer[] = [];
    socket.on('message', (data: Buffer) => messages.push(data));
    socket.on('error', () => undefined);
    await once(socket, 'open');
    const events = async () =>
      Promise.all(
        messages.map(async (bytes) => {
          const { from, to } = protobufFrame(bytes);
          // One frame, whole, in each message.
          expect(to).toBe(bytes.length);
          return (await CoTParser.from_proto(new Uint8Array(bytes.subarray(from, to)))).raw.event._attributes;
        }),
      );
    return { socket, certificate, events, uids: async () => (await events()).map(({ uid }) => uid) };
  }

  it('carries frames of protobuf, one in each message, from the beginning and both ways', async () => {
    const ada = await peer('wada');
    ada.say(sa('uid-wada', 'WADA'));
    await expect.poll(() => stream.list().some(({ callsign }) => callsign === 'WADA')).toBe(true);
    const web = await webPeer('web');
    await expect.poll(web.uids).toContain('uid-wada');
    const before = (await web.uids()).length;
    web.socket.send(Buffer.concat([await frame(sa('uid-web', 'WEB')), await frame(cot('w2', 'a-h-G'))]));
    await expect.poll(() => ada.heard.map(({ uid }) => uid)).toEqual(expect.arrayContaining(['uid-web', 'w2']));
    const known = stream.list().find(({ username }) => username === 'wada');
    expect(known?.position?.()).toMatchObject({ lat: expect.any(Number), lon: expect.any(Number) });
    expect(Object.fromEntries(stream.list().map(({ username, framing }) => [username, framing]))).toMatchObject({
      wada: 'xml',
      web: 'protobuf',
    });
    const many = Array.from({ length: 200 }, (_, n) => cot(`m${n}`, 'a-h-G', `<x>${'y'.repeat(2_000)}</x>`));
    ada.say(many.join('') + cot('big', 'u-d-f', `<x>${'y'.repeat(200_000)}</x>`));
    await expect.poll(async () => (await web.events()).at(-1)?.type).toBe('b-f-t-r');
    expect((await web.uids()).slice(before, -1)).toEqual(many.map((_, n) => `m${n}`));
    web.socket.close();
    await expect.poll(() => ada.types()).toContain('t-x-d-d');
    ada.socket.destroy();
    await expect.poll(webClients).toEqual([]);
  });

  it('ends with the certificate, with text, and with what is no frame', async () => {
    const web = await webPeer('webby');
    const { serial } = web.certificate.signed;
    revoked.add(serial);
    live.end(serial);
    await once(web.socket, 'close');
    for (const bad of ['text', Buffer.from('<event/>'), Buffer.from([0xbf, 0xff, 0xff, 0xff, 0xff, 0x7f])]) {
      const { socket } = await webPeer('bad');
      socket.send(bad);
      await once(socket, 'close');
    }
    await expect.poll(webClients).toEqual([]);
  });

  it('is at one address, and for no page of another site', async () => {
    const certificate = await pki.client('eve');
    for (const [path, headers, status] of [
      ['/takproto/2', {}, 404],
      ['/takproto/1', { origin: 'https://evil.example' }, 403],
      ['/takproto/1', { 'sec-fetch-site': 'cross-site' }, 403],
    ] as const) {
      const socket = dial(certificate, path, headers);
      const [error] = await once(socket, 'error').catch((reason: unknown) => [reason]);
      expect(String(error)).toContain(`Unexpected server response: ${status}`);
    }
    const ours = dial(certificate, '/takproto/1?a=b', { origin: `https://127.0.0.1:${apiPort}` });
    await once(ours, 'open');
    ours.terminate();
  });
});
