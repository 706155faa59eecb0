// Connections to PostgreSQL.

import postgres from 'postgres';
import { codeOf, messageOf } from '../app-error.ts';
import type { Log } from '../log.ts';
import { retry } from '../retry.ts';
import type { Secret } from '../secret.ts';
import { withTimeout } from '../timeout.ts';

export type Sql = postgres.Sql;
export type TransactionSql = postgres.TransactionSql;
export type Notice = postgres.Notice;

export interface ConnectOptions {
  /** Shown in pg_stat_activity. */
  name: string;
  /** Connections kept at most. */
  max?: number;
  /** The server cancels a statement that takes longer; default: never. */
  statementTimeoutMs?: number;
  /** The server gives up waiting for a lock after this time; default: never. */
  lockTimeoutMs?: number;
  /** For work without an end in sight: neither age nor idle time closes the connection. */
  lasting?: boolean;
  /** Makes its sockets, already connected; default: the client's own. */
  socket?: (server: ConnectTo) => Promise<unknown>;
  /** Notices and warnings of the server; default: nobody hears them. */
  onNotice?: (notice: Notice) => void;
}

/** As the client has read it from the URL. */
export interface ConnectTo {
  host: string[];
  port: number[];
  /** Of a local socket. */
  path: string | false;
}

/**
 * A lazy pool: nothing is connected before the first query. Two features of the client do not
 * survive a connection that dies: `reserve()` gives it back to the pool dead, so it is never used,
 * and the query for array types rejects where nobody listens, so types are not fetched. End it with
 * `end({ timeout })`: without one, the end waits for ever for a connection that has died.
 */
export function connect(
  url: Secret,
  { name, max = 5, statementTimeoutMs = 0, lockTimeoutMs = 0, lasting = false, socket, onNotice }: ConnectOptions,
): Sql {
  return postgres(url.reveal(), {
    max,
    connect_timeout: 5,
    idle_timeout: lasting ? 0 : 60,
    max_lifetime: lasting ? 0 : 300,
    fetch_types: false,
    backoff: () => 0.25,
    onnotice: onNotice ?? (() => undefined),
    ...(socket && { socket }),
    connection: { application_name: name, statement_timeout: statementTimeoutMs, lock_timeout: lockTimeoutMs },
  });
}

/**
 * Works on a connection of its own that is closed afterwards. Rejects after `limitMs` at the
 * latest: very rarely the client never settles a call whose connection has died, and a fresh
 * connection is then the only way on.
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
    return await withTimeout(limitMs, late, use(sql));
  } finally {
    await sql.end({ timeout: 0.2 });
  }
}

/** PostgreSQL's own codes come from a server that answers, other codes are of the connection. */
export function isServerCode(code: string): boolean {
  return /^[0-9FHPX][0-9A-Z]{4}$/.test(code);
}

/**
 * A failure that passes by itself: nothing answers, the server starts or stops, or it has no
 * connection free.
 */
export function isPassing(error: unknown): boolean {
  const code = codeOf(error);
  if (code === undefined) return false;
  return !isServerCode(code) || /^(57P|08|53300)/.test(code);
}

/**
 * As withDatabase, and waits until the server answers: the parts of a stack come up in any order,
 * and a program that ends instead is started again after ever longer pauses (Kubernetes: up to five
 * minutes). Any other failure is thrown.
 */
export async function withAwaitedDatabase<T>(
  log: Log,
  ...[url, name, limitMs, use]: Parameters<typeof withDatabase<T>>
): Promise<T> {
  let wasMissed = false;
  const done = await retry(async () => ({ value: await withDatabase(url, name, limitMs, use) }), {
    stopped: new AbortController().signal,
    isFinal: (error) => !isPassing(error),
    failed(error, retryInMs) {
      wasMissed = true;
      log.warn('database.awaited', { error: messageOf(error), retry_in_ms: retryInMs });
    },
  });
  if (done === undefined) throw new Error('the wait for the database was stopped');
  if (wasMissed) log.info('database.answers');
  return done.value;
}

export type AnySql = Sql | TransactionSql;
export type Piece = ReturnType<Sql>;

/**
 * Removes PGSSL, PGTARGETSESSIONATTRS and the like: our database URLs are complete, and the client
 * would mix them in.
 */
export function forgetPostgresVariables(environment: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(environment)) if (/^PG[A-Z_]+$/.test(name)) delete environment[name];
}
