// Calls the authentik API for identity-setup. Temporary failures (no answer, a server that is
// starting) throw NotReady. No message contains a key.

import { z } from 'zod';
import { causeOf, StackError } from '@holdfast/kit/app-error';
import { NotReady } from '@holdfast/kit/retry';

const WITHIN_MS = 10_000;

const APPLIED = ['successful', 'warning', 'error', 'orphaned', 'unknown'] as const;
const blueprint = z.object({
  pk: z.string(),
  path: z.string(),
  enabled: z.boolean(),
  status: z.enum(APPLIED).catch('unknown'),
  /** Changes each time that it is applied, with or without success. */
  last_applied: z.string(),
});
export type AppliedBlueprint = z.infer<typeof blueprint>;

const outpost = z.object({ name: z.string(), token_identifier: z.string() });
const self = z.object({ user: z.object({ username: z.string(), is_superuser: z.boolean() }) });
const listOf = <T>(one: z.ZodType<T>) => z.object({ results: z.array(one) });

/** The user of a key; `refused` also for an unknown key. */
export type Holder = { username: string; isSuperuser: boolean } | 'refused';

export interface IdentitySetupApi {
  /** Rejects until the server and its database answer. */
  ready(): Promise<void>;
  holderOf(key: string): Promise<Holder>;
  /** This and the following methods need the `key` of a superuser. */
  blueprintAt(key: string, path: string): Promise<AppliedBlueprint | undefined>;
  apply(key: string, pk: string): Promise<void>;
  /** The token identifier of the outpost with this name. */
  outpostToken(key: string, name: string): Promise<string | undefined>;
  keyOf(key: string, identifier: string): Promise<string | undefined>;
  /** False if the token doesn't exist. */
  setKey(key: string, identifier: string, wanted: string): Promise<boolean>;
  /** Replaces Gravatar with initials as avatars; true if that changed anything. */
  showInitials(key: string): Promise<boolean>;
}

interface Call {
  key?: string;
  body?: object;
}

interface Answer {
  status: number;
  json: unknown;
}

export function identitySetupApi(url: string, fetch: typeof globalThis.fetch): IdentitySetupApi {
  return new AuthentikSetup(new URL(url), fetch);
}

class AuthentikSetup implements IdentitySetupApi {
  readonly #url: URL;
  readonly #fetch: typeof globalThis.fetch;

  constructor(url: URL, fetch: typeof globalThis.fetch) {
    this.#url = url;
    this.#fetch = (...call) => fetch(...call);
  }

  async ready(): Promise<void> {
    const { status } = await this.#ask('GET', '/-/health/ready/');
    if (status !== 200 && status !== 204) throw new NotReady(`${this.#url.host} is not ready (${status})`);
  }

  async holderOf(key: string): Promise<Holder> {
    const { status, json } = await this.#ask('GET', '/api/v3/core/users/me/', { key });
    if (status === 403 || status === 401) return 'refused';
    const read = self.safeParse(json);
    if (status !== 200 || !read.success) throw this.#unexpected('GET /core/users/me/', status);
    return { username: read.data.user.username, isSuperuser: read.data.user.is_superuser };
  }

  async blueprintAt(key: string, path: string): Promise<AppliedBlueprint | undefined> {
    const query = new URLSearchParams({ path });
    const found = await this.#read(`/managed/blueprints/?${query.toString()}`, key, listOf(blueprint));
    return found?.results.find((each) => each.path === path);
  }

  async apply(key: string, pk: string): Promise<void> {
    const applied = await this.#read(`/managed/blueprints/${pk}/apply/`, key, blueprint, { method: 'POST' });
    if (applied === undefined) throw new NotReady('the blueprint no longer exists');
  }

  async outpostToken(key: string, name: string): Promise<string | undefined> {
    const query = new URLSearchParams({ name__iexact: name });
    const found = await this.#read(`/outposts/instances/?${query.toString()}`, key, listOf(outpost));
    return found?.results.find((each) => each.name === name)?.token_identifier;
  }

  async keyOf(key: string, identifier: string): Promise<string | undefined> {
    const path = `/core/tokens/${encodeURIComponent(identifier)}/view_key/`;
    return (await this.#read(path, key, z.object({ key: z.string().min(1) })))?.key;
  }

  async setKey(key: string, identifier: string, wanted: string): Promise<boolean> {
    const path = `/core/tokens/${encodeURIComponent(identifier)}/set_key/`;
    const { status } = await this.#ask('POST', `/api/v3${path}`, { key, body: { key: wanted } });
    if (status === 404) return false;
    if (status !== 204) throw this.#unexpected(`POST ${path}`, status);
    return true;
  }

  async showInitials(key: string): Promise<boolean> {
    const path = '/admin/settings/';
    const settings = z.object({ avatars: z.string() });
    const { avatars } = (await this.#read(path, key, settings)) ?? { avatars: '' };
    if (!avatars.includes('gravatar')) return false;
    await this.#read(path, key, settings, { method: 'PATCH', body: { avatars: 'initials' } });
    return true;
  }

  async #ask(method: string, path: string, { key, body }: Call = {}): Promise<Answer> {
    const what = `${method} ${path.split('?')[0]}`;
    try {
      const response = await this.#fetch(`${this.#url.origin}${path}`, {
        method,
        headers: {
          accept: 'application/json',
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: 'manual',
        signal: AbortSignal.timeout(WITHIN_MS),
      });
      const { status } = response;
      const text = await response.text();
      if (status >= 500 || status === 429) throw new NotReady(`${this.#url.host} returned ${status} for ${what}`);
      return { status, json: jsonIn(text) };
    } catch (error) {
      throw error instanceof NotReady ? error : new NotReady(`couldn't reach ${this.#url.host}: ${causeOf(error)}`);
    }
  }

  /** Undefined for a 404. */
  async #read<T>(path: string, key: string, schema: z.ZodType<T>, call: Call & { method?: string } = {}) {
    const { method = 'GET', ...rest } = call;
    const { status, json } = await this.#ask(method, `/api/v3${path}`, { key, ...rest });
    if (status === 404) return undefined;
    const done = schema.safeParse(json);
    if ((status === 200 || status === 201) && done.success) return done.data;
    throw this.#unexpected(`${method} ${path.split('?')[0]}`, status);
  }

  #unexpected(what: string, status: number): StackError {
    return new StackError(
      `Unexpected answer from authentik at ${this.#url.host} to ${what} (status ${status}).`,
      'read its log: docker compose logs --tail 50 authentik-server',
    );
  }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
