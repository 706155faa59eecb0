// Makes one call of the identity provider's API, limited in time and size; it follows no redirect
// with the token. Error text is quoted only from JSON, on one line, without a secret. Web APIs
// only: runs on Node and in workerd.

import type { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import { readBodyText } from '@holdfast/kit/body';
import type { Secret } from '@holdfast/kit/secret';
import { failureWords, foreignWords } from '@holdfast/kit/text';
import { withTimeout } from '@holdfast/kit/timeout';
import { type Refusal, refusalOf, wordsOf } from './answers.ts';

const WITHIN_MS = 5_000;
/** A group with twenty thousand members. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The most that the provider gives at once. */
export const PAGE_SIZE = 100;
const MAX_PAGES = 100;
/** Said by the provider while it starts, and by a proxy before it. */
const ABSENT: ReadonlySet<number> = new Set([502, 503, 504]);
/** For all pages of one list. */
const LIST_WITHIN_MS = 20_000;

export interface ProviderOptions {
  /** With or without a path; `/api/v3` is added. */
  url: string;
  token: Secret;
  fetch: typeof globalThis.fetch;
  /** Per request, in milliseconds; default: 5000. */
  withinMs?: number;
}

export type Query = Record<string, string | readonly string[]>;

export interface Call {
  query?: Query;
  body?: object;
  /** Text that must not be quoted, besides the token. */
  secrets?: readonly string[];
}

/** The result of a call. Every other failure is an AppError. */
export type Outcome<T> = { done: T } | { missing: true } | { refused: Refusal };

export interface PageSchema<T> {
  pagination: { next: number; count: number };
  results: T[];
}

interface Answer {
  status: number;
  /** Undefined when the body isn't JSON. */
  json: unknown;
  isEmpty: boolean;
}

class TooLong extends Error {}

/** The value, or undefined when there is none; throws the refusal. */
export function valueOf<T>(outcome: Outcome<T>): T | undefined {
  if ('refused' in outcome) throw outcome.refused.error;
  return 'done' in outcome ? outcome.done : undefined;
}

export class IdentityProvider {
  readonly #token: ProviderOptions['token'];
  readonly #fetch: ProviderOptions['fetch'];
  readonly #limitMs: NonNullable<ProviderOptions['withinMs']>;
  readonly #base: URL;
  readonly #system: string;

  constructor({ url, token, fetch, withinMs: limitMs = WITHIN_MS }: ProviderOptions) {
    this.#token = token;
    this.#fetch = fetch;
    this.#limitMs = limitMs;
    this.#base = baseOf(url);
    this.#system = `The identity provider at ${this.#base.host}`;
  }

  #wrong(text: string, cause?: unknown): AppError {
    return new AppError('upstream', `${this.#system} ${text}`, { cause });
  }

  /** Quoted text from the provider, after a colon. */
  #quoted(text: string, secrets: readonly string[]): string {
    const words = foreignWords(text, [this.#token.reveal(), ...secrets]);
    return words === '' ? '' : `: ${words}`;
  }

  #addressOf(path: string, query: Query): URL {
    const address = new URL(this.#base);
    address.pathname = `${this.#base.pathname}${path}/`;
    for (const [name, values] of Object.entries(query)) {
      for (const value of typeof values === 'string' ? [values] : values) address.searchParams.append(name, value);
    }
    return address;
  }

  async #ask(method: string, path: string, { query = {}, body, secrets = [] }: Call): Promise<Answer> {
    const key = this.#token.reveal();
    const fetch = this.#fetch;
    // A fetch would refuse it with the token in its message.
    if (!/^[\x21-\x7e]+$/.test(key))
      throw this.#wrong('cannot be called: IDENTITY_TOKEN has characters that no token has');
    const signal = AbortSignal.timeout(this.#limitMs);
    const init: RequestInit = {
      method,
      headers: {
        Accept: 'application/json',
        'Accept-Language': 'en',
        Authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      redirect: 'manual',
      signal,
    };
    const late = (): AppError =>
      new AppError(
        'unavailable',
        `${this.#system} did not answer ${method} /${path}/ within ${this.#limitMs / 1000} s`,
      );
    const exchanged = async (): Promise<Answer> => {
      const response = await fetch(this.#addressOf(path, query).href, init);
      if (response.status >= 300 && response.status < 400) {
        await response.body?.cancel();
        throw this.#wrong(
          `answered ${method} /${path}/ with ${redirectOf(response, this.#base)}. Correct IDENTITY_URL.`,
        );
      }
      return { status: response.status, ...(await bodyOf(response)) };
    };
    try {
      // The second limit is for a fetch that ignores the signal.
      return await withTimeout(this.#limitMs + 100, late, exchanged());
    } catch (error) {
      if (error instanceof AppError) throw error;
      if (error instanceof TooLong) throw this.#wrong(`answered ${method} /${path}/ with more than ${MAX_BYTES} bytes`);
      if (signal.aborted) throw late();
      // Without the cause: a platform's fetch may include the token in its message.
      throw new AppError('unavailable', `${this.#system} ${failureWords(error, [key, ...secrets])}`);
    }
  }

  /** The response, when it is one that the caller handles. */
  async #request(method: string, path: string, call: Call = {}): Promise<Outcome<Answer>> {
    const { secrets = [] } = call;
    const answer = await this.#ask(method, path, call);
    const { status, json, isEmpty } = answer;
    const words = this.#quoted(wordsOf(json), secrets);
    const what = `${method} /${path}/`;
    if (status === 200 || status === 201 || status === 204) return { done: answer };
    if (status === 401 || status === 403) {
      throw this.#wrong(
        `does not accept our token, or does not allow it ${what} (${status})${words}. Correct IDENTITY_TOKEN.`,
      );
    }
    // A page of another server must not be mistaken for a missing item.
    if (status === 404 && words !== '') return { missing: true };
    if (status === 404) throw this.#wrong(`has no such API: ${what} is not found (404). Correct IDENTITY_URL.`);
    // From a proxy, or from a provider that does not know our address.
    if (status === 400 && json === undefined && !isEmpty)
      throw this.#wrong(`answered ${what} with status 400 and a body that is not JSON`);
    if (status === 400)
      return { refused: refusalOf(json, 'The identity provider', [this.#token.reveal(), ...secrets]) };
    if (status === 429)
      throw new AppError('unavailable', `${this.#system} is limiting requests (429). Try again later`);
    if (ABSENT.has(status))
      throw new AppError('unavailable', `${this.#system} is starting or unavailable (${status} for ${what})${words}`);
    if (status >= 500) throw this.#wrong(`has an internal error (${status} for ${what})${words}`);
    throw this.#wrong(`answered ${what} with ${status}${words}`);
  }

  #readAs<T>(schema: z.ZodType<T>, what: string, { json }: Answer): T {
    if (json === undefined) throw this.#wrong(`answered ${what} with a body that is not JSON. Correct IDENTITY_URL.`);
    const read = schema.safeParse(json);
    if (read.success) return read.data;
    // The response itself is not quoted: it may be a key.
    const [issue] = read.error.issues;
    const where = foreignWords(issue?.path.join('.') || 'the response', []);
    throw this.#wrong(
      `answered ${what} with an unexpected shape (${where}: ${foreignWords(issue?.message ?? '', [])})`,
    );
  }

  /** Reads or writes, and returns an object. `path` has no slash at either end. */
  async exchange<T>(method: string, path: string, schema: z.ZodType<T>, call: Call = {}): Promise<Outcome<T>> {
    const outcome = await this.#request(method, path, call);
    return 'done' in outcome ? { done: this.#readAs(schema, `${method} /${path}/`, outcome.done) } : outcome;
  }

  /** Calls an endpoint that returns nothing. */
  async act(method: string, path: string, call: Call = {}): Promise<Outcome<undefined>> {
    const outcome = await this.#request(method, path, call);
    if (!('done' in outcome)) return outcome;
    // Anything can answer 200.
    if (outcome.done.status !== 204) {
      throw this.#wrong(`answered ${method} /${path}/ with ${outcome.done.status}, not 204. Correct IDENTITY_URL.`);
    }
    return { done: undefined };
  }

  /** As `exchange`; undefined when the item does not exist, `invalid` when it is refused. */
  async read<T>(path: string, schema: z.ZodType<T>, query: Query = {}): Promise<T | undefined> {
    return valueOf(await this.exchange('GET', path, schema, { query }));
  }

  async *#pages<T>(path: string, schema: z.ZodType<PageSchema<T>>, query: Query): AsyncGenerator<T[]> {
    const begun = Date.now();
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const answer = await this.read(path, schema, { ...query, page: String(page), page_size: String(PAGE_SIZE) });
      if (answer === undefined && page === 1) throw this.#wrong(`has no list at /${path}/. Correct IDENTITY_URL.`);
      // Removed meanwhile: the previous page was the last.
      if (answer === undefined) return;
      yield answer.results;
      if (answer.pagination.next === 0) return;
      if (answer.pagination.next !== page + 1) {
        throw this.#wrong(`claims that page ${page} of /${path}/ is followed by page ${answer.pagination.next}`);
      }
      if (Date.now() - begun > LIST_WITHIN_MS) {
        throw new AppError('unavailable', `${this.#system} took longer than ${LIST_WITHIN_MS / 1000} s for /${path}/`);
      }
    }
    throw this.#wrong(`lists more than ${MAX_PAGES} pages at /${path}/`);
  }

  /** Every page. */
  async all<T>(path: string, schema: z.ZodType<PageSchema<T>>, query: Query): Promise<T[]> {
    const found: T[] = [];
    for await (const results of this.#pages(path, schema, query)) found.push(...results);
    return found;
  }

  /** The first match; reads no further. */
  async first<T>(
    path: string,
    schema: z.ZodType<PageSchema<T>>,
    query: Query,
    isWanted: (item: T) => boolean,
  ): Promise<T | undefined> {
    for await (const results of this.#pages(path, schema, query)) {
      const found = results.find(isWanted);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** `upstream`, with the system's name. */
  nonsense(what: string): AppError {
    return this.#wrong(what);
  }
}

/** With a slash at the end, and without the parts that a fetch does not accept. */
function baseOf(url: string): URL {
  const base = new URL(url);
  base.username = '';
  base.password = '';
  base.search = '';
  base.hash = '';
  base.pathname = `${base.pathname.replace(/\/+$/, '')}/api/v3/`;
  return base;
}

function redirectOf(response: Response, base: URL): string {
  const location = response.headers.get('location') ?? '';
  const host = URL.canParse(location, base.href) ? ` to ${new URL(location, base).origin}` : '';
  return `${response.status}, a redirect${host}, which is not followed`;
}

/** Throws TooLong. */
async function bodyOf(response: Response): Promise<Omit<Answer, 'status'>> {
  const text = await readBodyText(response.body, MAX_BYTES, () => new TooLong());
  const isEmpty = text.trim() === '';
  try {
    return { json: JSON.parse(text) as unknown, isEmpty };
  } catch {
    return { json: undefined, isEmpty };
  }
}
