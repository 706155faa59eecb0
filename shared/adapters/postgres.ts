// Connections to PostgreSQL.

import postgres from 'postgres';
import type { Secret } from '../domain/secret.ts';

export type Sql = postgres.Sql;
export type TransactionSql = postgres.TransactionSql;

export interface ConnectOptions {
  /** Shown in pg_stat_activity. */
  name: string;
  /** Connections kept at most. */
  max?: number;
}

/**
 * A lazy pool: nothing is connected before the first query. Notices of the server are dropped. Two features of the
 * client do not survive a connection that dies: `reserve()` gives it back to the pool dead, so it is never used, and the
 * query for array types rejects where nobody listens, so types are not fetched.
 * End it with `end({ timeout })`: without one, the end waits for ever for a connection that has died.
 */
export function connect(url: Secret, { name, max = 5 }: ConnectOptions): Sql {
  return postgres(url.reveal(), {
    max,
    connect_timeout: 5,
    idle_timeout: 60,
    fetch_types: false,
    backoff: () => 0.25,
    onnotice: () => undefined,
    connection: { application_name: name },
  });
}
