// A client of an identity provider and a provider whose moods a test chooses; both are new for each test.

import type { ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { afterEach, beforeEach, expect } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { serializeByKey } from '@holdfast/kit/concurrency';
import { Secret } from '@holdfast/kit/secret';
import { httpIdentity, type HttpIdentityOptions } from '../../shared/identity/authentik/http.ts';
import type { Account, Identity } from '../../shared/identity/port.ts';
import { type IdentityServer, identityServer, type WireCall } from './fake-identity-server.ts';

export const PASSWORD = 'swordfish-Secret-1';
export const PAGE = { page: 1, pageSize: 10 };
const open: IdentityServer[] = [];
/** Those of the present test. */
export const at = {} as { server: IdentityServer; identity: Identity };

export async function newServer(prefix?: string): Promise<IdentityServer> {
  const made = await identityServer(prefix);
  open.push(made);
  return made;
}

export function over(options: Partial<HttpIdentityOptions> = {}): Identity {
  const token = new Secret(at.server.token);
  return httpIdentity({
    url: at.server.url,
    token,
    fetch,
    exclusive: serializeByKey({ ms: 5_000, late: 'The work before' }),
    ...options,
  });
}

/** To be called once in a file. */
export function newProviderForEachTest(): void {
  beforeEach(async () => {
    at.server = await newServer();
    at.identity = over();
  });
  afterEach(() => {
    for (const each of open.splice(0)) each.close();
  });
}

/** What it fails with: an AppError that gives nothing away, on one line. */
export async function failureOf(work: Promise<unknown>): Promise<AppError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AppError)) throw new Error('no AppError', { cause: error });
  const output = [inspect(error, { depth: 10 }), JSON.stringify(error.fields)].join('\n');
  for (const secret of [at.server.token, PASSWORD]) expect(output).not.toContain(secret);
  for (const text of [error.message, ...error.fields.map(({ message }) => message)]) {
    expect(text).toMatch(/^[^\p{Cc}\p{Zl}\p{Zp}]{1,700}$/u);
  }
  return error;
}

/** Every call of that method and path (a part of it) is answered by this. */
export function when(
  method: string,
  part: string,
  answer: (response: ServerResponse, call: WireCall) => unknown,
): void {
  const before = at.server.mood;
  at.server.mood = (call, response) => {
    if (call.method !== method || !call.path.includes(part)) return before(call, response);
    return answer(response, call) !== false;
  };
}

export const always = (answer: (response: ServerResponse, call: WireCall) => unknown): void => {
  at.server.mood = (call, response) => answer(response, call) !== false;
};
export const request = (method: string, part: string): WireCall[] =>
  at.server.calls.filter((call) => call.method === method && call.path.includes(part));
export const newAccount = (username = 'ada'): Promise<Account> =>
  at.identity.accounts.create({ username, name: 'Ada' });
