// Holds one connection to an LDAP directory: one request at a time, each with a deadline, and an
// identity that is always known. ldapts writes the requests. Its client isn't used: it reconnects
// by itself and then asks anonymously.

import { readFile } from 'node:fs/promises';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls, getCACertificates } from 'node:tls';
import { BindRequest, type Filter, SearchRequest, UnbindRequest } from 'ldapts';
import { bareHost } from '@holdfast/kit/addresses';
import { codeOf } from '@holdfast/kit/app-error';
import { failureWords } from '@holdfast/kit/text';
import { answerReader, type LdapAnswer, type LdapEntry, NoAnswer } from './answers.ts';

export interface LdapServer {
  host: string;
  port: number;
  tls: boolean;
  /**
   * Trusted in addition to the system's authorities, if the file exists; read for each connection.
   */
  caFile: string | undefined;
}

const DEFAULT_PORTS: Record<string, number> = { 'ldap:': 389, 'ldaps:': 636 };

/** From `ldap://host:port` or `ldaps://host:port`; without a port, the protocol's default. */
export function ldapServerOf(url: string, caFile: string | undefined): LdapServer {
  const { protocol, hostname, port } = new URL(url);
  const host = bareHost(hostname);
  return { host, port: Number(port) || (DEFAULT_PORTS[protocol] ?? 389), tls: protocol === 'ldaps:', caFile };
}

export interface LdapSearch {
  base: string;
  scope: 'base' | 'sub';
  filter: Filter;
  attributes: string[];
  /** More entries or bytes than this are a failure. */
  maxEntries: number;
  maxBytes: number;
}

export interface LdapFound {
  /** The result code. */
  code: number;
  entries: LdapEntry[];
}

/**
 * The connection to the directory failed. The message is a predicate whose subject is the
 * directory.
 */
export class LdapFailure extends Error {
  readonly code: 'unavailable' | 'upstream';
  /** True when anything was received since the connection was last woken. */
  readonly answered: boolean;

  constructor(code: 'unavailable' | 'upstream', message: string, answered: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.answered = answered;
  }
}

/** The failure when the caller's time is over. */
export const TOO_SLOW = 'does not answer in time';

const MAX_BIND_BYTES = 64 * 1024;
const KEEP_ALIVE_MS = 15_000;
const CLOSING_MS = 1_000;
const MAX_MESSAGE_ID = 2 ** 31 - 1;

interface Pending {
  id: number;
  kind: 'bound' | 'searched';
  maxEntries: number;
  entries: LdapEntry[];
  /** Entries and bytes that may still arrive. */
  bytes: number;
  resolve(found: LdapFound): void;
  reject(failure: LdapFailure): void;
}

/**
 * An open connection that isn't bound yet. Certificates are always verified. Rejects with an
 * LdapFailure.
 */
export async function openLdap(server: LdapServer, until: number): Promise<LdapConnection> {
  const socket = await openSocket(server, until);
  return new LdapConnection(socket);
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

/**
 * Every `until` is a time of performance.now(); every rejection is an LdapFailure and closes the
 * connection.
 */
export class LdapConnection {
  readonly #socket: Socket;
  readonly #read = answerReader();
  #pending: Pending | undefined;
  #identity: string | undefined;
  #lastId = 0;
  #answered = false;
  #over: LdapFailure | undefined;
  #ended: (() => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('error', (error) => this.#end('unavailable', failureWords(error, []), error));
    socket.on('end', () => this.#end('unavailable', 'closed the connection'));
    socket.on('close', () => this.#end('unavailable', 'closed the connection'));
    socket.on('data', (chunk) => {
      try {
        if (this.#pending === undefined)
          return this.#end('unavailable', 'closed the connection, or sent data without a request');
        this.#pending.bytes -= chunk.length;
        if (this.#pending.bytes < 0) return this.#end('upstream', 'sent far more data than requested');
        for (const answer of this.#read(chunk)) {
          if (this.#over !== undefined) return;
          this.#take(answer);
        }
      } catch (error) {
        this.#end(
          'upstream',
          `sent an invalid response: ${error instanceof NoAnswer ? error.message : 'it cannot be read'}`,
        );
      }
    });
    if (socket.destroyed) this.#end('unavailable', 'closed the connection');
  }

  #end(code: LdapFailure['code'], words: string, cause?: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = new LdapFailure(code, words, this.#answered, cause);
    this.#identity = undefined;
    this.#socket.destroy();
    this.#pending?.reject(this.#over);
    this.#pending = undefined;
    this.#ended?.();
  }

  #take(answer: LdapAnswer): void {
    if (answer.id === 0 && answer.kind === 'extended')
      return this.#end('unavailable', 'announced that it closes the connection');
    if (this.#pending === undefined || answer.id !== this.#pending.id)
      return this.#end('upstream', 'sent a response that was not requested');
    this.#answered = true;
    if (answer.kind === 'reference' && this.#pending.kind === 'searched') return;
    if (answer.kind === 'entry' && this.#pending.kind === 'searched') {
      this.#pending.entries.push(answer.entry);
      if (this.#pending.entries.length > this.#pending.maxEntries)
        this.#end('upstream', 'sent more entries than there can be');
      return;
    }
    if (answer.kind !== this.#pending.kind)
      return this.#end('upstream', 'answered a request with the response to another');
    const requested = this.#pending;
    this.#pending = undefined;
    requested.resolve({ code: answer.code, entries: requested.entries });
  }

  async #ask(
    make: (messageId: number) => { write(): Buffer },
    kind: Pending['kind'],
    { maxEntries, maxBytes }: Pick<LdapSearch, 'maxEntries' | 'maxBytes'>,
    until: number,
  ): Promise<LdapFound> {
    if (this.#over !== undefined) throw this.#over;
    if (this.#pending !== undefined) throw new Error('a connection answers one request at a time');
    this.#lastId = this.#lastId >= MAX_MESSAGE_ID ? 1 : this.#lastId + 1;
    const { promise, resolve, reject } = Promise.withResolvers<LdapFound>();
    this.#pending = { id: this.#lastId, kind, maxEntries, entries: [], bytes: maxBytes, resolve, reject };
    const timer = setTimeout(() => this.#end('unavailable', TOO_SLOW), Math.max(0, until - performance.now()));
    try {
      this.#socket.write(make(this.#lastId).write());
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * The name that the last bind has proven; undefined for anonymous, and while a bind is running.
   */
  get identity(): string | undefined {
    return this.#identity;
  }

  /** Resolves with the result code, 0 for success. */
  async bind(dn: string, password: string, until: number): Promise<number> {
    this.#identity = undefined;
    const most = { maxEntries: 0, maxBytes: MAX_BIND_BYTES };
    const { code } = await this.#ask((messageId) => new BindRequest({ messageId, dn, password }), 'bound', most, until);
    if (code === 0) this.#identity = dn;
    return code;
  }

  /** Refuses to search under another identity than `as`. */
  async search(as: string, search: LdapSearch, until: number): Promise<LdapFound> {
    const { base, scope, filter, attributes, maxEntries: mostEntries } = search;
    if (this.#over !== undefined) throw this.#over;
    if (this.#identity !== as) throw new Error('a search must not run under another identity');
    const timeLimit = Math.max(1, Math.ceil((until - performance.now()) / 1000));
    const limits = { sizeLimit: mostEntries + 1, timeLimit };
    return this.#ask(
      (messageId) => new SearchRequest({ messageId, baseDN: base, scope, filter, attributes, ...limits }),
      'searched',
      search,
      until,
    );
  }

  /** Begins a piece of work. */
  wake(): void {
    this.#answered = false;
    this.#ended = undefined;
    this.#socket.ref();
  }

  /**
   * The connection is idle; it does not keep the process alive. `then` is called once if it closes.
   */
  rest(then: () => void): void {
    this.#answered = false;
    this.#ended = then;
    this.#socket.unref();
    if (this.#over !== undefined) then();
  }

  close(): void {
    if (this.#over !== undefined) return;
    this.#ended = undefined;
    this.#over = new LdapFailure('unavailable', 'is no longer in use', this.#answered);
    this.#identity = undefined;
    this.#pending?.reject(this.#over);
    this.#pending = undefined;
    this.#socket.unref();
    this.#socket.end(new UnbindRequest({ messageId: this.#lastId + 1 }).write());
    setTimeout(() => this.#socket.destroy(), CLOSING_MS).unref();
  }
}
