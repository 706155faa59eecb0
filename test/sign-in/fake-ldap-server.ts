// A small LDAP server that answers as it is told to, byte by byte: honest by default, hostile when a test wants it.

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

export interface LdapRequest {
  id: number;
  kind: 'bind' | 'search' | 'unbind' | 'other';
  /** Of a bind the name, of a search the base. */
  dn: string;
  /** Of a bind. */
  password: string;
  /** Who has bound last on this connection; '' for nobody. */
  identity: string;
  /** How many connections came before this one. */
  connection: number;
}

/** Sends what it likes; `honest` answers as a directory would. */
export type LdapMood = (request: LdapRequest, socket: Socket, honest: () => void) => void;

export interface LdapServerFake {
  port: number;
  mood: LdapMood;
  /** What it does with a new connection before anything is asked. */
  welcome: (socket: Socket) => void;
  readonly requests: LdapRequest[];
  readonly open: Set<Socket>;
  connections: number;
  /** DNs with passwords, all in lower case. */
  readonly passwords: Map<string, string>;
  readonly entries: Map<string, Record<string, string[]>>;
  close: () => Promise<void>;
}

export function tlv(tag: number, ...parts: (Buffer | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  if (content.length < 128) return Buffer.concat([Buffer.from([tag, content.length]), content]);
  const header = Buffer.from([tag, 0x84, 0, 0, 0, 0]);
  header.writeUInt32BE(content.length, 2);
  return Buffer.concat([header, content]);
}

export function message(id: number, operation: Buffer): Buffer {
  const number = Buffer.alloc(4);
  number.writeInt32BE(id);
  return tlv(0x30, tlv(0x02, number), operation);
}

export const BIND = 0x61;
export const SEARCH = 0x65;

/** The end of a bind or search. */
export function done(id: number, operation: number, code = 0, words = ''): Buffer {
  return message(id, tlv(operation, tlv(0x0a, Buffer.from([code])), tlv(0x04, ''), tlv(0x04, words)));
}

export function entry(id: number, dn: string, attributes: Record<string, string[]>): Buffer {
  const list = Object.entries(attributes).map(([name, values]) =>
    tlv(0x30, tlv(0x04, name), tlv(0x31, ...values.map((value) => tlv(0x04, value)))),
  );
  return message(id, tlv(0x64, tlv(0x04, dn), tlv(0x30, ...list)));
}

export async function startLdapServer(tls?: { key: string; cert: string }): Promise<LdapServerFake> {
  const accept = (socket: Socket): void => serve(socket, fake);
  const server = tls === undefined ? createServer(accept) : createTlsServer(tls, accept);
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const fake: LdapServerFake = {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    mood: (_request, _socket, honest) => honest(),
    welcome: () => {},
    requests: [],
    open: new Set(),
    connections: 0,
    passwords: new Map(),
    entries: new Map(),
    close: async () => {
      for (const socket of fake.open) socket.destroy();
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
  return fake;
}

function serve(socket: Socket, fake: LdapServerFake): void {
  const connection = fake.connections++;
  let identity = '';
  let held = Buffer.alloc(0);
  fake.open.add(socket);
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('close', () => fake.open.delete(socket));
  fake.welcome(socket);
  socket.on('data', (chunk) => {
    held = Buffer.concat([held, chunk]);
    if (held[0] !== 0x30) socket.destroy();
    if (socket.destroyed) return;
    for (let whole = first(held); whole !== undefined; whole = first(held)) {
      held = held.subarray(whole.length);
      const request = { ...readRequest(whole), identity, connection };
      fake.requests.push(request);
      fake.mood(request, socket, () => {
        if (request.kind === 'bind') {
          const right = fake.passwords.get(request.dn.toLowerCase()) === request.password;
          identity = right ? request.dn : '';
          socket.write(done(request.id, BIND, right ? 0 : 49));
        } else if (request.kind === 'search') {
          const found = fake.entries.get(request.dn.toLowerCase());
          if (found !== undefined) socket.write(entry(request.id, request.dn, found));
          socket.write(done(request.id, SEARCH, found === undefined ? 32 : 0));
        } else socket.end();
      });
    }
  });
}

/** Cuts off the value that begins here. */
function first(bytes: Buffer): Buffer | undefined {
  const { start, end } = extent(bytes);
  return bytes.length >= 2 && start <= bytes.length && end <= bytes.length ? bytes.subarray(0, end) : undefined;
}

function extent(bytes: Buffer): { start: number; end: number } {
  const size = bytes[1] ?? 0;
  if (size < 0x80) return { start: 2, end: 2 + size };
  const start = 2 + (size & 0x7f);
  return { start, end: bytes.length < start ? Infinity : start + bytes.readUIntBE(2, size & 0x7f) };
}

function values(bytes: Buffer): { tag: number; content: Buffer }[] {
  const found = [];
  for (let rest = bytes; rest.length >= 2;) {
    const { start, end } = extent(rest);
    found.push({ tag: rest[0] ?? 0, content: rest.subarray(start, end) });
    rest = rest.subarray(end);
  }
  return found;
}

function readRequest(bytes: Buffer): Pick<LdapRequest, 'id' | 'kind' | 'dn' | 'password'> {
  const [number, operation] = values(values(bytes)[0]?.content ?? bytes);
  const id = number?.content.readIntBE(0, number.content.length) ?? 0;
  const parts = operation === undefined || operation.tag === 0x42 ? [] : values(operation.content);
  const text = (at: number): string => parts[at]?.content.toString('utf8') ?? '';
  if (operation?.tag === 0x60) return { id, kind: 'bind', dn: text(1), password: text(2) };
  if (operation?.tag === 0x63) return { id, kind: 'search', dn: text(0), password: '' };
  return { id, kind: operation?.tag === 0x42 ? 'unbind' : 'other', dn: '', password: '' };
}
