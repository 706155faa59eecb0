// A client of LDAP that sends whatever bytes it is told to, and a server to send them to.

import { connect, type Socket } from 'node:net';
import type { Log } from '@holdfast/kit/log';
import { createLdapServer, type LdapServerOptions } from '../ldap/server.ts';
import { type FakePerson, fakeRoster, type FakeRoster } from './fake-roster.ts';

export const CORE = 'dc=core,dc=example';
export const WEB = 'dc=web,dc=example';
export const SERVICE = 'adm_ldapservice';

export const PEOPLE: FakePerson[] = [
  { username: SERVICE, password: 'service' },
  {
    username: 'Alice',
    password: 'right',
    appPassword: 'once',
    name: 'Alice Ö',
    email: 'alice@example.org',
    groups: ['core_red', 'staff'],
    attributes: { callsign: 'RED-1' },
  },
  { username: 'bob', password: 'bobs', email: 'bob@example.org', groups: ['core_red'] },
  { username: 'gone', password: 'gones', isActive: false, groups: ['core_red'] },
];

export const user = (name: string, base = CORE): string => `cn=${name},ou=users,${base}`;

export function tlv(tag: number, ...contents: (Buffer | string)[]): Buffer {
  const body = Buffer.concat(contents.map((content) => Buffer.from(content)));
  const { length } = body;
  const head = length < 128 ? [length] : [0x83, length >> 16, (length >> 8) & 0xff, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), body]);
}

export const int = (value: number, tag = 2): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return tlv(tag, bytes);
};
export const str = (text: Buffer | string, tag = 4): Buffer => tlv(tag, text);
export const bool = (value: boolean): Buffer => tlv(1, Buffer.from([value ? 255 : 0]));

export const control = (oid: string, critical: boolean, value?: Buffer): Buffer =>
  tlv(0x30, str(oid), ...(critical ? [bool(true)] : []), ...(value === undefined ? [] : [str(value)]));

export const envelope = (id: number, operation: Buffer, controls: Buffer[] = []): Buffer =>
  tlv(0x30, int(id), operation, ...(controls.length > 0 ? [tlv(0xa0, ...controls)] : []));

export const bindOperation = (dn: string, password: string, version = 3): Buffer =>
  tlv(0x60, int(version), str(dn), str(password, 0x80));

export const equal = (attribute: string, value: string): Buffer => tlv(0xa3, str(attribute), str(value));
export const present = (attribute: string): Buffer => str(attribute, 0x87);
export const like = (attribute: string, ...pieces: [number, string][]): Buffer =>
  tlv(0xa4, str(attribute), tlv(0x30, ...pieces.map(([tag, piece]) => str(piece, tag))));
export const EVERYTHING = present('objectClass');

export interface SearchOptions {
  scope?: 0 | 1 | 2 | 3;
  filter?: Buffer;
  attributes?: string[];
  sizeLimit?: number;
  timeLimit?: number;
  typesOnly?: boolean;
}

export const searchOperation = (base: string, options: SearchOptions = {}): Buffer =>
  tlv(
    0x63,
    str(base),
    int(options.scope ?? 2, 10),
    int(0, 10),
    int(options.sizeLimit ?? 0),
    int(options.timeLimit ?? 0),
    bool(options.typesOnly ?? false),
    options.filter ?? EVERYTHING,
    tlv(0x30, ...(options.attributes ?? []).map((name) => str(name))),
  );

export const page = (size: number, cookie: Buffer = Buffer.alloc(0), critical = true): Buffer =>
  control('1.2.840.113556.1.4.319', critical, tlv(0x30, int(size), str(cookie)));

interface Node {
  tag: number;
  body: Buffer;
}

export function nodes(bytes: Buffer): Node[] {
  const found: Node[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes[at] ?? 0;
    let length = bytes[at + 1] ?? 0;
    let start = at + 2;
    if (length > 127) {
      const count = length & 127;
      length = bytes.readUIntBE(start, count);
      start += count;
    }
    found.push({ tag, body: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return found;
}

export interface Answer {
  id: number;
  tag: number;
  /** Of a result. */
  code: number;
  text: string;
  /** Of an extended answer. */
  name?: string;
  value?: string;
  /** Of an entry. */
  dn: string;
  attributes: Record<string, string[]>;
  cookie?: Buffer;
}

function readAnswer(body: Buffer): Answer {
  const [id, operation, controls] = nodes(body);
  if (id === undefined || operation === undefined) throw new Error('not an answer');
  const parts = nodes(operation.body);
  const answer: Answer = {
    id: id.body.readUIntBE(0, id.body.length),
    tag: operation.tag,
    code: -1,
    text: '',
    dn: '',
    attributes: {},
  };
  if (operation.tag === 0x64) {
    answer.dn = String(parts[0]?.body);
    for (const pair of nodes(parts[1]?.body ?? Buffer.alloc(0))) {
      const [name, values] = nodes(pair.body);
      answer.attributes[String(name?.body)] = nodes(values?.body ?? Buffer.alloc(0)).map((each) => String(each.body));
    }
    return answer;
  }
  answer.code = parts[0]?.body[0] ?? -1;
  answer.text = String(parts[2]?.body);
  const name = parts.find(({ tag }) => tag === 0x8a);
  const value = parts.find(({ tag }) => tag === 0x8b);
  if (name !== undefined) answer.name = String(name.body);
  if (value !== undefined) answer.value = String(value.body);
  const [paged] = controls === undefined ? [] : nodes(controls.body);
  if (paged !== undefined) {
    const [, pagedValue] = nodes(paged.body);
    const [inner] = nodes(pagedValue?.body ?? Buffer.alloc(0));
    answer.cookie = nodes(inner?.body ?? Buffer.alloc(0))[1]?.body ?? Buffer.alloc(0);
  }
  return answer;
}

export class Wire {
  readonly socket: Socket;
  readonly answers: Answer[] = [];
  readonly closed: Promise<void>;
  isClosed = false;
  #rest = Buffer.alloc(0);
  #wake: (() => void)[] = [];
  #lastId = 0;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('error', () => undefined);
    this.socket.on('data', (chunk: Buffer) => {
      this.#rest = Buffer.concat([this.#rest, chunk]);
      this.#cut();
    });
    this.closed = new Promise((resolve) => {
      this.socket.on('close', () => {
        this.isClosed = true;
        this.#notify();
        resolve();
      });
    });
  }

  #cut(): void {
    for (;;) {
      if (this.#rest.length < 2) break;
      const first = this.#rest[1] ?? 0;
      const extra = first > 127 ? first & 127 : 0;
      if (this.#rest.length < 2 + extra) break;
      const length = extra === 0 ? first : this.#rest.readUIntBE(2, extra);
      const end = 2 + extra + length;
      if (this.#rest.length < end) break;
      this.answers.push(readAnswer(this.#rest.subarray(2 + extra, end)));
      this.#rest = this.#rest.subarray(end);
    }
    this.#notify();
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  send(...bytes: Buffer[]): this {
    this.socket.write(Buffer.concat(bytes));
    return this;
  }

  /**
   * Waits until the answers that have come are enough. Throws when the connection closes before.
   */
  async until<T>(test: (answers: Answer[]) => T | undefined): Promise<T> {
    for (;;) {
      const found = test(this.answers);
      if (found !== undefined) return found;
      if (this.isClosed) throw new Error('connection closed');
      await new Promise<void>((resolve) => {
        this.#wake.push(resolve);
      });
    }
  }

  /** The result of an operation. */
  async ask(operation: Buffer, controls: Buffer[] = []): Promise<Answer> {
    const id = ++this.#lastId;
    this.send(envelope(id, operation, controls));
    return this.result(id);
  }

  async result(id: number): Promise<Answer> {
    return this.until((answers) => answers.find((each) => each.id === id && each.tag !== 0x64));
  }

  async bind(dn: string, password: string): Promise<number> {
    return (await this.ask(bindOperation(dn, password))).code;
  }

  /** Entries and result of a search. */
  async search(
    base: string,
    options: SearchOptions = {},
    controls: Buffer[] = [],
  ): Promise<Answer & { entries: Answer[]; dns: string[] }> {
    const result = await this.ask(searchOperation(base, options), controls);
    const entries = this.answers.filter((each) => each.id === result.id && each.tag === 0x64);
    return { ...result, entries, dns: entries.map(({ dn }) => dn) };
  }
}

export interface TestServer {
  roster: FakeRoster;
  port: number;
  events: { event: string; fields: Record<string, unknown> }[];
  wire(): Wire;
  /** A connection that is signed in. */
  as(dn: string, password: string): Promise<Wire>;
  asService(): Promise<Wire>;
  stop(graceMs?: number): Promise<void>;
}

/** Waits after `listen` for nothing: the server is ready. */
export async function startLdap(
  options: Partial<LdapServerOptions> & { people?: FakePerson[]; fake?: FakeRoster } = {},
): Promise<TestServer> {
  const roster = options.fake ?? fakeRoster(options.people ?? PEOPLE);
  const events: TestServer['events'] = [];
  const note = (event: string, fields: Record<string, unknown> = {}): void => void events.push({ event, fields });
  const log: Log = { info: note, warn: note, error: note };
  const server = createLdapServer({
    roster,
    checkPassword: roster.checkPassword,
    bases: { core: CORE, web: WEB },
    searchAccount: SERVICE,
    log,
    ...options,
  });
  const port = await server.listen(0, '127.0.0.1');
  const wires: Wire[] = [];
  const wire = (): Wire => {
    const made = new Wire(port);
    wires.push(made);
    return made;
  };
  const as = async (dn: string, password: string): Promise<Wire> => {
    const made = wire();
    const code = await made.bind(dn, password);
    if (code !== 0) throw new Error(`bind answered ${code}`);
    return made;
  };
  return {
    roster,
    port,
    events,
    wire,
    as,
    asService: async () => as(user(SERVICE), 'service'),
    stop: async (graceMs = 0) => {
      await server.close(graceMs);
      for (const each of wires) each.socket.destroy();
    },
  };
}
