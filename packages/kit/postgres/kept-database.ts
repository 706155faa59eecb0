// Two ways to a PostgreSQL database with one face: kept connections (Node), or a fresh one for each
// piece of work (workerd, where a connection must not outlive its request). Either way every piece
// of work ends within its time.

import { AppError, codeOf, messageOf } from '../app-error.ts';
import { connect, isServerCode, type Sql, withDatabase } from './postgres.ts';
import type { Secret } from '../secret.ts';
import { withTimeout } from '../timeout.ts';

/**
 * Runs one piece of work on a connection; rejects with an AppError `unavailable` when the server
 * does not answer.
 */
export type RunSql = <T>(use: (sql: Sql) => Promise<T>) => Promise<T>;

export interface DatabaseOptions {
  /** Shown in pg_stat_activity. */
  name: string;
  /** The database in words: `the core's database`. */
  called: string;
  /** Remedy when there is no URL: the variable to set. */
  variable: string;
  withinMs?: number;
  /** How long a statement may wait for a lock; default: as long as for everything else. */
  lockTimeoutMs?: number;
  /**
   * Where an error without a code comes from; default: the work. The sockets of workerd give theirs
   * none.
   */
  uncoded?: 'work' | 'connection';
}

const WITHIN_MS = 5_000;
/** A connection keeps the default that it was opened with. */
const READ_ONLY = '25006';
/** Of a server that was told to stop a statement. */
const STATEMENT_TOO_LONG = '57014';
const CONNECTIONS = 3;
const DROPPED_POOL_GRACE_S = 5;

/**
 * Kept connections. A piece of work that is not done in time takes its pool with it: the next one
 * connects anew.
 */
export function keptDatabase(url: Secret | undefined, options: DatabaseOptions): RunSql {
  let pool: Sql | undefined;

  /** What runs on it may still end; the next piece of work connects anew. */
  function drop(used: Sql): void {
    if (pool === used) pool = undefined;
    void used.end({ timeout: DROPPED_POOL_GRACE_S });
  }

  return async function run<T>(use: (sql: Sql) => Promise<T>): Promise<T> {
    const used = (pool ??= connect(needed(url, options), {
      name: options.name,
      max: CONNECTIONS,
      ...limits(options),
    }));
    const late = (): AppError => {
      drop(used);
      return tooLate(options);
    };
    try {
      return await withTimeout(options.withinMs ?? WITHIN_MS, late, use(used));
    } catch (error) {
      if (codeOf(error) === READ_ONLY) drop(used);
      throw explained(error, options);
    }
  };
}

/** A connection for each piece of work, closed afterwards. */
export function freshConnections(url: Secret | undefined, options: DatabaseOptions): RunSql {
  return async function run(use) {
    try {
      const limitMs = options.withinMs ?? WITHIN_MS;
      return await withDatabase(needed(url, options), options.name, limitMs, use, limits(options));
    } catch (error) {
      throw explained(error, options);
    }
  };
}

/** The server gives up a little before we do: then the connection stays good. */
function limits({ withinMs = WITHIN_MS, lockTimeoutMs = 0 }: DatabaseOptions) {
  return { statementTimeoutMs: Math.round(withinMs * 0.8), lockTimeoutMs };
}

export function needed(url: Secret | undefined, { called, variable }: DatabaseOptions): Secret {
  if (url !== undefined) return url;
  throw new AppError('unavailable', `It is not known where ${called} is. Remedy: set ${variable}.`);
}

function tooLate({ called, withinMs = WITHIN_MS }: DatabaseOptions): AppError {
  return new AppError('unavailable', `${capital(called)} did not answer within ${withinMs / 1000} s`);
}

/** What has no code was thrown by the work itself, or in workerd by the connection. */
function explained(error: unknown, options: DatabaseOptions): unknown {
  if (error instanceof AppError) return error;
  const { called, uncoded = 'work' } = options;
  const code = codeOf(error) ?? '';
  if (code === '' && uncoded === 'work') return error;
  if (code === STATEMENT_TOO_LONG) return tooSlow(options, error);
  const ofServer = isServerCode(code) && !/^(57P|08|28|3D)/.test(code);
  if (ofServer && !isFatal(error)) return error;
  const what = ofServer ? 'refuses the connection' : 'does not answer';
  return new AppError('unavailable', `${capital(called)} ${what}: ${messageOf(error)}`, { cause: error });
}

/** The server ended the connection, or has not let it in: no work was refused. */
function isFatal(error: unknown): boolean {
  return error instanceof Error && 'severity' in error && error.severity === 'FATAL';
}

function tooSlow(options: DatabaseOptions, cause: unknown): AppError {
  const seconds = limits(options).statementTimeoutMs / 1000;
  const text = `${capital(options.called)} took longer than ${seconds} s for one query: it is overloaded, or something holds a lock`;
  return new AppError('unavailable', text, { cause });
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
