// Connections to PostgreSQL.

import postgres from 'postgres';
import type { Secret } from '../domain/secret.ts';
import { withinMs } from './time-limit.ts';

export type Sql = postgres.Sql;
export type TransactionSql = postgres.TransactionSql;

export interface ConnectOptions {
  /** Shown in pg_stat_activity. */
  name: string;
  /** Connections kept at most. */
  max?: number;
  /** The server cancels a statement that takes longer; default: never. */
  statementTimeoutMs?: number;
  /** The server gives up waiting for a lock after this time; default: never. */
  lockTimeoutMs?: number;
}

/**
 * A lazy pool: nothing is connected before the first query. Notices of the server are dropped. Two features of the
 * client do not survive a connection that dies: `reserve()` gives it back to the pool dead, so it is never used, and the
 * query for array types rejects where nobody listens, so types are not fetched.
 * End it with `end({ timeout })`: without one, the end waits for ever for a connection that has died.
 */
export function connect(
  url: Secret,
  { name, max = 5, statementTimeoutMs = 0, lockTimeoutMs = 0 }: ConnectOptions,
): Sql {
  return postgres(url.reveal(), {
    max,
    connect_timeout: 5,
    idle_timeout: 60,
    max_lifetime: 300,
    fetch_types: false,
    backoff: () => 0.25,
    onnotice: () => undefined,
    connection: { application_name: name, statement_timeout: statementTimeoutMs, lock_timeout: lockTimeoutMs },
  });
}

/**
 * Works on a connection of its own that is closed afterwards. Rejects after `limitMs` at the latest: very rarely the
 * client never settles a call whose connection has died, and a fresh connection is then the only way on.
 */
export async function withDatabase<T>(
  url: Secret,
  name: string,
  limitMs: number,
  use: (sql: Sql) => Promise<T>,
  limits: Pick<ConnectOptions, 'statementTimeoutMs' | 'lockTimeoutMs'> = {},
): Promise<T> {
  const sql = connect(url, { name, max: 1, ...limits });
  const late = (): Error =>
    Object.assign(new Error(`the database did not answer within ${limitMs / 1000} s`), { code: 'ETIMEDOUT' });
  try {
    return await withinMs(limitMs, use(sql), late);
  } finally {
    await sql.end({ timeout: 0.2 });
  }
}
