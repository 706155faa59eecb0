// Requests to one port of the core. A method of ours makes as many as it needs within one limit of time; no redirect is
// followed, and whatever goes wrong is an AppError that names the core and the remedy.

import { STATUS_CODES } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { AppError, causeOf, codeOf } from '@holdfast/kit/app-error';
import { failureWords, foreignWords } from '@holdfast/kit/foreign-words';
import { withTimeout } from '@holdfast/kit/timeout';
import { type Answer, quoted, readAnswer, TooLarge } from './answers.ts';
import { type Connections, type ConnectionsOptions, type CoreConnections, coreConnections } from './connections.ts';

/** Of everything that one method does. */
export const WITHIN_MS = 10_000;
const MOST_BYTES = 16 * 1024 * 1024;
/** Said by a proxy before the core, and by the embedded core while the directory or the database is away. */
const ABSENT: ReadonlySet<number> = new Set([502, 503, 504]);
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const LATE = /^UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT$/;
/** How a server says in the handshake that it does not take our certificate. */
const REFUSED = /^ERR_SSL_\w*ALERT\w*(?:CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)/;

export interface CorePortOptions extends Omit<ConnectionsOptions, 'origin'> {
  url: string;
  /** The setting that says so. */
  variable: string;
  /** `The core`: how messages begin. */
  name: string;
}

export interface Question {
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: string;
  /** What the answer may have at most; default: 16 MB. */
  mostBytes?: number;
  /** What must not be quoted. */
  secrets?: readonly string[];
}

/** What is asked within one limit of time. */
export interface CoreCalls {
  /** The answer, whatever its status, but no redirect. `path` begins with a slash. */
  ask(method: string, path: string, question?: Question): Promise<Answer>;
  /** The member `data` of the wrapper of a 200. */
  data<T>(path: string, schema: z.ZodType<T>, question?: Question): Promise<T>;
  /** What the answer holds; throws as `failure` when its status is not 200. Quotes nothing that was a secret of a question. */
  read<T>(what: string, answer: Answer, schema: z.ZodType<T>): T;
  /** Resolves after a moment, for a read that comes too early. */
  moment(): Promise<void>;
}

export interface CorePort {
  within(limitMs: number): CoreCalls;
  /** What an answer that is no success means. */
  failure(what: string, answer: Answer, secrets?: readonly string[]): AppError;
  /** `upstream`, with the name of the core. */
  wrong(text: string): AppError;
  connections: CoreConnections;
}

const MOMENT_MS = 200;

export function corePort({ url, variable, name, ...options }: CorePortOptions): CorePort {
  const base = new URL(url);
  const prefix = base.pathname.replace(/\/+$/, '');
  const connections = coreConnections({ ...options, origin: base.origin });
  const system = `${name} at ${base.host}`;
  const wrong = (text: string, code: 'upstream' | 'unavailable' = 'upstream'): AppError =>
    new AppError(code, `${system} ${text}`);

  /** A predicate to each way in which there is no answer. */
  function thrown(error: unknown, what: string, secrets: readonly string[]): AppError {
    if (error instanceof AppError) return error;
    if (error instanceof TooLarge) return wrong(`answers ${what} with more than we read`);
    const code = codeOf(error) ?? causeOf(error);
    if (REFUSED.test(code)) return wrong(`refuses our certificate (${code}).${renewal()}`);
    const words = failureWords(error, secrets);
    if (words.startsWith('shows a certificate'))
      return wrong(
        `${words}. Remedy: ${connections.ca} must be its CA, and ${variable} name a host of its certificate.`,
      );
    if (code.startsWith('HPE_')) return wrong(`does not speak HTTP (${code}). Correct ${variable}.`);
    if (CLOSED.has(code) && connections.bundle !== undefined)
      return wrong(
        `closed the connection, as it also does when it refuses our certificate.${renewal()}`,
        'unavailable',
      );
    return wrong(words, 'unavailable');
  }

  function renewal(): string {
    return connections.bundle === undefined
      ? ''
      : ` ${connections.bundle} must be of its CA, in force and not revoked.`;
  }

  function failure(what: string, answer: Answer, secrets: readonly string[] = []): AppError {
    const { status, json, retryAfterSeconds: pause } = answer;
    const words = quoted(answer, secrets);
    if (status === 401 || status === 403) {
      const right = connections.bundle === undefined ? '' : ' It must have the right of an administrator.';
      return wrong(`does not allow us ${what} (${status})${words}.${renewal()}${right}`);
    }
    if (status === 404 && z.object({ code: z.literal(0) }).safeParse(json).success)
      return wrong(`does not reach a part of itself for ${what} (404)${words}`, 'unavailable');
    if (status === 404) return wrong(`has no ${what} (404)${words}. Correct ${variable}.`);
    if (status === 429) {
      const when = pause === undefined ? 'later' : `in ${spanOf(pause)}`;
      const more = pause === undefined ? {} : { retryAfterSeconds: pause };
      return new AppError('unavailable', `${system} takes no more attempts for now (429). Try again ${when}.`, more);
    }
    if (ABSENT.has(status))
      return wrong(`is starting, or a part of it is away (${status} for ${what})${words}`, 'unavailable');
    if (status >= 500) return wrong(`has a fault of its own (${status} for ${what})${words}`);
    return wrong(`answers ${what} with ${status} ${STATUS_CODES[status] ?? ''}${words}`);
  }

  function within(limitMs: number): CoreCalls {
    const signal = AbortSignal.timeout(limitMs);
    const endsAtMs = performance.now() + limitMs;
    /** Of everything that was asked: no answer is quoted with them. */
    const asked = new Set<string>();

    async function once(kept: Connections, method: string, path: string, question: Question): Promise<Answer> {
      const { query = {}, headers = {}, body, mostBytes = MOST_BYTES } = question;
      const given = new URLSearchParams(query).toString();
      const response = await kept.request.call(kept.pool, {
        method,
        path: `${prefix}${path}${given === '' ? '' : `?${given}`}`,
        headers: {
          accept: 'application/json',
          ...(kept.cookie === undefined ? {} : { cookie: kept.cookie }),
          ...headers,
        },
        body: body ?? null,
        signal,
        headersTimeout: limitMs,
        bodyTimeout: limitMs,
      });
      const answer = await readAnswer(response, mostBytes);
      // Only behind a client certificate: sessions of passwords are not kept.
      if (connections.bundle !== undefined) kept.cookie = answer.cookie ?? kept.cookie;
      return answer;
    }

    async function ask(method: string, path: string, question: Question = {}): Promise<Answer> {
      const { secrets = [] } = question;
      for (const secret of secrets) asked.add(secret);
      const what = `${method} ${foreignWords(path, secrets)}`;
      const late = (): AppError => wrong(`did not answer ${what} within ${limitMs / 1000} s`, 'unavailable');
      let kept: Connections | undefined;
      const exchanged = async (): Promise<Answer> => {
        const first = (kept = await connections.current());
        return once(first, method, path, question).catch((error: unknown) => {
          // A kept connection may have been closed at the other end while it waited: what only reads is asked again.
          if (method !== 'GET' || !CLOSED.has(codeOf(error) ?? '')) throw error;
          return once(first, method, path, question);
        });
      };
      try {
        // The second limit is for what does not mind the signal: a connection that is being made, a file system that hangs.
        const answer = await withTimeout(Math.max(1, endsAtMs - performance.now()) + 100, late, exchanged());
        if (kept !== undefined && (answer.status === 401 || answer.status === 403)) connections.forget(kept);
        if (answer.status >= 300 && answer.status < 400) throw wrong(redirect(what, answer));
        return answer;
      } catch (error) {
        const code = codeOf(error) ?? '';
        if (kept !== undefined && (REFUSED.test(code) || CLOSED.has(code))) connections.forget(kept);
        if (!(error instanceof AppError) && (signal.aborted || LATE.test(code))) throw late();
        throw thrown(error, what, secrets);
      }
    }

    function redirect(what: string, { status, location }: Answer): string {
      const to = URL.canParse(location, base.href) ? ` to ${new URL(location, base).origin}` : '';
      return `answers ${what} with ${status}, a redirect${to}, which is not followed. Correct ${variable}.`;
    }

    function read<T>(what: string, answer: Answer, schema: z.ZodType<T>): T {
      const secrets = [...asked];
      if (answer.status !== 200) throw failure(what, answer, secrets);
      if (answer.text === '') throw wrong(`answers ${what} with nothing`);
      if (answer.kind !== 'json') throw wrong(`answers ${what} with what is not JSON${quoted(answer, secrets)}`);
      if (answer.json === undefined) throw wrong(`answers ${what} with JSON that is broken or cut off`);
      const found = schema.safeParse(answer.json);
      if (found.success) return found.data;
      const [issue] = found.error.issues;
      const where = foreignWords(issue?.path.join('.') || 'the answer', secrets);
      throw wrong(`answers ${what} with another shape (${where}: ${foreignWords(issue?.message ?? '', secrets)})`);
    }

    return {
      ask,
      read,
      async data(path, schema, question) {
        const answer = await ask('GET', path, question);
        return read(`GET ${path}`, answer, wrapperOf(schema));
      },
      async moment() {
        await delay(MOMENT_MS, undefined, { signal }).catch(() => undefined);
      },
    };
  }

  return { within, failure, wrong, connections };
}

/** `{"version":"3","type":…,"data":…}` */
function wrapperOf<T>(data: z.ZodType<T>): z.ZodType<T> {
  return z.object({ data }).transform((wrapper) => wrapper.data);
}

function spanOf(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} minutes`;
}
