// The identity provider over a real PostgreSQL, as its process will have it, with a client for its
// API.

import postgres from 'postgres';
import { afterAll, beforeAll, expect } from 'vitest';
import { BOOTSTRAP_TOKEN, ensureProvider } from '@holdfast/identity/bootstrap';
import { createIdentityApi } from '@holdfast/identity/http/app';
import { IDENTITY_MIGRATIONS } from '@holdfast/identity/store/migrations/index';
import { type IdentityStore, identityStore } from '@holdfast/identity/store/store';
import { migrate } from '@holdfast/kit/migrate';
import { Secret } from '@holdfast/kit/secret';
import type { RunSql } from '../../../packages/identity/store/database.ts';
import { memoryLog } from '../../http/fake-deps.ts';
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
  later: (ms: number) => void;
  now: () => Date;
  ask: (method: string, path: string, options?: AskOptions) => Promise<Answer>;
  inDatabase: <T extends object>(text: string) => Promise<T[]>;
  ensure: (token?: string, secret?: Secret) => Promise<boolean>;
  /** A new user as the API shows it. */
  create: (values?: Record<string, unknown>) => Promise<Answer['body']>;
  group: (values?: Record<string, unknown>) => Promise<Answer['body']>;
  /** A user that is no superuser, with the key of a permanent API token of its own. */
  ordinary: () => Promise<{ user: Answer['body']; identifier: string; key: string }>;
}

/** The uuid of nothing. */
export const NOWHERE = '00000000-0000-4000-8000-000000000000';

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

  const later = (ms: number): void => void (ahead += ms);
  return { store, log, run, statements, later, now, ask, inDatabase, ensure, ...makers(ask) };
}

function makers(ask: TestProvider['ask']): Pick<TestProvider, 'create' | 'group' | 'ordinary'> {
  let counter = 0;

  async function make(path: string, values: Record<string, unknown>): Promise<Answer['body']> {
    const answer = await ask('POST', path, { json: values });
    expect([answer.status, answer.body]).toEqual([201, expect.anything()]);
    return answer.body;
  }
  const create: TestProvider['create'] = (values) =>
    make('/core/users/', { username: `user-${(counter += 1)}`, name: 'N', ...values });

  return {
    create,
    group: (values) => make('/core/groups/', { name: `group-${(counter += 1)}`, ...values }),
    ordinary: async () => {
      const user = await create();
      const identifier = `token-of-${user.pk}`;
      await make('/core/tokens/', { identifier, user: user.pk, expiring: false });
      const { key } = (await ask('GET', `/core/tokens/${identifier}/view_key/`)).body;
      return { user, identifier, key };
    },
  };
}
