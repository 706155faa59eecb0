// One connection to an LDAP directory: one request at a time, each with an end, and an identity that is always known.
// ldapts writes the requests. Its client is not used: it reconnects by itself and then asks as nobody.

import { readFile } from 'node:fs/promises';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls, getCACertificates } from 'node:tls';
import { BindRequest, type Filter, SearchRequest, UnbindRequest } from 'ldapts';
import { codeOf } from '@holdfast/kit/app-error';
import { failureWords } from '@holdfast/kit/foreign-words';
import { answerReader, type LdapAnswer, type LdapEntry, NoAnswer } from './answers.ts';

export interface LdapServer {
  host: string;
  port: number;
  tls: boolean;
  /** Trusted beside the system's authorities, if the file exists; read for each connection. */
  caFile: string | undefined;
}

const DEFAULT_PORTS: Record<string, number> = { 'ldap:': 389, 'ldaps:': 636 };

/** Of `ldap://host:port` or `ldaps://host:port`; without a port the one of the protocol. */
export function ldapServerOf(url: string, caFile: string | undefined): LdapServer {
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, port: Number(port) || (DEFAULT_PORTS[protocol] ?? 389), tls: protocol === 'ldaps:', caFile };
}

export interface LdapSearch {
  base: string;
  scope: 'base' | 'sub';
  filter: Filter;
  attributes: string[];
  /** More entries than this are a failure, and so are more bytes. */
  mostEntries: number;
  mostBytes: number;
}

export interface LdapFound {
  /** The result code. */
  code: number;
  entries: LdapEntry[];
}

/** Every `until` is a time of performance.now(); every rejection is an LdapFailure, and ends the connection. */
export interface LdapConnection {
  /** The name that the last bind has proven; undefined for nobody, and while a bind is under way. */
  readonly identity: string | undefined;
  /** Resolves with the result code, 0 for success. */
  bind(dn: string, password: string, until: number): Promise<number>;
  /** Refuses to ask under another identity than `as`. */
  search(as: string, search: LdapSearch, until: number): Promise<LdapFound>;
  /** Begins a piece of work. */
  wake(): void;
  /** Nothing is asked for a while; does not keep the process alive. `ended` is called once if the connection ends. */
  rest(ended: () => void): void;
  close(): void;
}

/** The directory could not be talked to. The message is a predicate whose subject is the directory. */
export class LdapFailure extends Error {
  readonly code: 'unavailable' | 'upstream';
  /** Whether anything was answered since the connection woke. */
  readonly answered: boolean;

  constructor(code: 'unavailable' | 'upstream', message: string, answered: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.answered = answered;
  }
}

/** What a failure says when the time of the caller is over. */
export const TOO_SLOW = 'does not answer in time';

const MOST_BIND_BYTES = 64 * 1024;
const KEEP_ALIVE_MS = 15_000;
const CLOSING_MS = 1_000;
const MOST_MESSAGE_ID = 2 ** 31 - 1;

interface Pending {
  id: number;
  kind: 'bound' | 'searched';
  mostEntries: number;
  entries: LdapEntry[];
  /** What may still come. */
  bytes: number;
  resolve(found: LdapFound): void;
  reject(failure: LdapFailure): void;
}

/** A connection that stands, not bound yet. Certificates are always verified. Rejects with an LdapFailure. */
export async function openLdap(server: LdapServer, until: number): Promise<LdapConnection> {
  const socket = await openSocket(server, until);
  return overSocket(socket);
}

async function openSocket(server: LdapServer, until: number): Promise<Socket> {
  const { host, port } = server;
  const own = server.tls ? await ownAuthorities(server.caFile) : [];
  const socket = server.tls
    ? connectTls({
        host,
        port,
        servername: isIP(host) === 0 ? host : '',
        ...(own.length === 0 ? {} : { ca: [...getCACertificates('default'), ...own], allowPartialTrustChain: true }),
      })
    : connectPlain({ host, port });
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  const fail = (words: string, cause?: unknown): void => {
    socket.destroy();
    reject(new LdapFailure('unavailable', words, false, cause));
  };
  const timer = setTimeout(() => fail(TOO_SLOW), Math.max(0, until - performance.now()));
  socket.once(server.tls ? 'secureConnect' : 'connect', () => resolve(undefined));
  socket.on('error', (error) => fail(failureWords(error, []), error));
  socket.on('close', () => fail('closed the connection'));
  try {
    await promise;
    return socket;
  } finally {
    clearTimeout(timer);
  }
}

async function ownAuthorities(file: string | undefined): Promise<string[]> {
  if (file === undefined) return [];
  try {
    return [await readFile(file, 'utf8')];
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw new LdapFailure(
      'unavailable',
      `cannot be trusted: its CA file ${file} cannot be read (${codeOf(error)})`,
      false,
    );
  }
}

function overSocket(socket: Socket): LdapConnection {
  const read = answerReader();
  let pending: Pending | undefined;
  let identity: string | undefined;
  let lastId = 0;
  let answered = false;
  let over: LdapFailure | undefined;
  let ended: (() => void) | undefined;

  function end(code: LdapFailure['code'], words: string, cause?: unknown): void {
    if (over !== undefined) return;
    over = new LdapFailure(code, words, answered, cause);
    identity = undefined;
    socket.destroy();
    pending?.reject(over);
    pending = undefined;
    ended?.();
  }

  function take(answer: LdapAnswer): void {
    if (answer.id === 0 && answer.kind === 'extended') return end('unavailable', 'said that it closes the connection');
    if (pending === undefined || answer.id !== pending.id) return end('upstream', 'answers what was not asked');
    answered = true;
    if (answer.kind === 'reference' && pending.kind === 'searched') return;
    if (answer.kind === 'entry' && pending.kind === 'searched') {
      pending.entries.push(answer.entry);
      if (pending.entries.length > pending.mostEntries) end('upstream', 'answers with more entries than there can be');
      return;
    }
    if (answer.kind !== pending.kind) return end('upstream', 'answers a request with what belongs to another');
    const asked = pending;
    pending = undefined;
    asked.resolve({ code: answer.code, entries: asked.entries });
  }

  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  socket.on('error', (error) => end('unavailable', failureWords(error, []), error));
  socket.on('end', () => end('unavailable', 'closed the connection'));
  socket.on('close', () => end('unavailable', 'closed the connection'));
  socket.on('data', (chunk) => {
    try {
      if (pending === undefined) return end('unavailable', 'closed the connection, or speaks without being asked');
      pending.bytes -= chunk.length;
      if (pending.bytes < 0) return end('upstream', 'answers with far more than was asked for');
      for (const answer of read(chunk)) {
        if (over !== undefined) return;
        take(answer);
      }
    } catch (error) {
      end('upstream', `makes no sense: ${error instanceof NoAnswer ? error.message : 'its answer cannot be read'}`);
    }
  });
  if (socket.destroyed) end('unavailable', 'closed the connection');

  async function ask(
    make: (messageId: number) => { write(): Buffer },
    kind: Pending['kind'],
    { mostEntries, mostBytes }: Pick<LdapSearch, 'mostEntries' | 'mostBytes'>,
    until: number,
  ): Promise<LdapFound> {
    if (over !== undefined) throw over;
    if (pending !== undefined) throw new Error('a connection answers one request at a time');
    lastId = lastId >= MOST_MESSAGE_ID ? 1 : lastId + 1;
    const { promise, resolve, reject } = Promise.withResolvers<LdapFound>();
    pending = { id: lastId, kind, mostEntries, entries: [], bytes: mostBytes, resolve, reject };
    const timer = setTimeout(() => end('unavailable', TOO_SLOW), Math.max(0, until - performance.now()));
    try {
      socket.write(make(lastId).write());
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    get identity() {
      return identity;
    },

    async bind(dn, password, until) {
      identity = undefined;
      const most = { mostEntries: 0, mostBytes: MOST_BIND_BYTES };
      const { code } = await ask((messageId) => new BindRequest({ messageId, dn, password }), 'bound', most, until);
      if (code === 0) identity = dn;
      return code;
    },

    async search(as, search, until) {
      const { base, scope, filter, attributes, mostEntries } = search;
      if (over !== undefined) throw over;
      if (identity !== as) throw new Error('a search must not run under another identity');
      const timeLimit = Math.max(1, Math.ceil((until - performance.now()) / 1000));
      const limits = { sizeLimit: mostEntries + 1, timeLimit };
      return ask(
        (messageId) => new SearchRequest({ messageId, baseDN: base, scope, filter, attributes, ...limits }),
        'searched',
        search,
        until,
      );
    },

    wake() {
      answered = false;
      ended = undefined;
      socket.ref();
    },

    rest(then) {
      answered = false;
      ended = then;
      socket.unref();
      if (over !== undefined) then();
    },

    close() {
      if (over !== undefined) return;
      ended = undefined;
      over = new LdapFailure('unavailable', 'is not asked any more', answered);
      identity = undefined;
      pending?.reject(over);
      pending = undefined;
      socket.unref();
      socket.end(new UnbindRequest({ messageId: lastId + 1 }).write());
      setTimeout(() => socket.destroy(), CLOSING_MS).unref();
    },
  };
}
