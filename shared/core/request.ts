// Sends requests to one port of the core. One method makes as many as it needs within one time
// limit; redirects are never followed, and every failure is an AppError that names the core and the
// remedy.

import { STATUS_CODES } from 'node:http';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import { urlsIn } from '@holdfast/kit/addresses';
import { AppError, causeOf, codeOf } from '@holdfast/kit/app-error';
import { failureWords, foreignWords } from '@holdfast/kit/text';
import { withTimeout } from '@holdfast/kit/timeout';
import { type Answer, quoted, readAnswer, TooLarge } from './answers.ts';
import { type Connections, type ConnectionsOptions, CoreConnections } from './connections.ts';

/** For all requests of one method. */
export const WITHIN_MS = 10_000;
const MAX_BYTES = 16 * 1024 * 1024;
/**
 * Sent by a proxy in front of the core, and by the embedded core while the directory or the
 * database is unavailable.
 */
const ABSENT: ReadonlySet<number> = new Set([502, 503, 504]);
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const LATE = /^UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT$/;
/** TLS alerts with which a server refuses our certificate. */
const REFUSED = /^ERR_SSL_\w*ALERT\w*(?:CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)/;

export interface CorePortOptions extends Omit<ConnectionsOptions, 'addresses'> {
  /** One or several, as in the setting; the path is that of the first. */
  url: string;
  /** The setting with the address. */
  variable: string;
  /** `The core`: how messages begin. */
  name: string;
}

export interface Question {
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: string | Readable;
  /** Maximum size of the response; default: 16 MB. */
  maxBytes?: number;
  /** Text that must not be quoted. */
  secrets?: readonly string[];
}

const MOMENT_MS = 200;

/** One port of the core, and the meaning of its failures. */
export class CorePort {
  readonly connections: CoreConnections;
  readonly base: URL;
  readonly #name: string;
  readonly #variable: string;

  constructor({ url, variable, name, ...options }: CorePortOptions) {
    const addresses = urlsIn(url);
    this.base = new URL(addresses[0]);
    this.connections = new CoreConnections({ ...options, addresses });
    this.#name = name;
    this.#variable = variable;
  }

  get #system(): string {
    return `${this.#name} at ${this.connections.hosts}`;
  }

  within(limitMs: number): CoreCalls {
    return new CoreCalls(this, limitMs);
  }

  /** An AppError with the name of the core. */
  wrong(text: string, code: 'upstream' | 'unavailable' = 'upstream'): AppError {
    return new AppError(code, `${this.#system} ${text}`);
  }

  /** Explains a response that isn't a success. */
  failure(what: string, answer: Answer, secrets: readonly string[] = []): AppError {
    const { status, json, retryAfterSeconds: pause } = answer;
    const words = quoted(answer, secrets);
    if (status === 401 || status === 403) {
      const right = this.connections.bundle === undefined ? '' : ' It needs administrator rights.';
      return this.wrong(`does not allow us ${what} (${status})${words}.${this.#renewal()}${right}`);
    }
    if (status === 404 && z.object({ code: z.literal(0) }).safeParse(json).success)
      return this.wrong(`can't reach a part of itself for ${what} (404)${words}`, 'unavailable');
    if (status === 404) return this.wrong(`has no ${what} (404)${words}. Correct ${this.#variable}.`);
    if (status === 429) {
      const when = pause === undefined ? 'later' : `in ${spanOf(pause)}`;
      const more = pause === undefined ? {} : { retryAfterSeconds: pause };
      const text = `${this.#system} accepts no more attempts right now (429). Try again ${when}.`;
      return new AppError('unavailable', text, more);
    }
    if (ABSENT.has(status))
      return this.wrong(`is starting, or a part of it is unavailable (${status} for ${what})${words}`, 'unavailable');
    if (status >= 500) return this.wrong(`has an internal error (${status} for ${what})${words}`);
    return this.wrong(`answered ${what} with ${status} ${STATUS_CODES[status] ?? ''}${words}`);
  }

  /** A predicate for each way in which there is no response. */
  thrown(error: unknown, what: string, secrets: readonly string[]): AppError {
    if (error instanceof AppError) return error;
    if (error instanceof TooLarge) return this.wrong(`answered ${what} with more than the size limit`);
    const { ca, bundle } = this.connections;
    const code = codeOf(error) ?? causeOf(error);
    if (REFUSED.test(code)) return this.wrong(`refuses our certificate (${code}).${this.#renewal()}`);
    const words = failureWords(error, secrets);
    if (words.startsWith('presents a certificate'))
      return this.wrong(
        `${words}. Remedy: ${ca} must be its CA, and ${this.#variable} name a host of its certificate.`,
      );
    if (code.startsWith('HPE_')) return this.wrong(`does not speak HTTP (${code}). Correct ${this.#variable}.`);
    if (CLOSED.has(code) && bundle !== undefined)
      return this.wrong(
        `closed the connection, as it also does when it refuses our certificate.${this.#renewal()}`,
        'unavailable',
      );
    return this.wrong(words, 'unavailable');
  }

  redirected(what: string, { status, location }: Answer): AppError {
    const to = URL.canParse(location, this.base.href) ? ` to ${new URL(location, this.base).origin}` : '';
    return this.wrong(
      `answered ${what} with ${status}, a redirect${to}, which is not followed. Correct ${this.#variable}.`,
    );
  }

  #renewal(): string {
    const { bundle } = this.connections;
    return bundle === undefined ? '' : ` Check that ${bundle} is from its CA, not expired and not revoked.`;
  }
}

/** The requests within one time limit. */
export class CoreCalls {
  readonly #port: CorePort;
  readonly #limitMs: number;
  readonly #signal: AbortSignal;
  readonly #endsAtMs: number;
  /** The secrets of all requests so far: no response is quoted with them. */
  readonly #secrets = new Set<string>();

  constructor(port: CorePort, limitMs: number) {
    this.#port = port;
    this.#limitMs = limitMs;
    this.#signal = AbortSignal.timeout(limitMs);
    this.#endsAtMs = performance.now() + limitMs;
  }

  /** The response, whatever its status, unless it is a redirect. `path` begins with a slash. */
  async ask(method: string, path: string, question: Question = {}): Promise<Answer> {
    const port = this.#port;
    const { connections } = port;
    const { secrets = [] } = question;
    for (const secret of secrets) this.#secrets.add(secret);
    const what = `${method} ${foreignWords(path, secrets)}`;
    const late = (): AppError => port.wrong(`did not answer ${what} within ${this.#limitMs / 1000} s`, 'unavailable');
    let kept: Connections | undefined;
    const exchanged = async (): Promise<Answer> => {
      const first = (kept = await connections.current());
      return this.#once(first, method, path, question).catch((error: unknown) => {
        // A pooled connection may have been closed at the other end while it was idle: reads are
        // retried.
        if (method !== 'GET' || !CLOSED.has(codeOf(error) ?? '')) throw error;
        return this.#once(first, method, path, question);
      });
    };
    try {
      // The second limit is for operations that ignore the signal: a connection being opened, a
      // file system that hangs.
      const leftMs = Math.max(1, this.#endsAtMs - performance.now());
      const answer = await withTimeout(leftMs + 100, late, exchanged());
      if (kept !== undefined && (answer.status === 401 || answer.status === 403)) connections.forget(kept);
      if (answer.status >= 300 && answer.status < 400) throw port.redirected(what, answer);
      return answer;
    } catch (error) {
      const code = codeOf(error) ?? '';
      if (kept !== undefined && (REFUSED.test(code) || CLOSED.has(code))) connections.forget(kept);
      if (!(error instanceof AppError) && (this.#signal.aborted || LATE.test(code))) throw late();
      throw port.thrown(error, what, secrets);
    }
  }

  /**
   * Hands the body of a 200 over as it comes, of any size; rejects as `failure` for another status,
   * and when the body ends early.
   */
  async stream<T>(path: string, use: (body: AsyncIterable<Uint8Array>) => Promise<T>): Promise<T> {
    const port = this.#port;
    const what = `GET ${foreignWords(path, [])}`;
    try {
      const response = await this.#send(await port.connections.current(), 'GET', path, {});
      if (response.statusCode === 200) return await use(response.body);
      throw port.failure(what, await readAnswer(response, MAX_BYTES));
    } catch (error) {
      throw port.thrown(error, what, []);
    }
  }

  async #once(kept: Connections, method: string, path: string, question: Question): Promise<Answer> {
    const answer = await readAnswer(await this.#send(kept, method, path, question), question.maxBytes ?? MAX_BYTES);
    // Only with a client certificate: password sessions are not kept.
    if (this.#port.connections.bundle !== undefined) kept.cookie = answer.cookie ?? kept.cookie;
    return answer;
  }

  #send(kept: Connections, method: string, path: string, question: Question): Promise<Dispatcher.ResponseData> {
    const { query = {}, headers = {}, body } = question;
    const given = new URLSearchParams(query).toString();
    return kept.request.call(kept.pool, {
      method,
      path: `${this.#port.base.pathname.replace(/\/+$/, '')}${path}${given === '' ? '' : `?${given}`}`,
      headers: {
        accept: 'application/json',
        ...(kept.cookie === undefined ? {} : { cookie: kept.cookie }),
        ...headers,
      },
      body: body ?? null,
      signal: this.#signal,
      headersTimeout: this.#limitMs,
      bodyTimeout: this.#limitMs,
    });
  }

  /**
   * The body of the response; throws as `failure` when its status is not 200. Quotes no secret of a
   * request.
   */
  read<T>(what: string, answer: Answer, schema: z.ZodType<T>): T {
    const port = this.#port;
    const secrets = [...this.#secrets];
    if (answer.status !== 200) throw port.failure(what, answer, secrets);
    if (answer.text === '') throw port.wrong(`answered ${what} with an empty body`);
    if (answer.kind !== 'json')
      throw port.wrong(`answered ${what} with a body that is not JSON${quoted(answer, secrets)}`);
    if (answer.json === undefined) throw port.wrong(`answered ${what} with JSON that is broken or cut off`);
    const found = schema.safeParse(answer.json);
    if (found.success) return found.data;
    const [issue] = found.error.issues;
    const where = foreignWords(issue?.path.join('.') || 'the response', secrets);
    throw port.wrong(
      `answered ${what} with an unexpected shape (${where}: ${foreignWords(issue?.message ?? '', secrets)})`,
    );
  }

  /** The member `data` of the wrapper of a 200. */
  async data<T>(path: string, schema: z.ZodType<T>, question?: Question): Promise<T> {
    const answer = await this.ask('GET', path, question);
    return this.read(`GET ${path}`, answer, dataOf(schema));
  }

  /** Resolves after a moment, for a read that comes too early. */
  async moment(): Promise<void> {
    await delay(MOMENT_MS, undefined, { signal: this.#signal }).catch(() => undefined);
  }
}

/** `{"version":"3","type":…,"data":…}` */
export function dataOf<T>(data: z.ZodType<T>): z.ZodType<T> {
  return z.object({ data }).transform((wrapper) => wrapper.data);
}

function spanOf(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} minutes`;
}
