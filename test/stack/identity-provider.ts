// The identity provider over a real PostgreSQL, as its process will have it, with a client for its API.

import postgres from 'postgres';
import { afterAll, beforeAll, expect } from 'vitest';
import { BOOTSTRAP_TOKEN, ensureProvider } from '../../compose/embedded/identity/bootstrap.ts';
import { createIdentityApi } from '../../compose/embedded/identity/http/app.ts';
import { type IdentityStore, identityStore } from '../../compose/embedded/identity/identity-store.ts';
import type { RunSql } from '../../compose/embedded/identity/store/database.ts';
import { IDENTITY_MIGRATIONS } from '../../compose/embedded/identity/store/migrations/index.ts';
import { migrate } from '../../shared/adapters/migrate.ts';
import { Secret } from '../../shared/domain/secret.ts';
import { memoryLog } from '../fakes/deps.ts';
import { emptyDatabase } from './empty-database.ts';

export const API_TOKEN = 'bootstrap-token-of-the-tests-0123456789';
export const SECRET = new Secret('secret key of the tests: 0123456789 abcdefgh');
export { BOOTSTRAP_TOKEN };

export interface Answer {
  status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into answers of every shape
  body: any;
  headers: Headers;
}

export interface AskOptions {
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is, as JSON unless a header says otherwise. */
  raw?: string | Uint8Array;
  /** The key of a token; null: no header. */
  key?: string | null;
  headers?: Record<string, string>;
}

export interface TestProvider {
  store: IdentityStore;
  log: ReturnType<typeof memoryLog>;
  run: RunSql;
  /** Statements that were sent since the start of the file. */
  statements: string[];
  /** Moves the provider's clock. */
  later(ms: number): void;
  now(): Date;
  ask: (method: string, path: string, options?: AskOptions) => Promise<Answer>;
  inDatabase: <T extends object>(text: string) => Promise<T[]>;
  ensure(token?: string, secret?: Secret): Promise<boolean>;
}

/** Migrated, bootstrapped; one for all tests of the file. */
export function testProvider(): TestProvider {
  const { url, inDatabase } = emptyDatabase();
  const log = memoryLog();
  const statements: string[] = [];
  let ahead = 0;
  let sql: postgres.Sql;
  const now = (): Date => new Date(Date.now() + ahead);
  const run: RunSql = (use) => use(sql);
  const store = identityStore({ run, secretKey: SECRET, now, log });
  const api = createIdentityApi({ store, now, log, release: '2026.8.3' });
  const ensure = (token = API_TOKEN, secret = SECRET): Promise<boolean> =>
    ensureProvider({ run, secretKey: secret, apiToken: new Secret(token), now });

  beforeAll(async () => {
    sql = postgres(url(), {
      max: 5,
      fetch_types: false,
      onnotice: () => undefined,
      debug: (_, text) => statements.push(text),
    });
    await migrate(sql, IDENTITY_MIGRATIONS);
    expect(await ensure()).toBe(true);
  });
  afterAll(async () => {
    await store.settled();
    await sql.end({ timeout: 2 });
  });

  async function ask(method: string, path: string, options: AskOptions = {}): Promise<Answer> {
    const { json, raw, key = API_TOKEN, headers = {} } = options;
    const body = json === undefined ? raw : JSON.stringify(json);
    const response = await api.request(`http://identity${path.startsWith('/api') ? '' : '/api/v3'}${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    return {
      status: response.status,
      body: isJson && text !== '' ? JSON.parse(text) : text,
      headers: response.headers,
    };
  }

  return { store, log, run, statements, later: (ms) => void (ahead += ms), now, ask, inDatabase, ensure };
}
