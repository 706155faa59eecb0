// Runs VACUUM of one table at a time as the owner of the core's database, each on its own
// connection. The server continues when this process dies. Afterwards the connection's name shows
// the outcome for a minute. An advisory lock of the connection ensures one statement per job.

import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import postgres from 'postgres';
import { AppError, messageOf } from '@holdfast/kit/app-error';
import { freshConnections, needed, type RunSql } from '@holdfast/kit/kept-database';
import type { Log } from '@holdfast/kit/log';
import { connect, type ConnectTo, type Notice, type Sql } from '@holdfast/kit/postgres';
import type { Secret } from '@holdfast/kit/secret';
import { withTimeout } from '@holdfast/kit/timeout';
import type { CoreVacuum, VacuumOrder } from '../port.ts';
import { NAMELESS, outcomeName, statementName } from './statement-name.ts';

/** A connection that is about to vacuum one table. */
export interface OpenStatement {
  pid: number;
  /** The statement, with the table name quoted by the server. */
  text: string;
  oid: number;
  filenode: number;
  /** Number of the job's lock, as text. */
  lock: string;
}

/** How it ended: SQLSTATE of its error, and the server's message. */
export interface End {
  error: string | null;
  words: string | null;
  isBroken: boolean;
}

type Found = OpenStatement & { database: string; role: string; owns: boolean };

/**
 * ANALYZE also with FULL: a rewrite does not update the counts of dead rows, so readers would see
 * no change. It runs after the exclusive lock is released.
 */
const OPTIONS = { full: 'FULL, ANALYZE', standard: 'ANALYZE' };

/**
 * Server settings that would end the statement, or the connection that shows its outcome; not every
 * version has each.
 */
const LIMITS = ['client_connection_check_interval', 'idle_session_timeout', 'transaction_timeout'];

/** Takes the lock and the name of the job. Rejects with `upstream` or `conflict`. */
export async function openStatement(sql: Sql, order: VacuumOrder): Promise<OpenStatement> {
  const found = await whereItLeads(sql, order);
  refuseAnother(found, order);
  const [got] = await sql<[{ locked: boolean }]>`SELECT pg_try_advisory_lock(${found.lock}) AS locked`;
  if (!got.locked) throw new AppError('conflict', `A statement of the vacuum job ${order.job} is still running.`);
  await sql`SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ${sql(LIMITS)}`;
  await sql`SELECT set_config('application_name', ${statementName(order.job)}, false)`;
  return found;
}

async function whereItLeads(sql: Sql, { job, mode, schema, table }: VacuumOrder): Promise<Found> {
  const [row] = await sql<[Found]>`
    SELECT pg_backend_pid() AS pid, format('VACUUM (%s) %I.%I', ${OPTIONS[mode]}::text, ${schema}::text, ${table}::text) AS text,
      coalesce(c.oid, 0::oid) AS oid, coalesce(c.relfilenode, 0::oid) AS filenode,
      ('x' || left(md5(${statementName(job)}), 16))::bit(64)::int8::text AS lock,
      d.datname AS database, current_user AS role, pg_has_role(d.datdba, 'USAGE') AS owns
    FROM pg_database d
      LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace)
        ON n.nspname = ${schema} AND c.relname = ${table}
    WHERE d.datname = current_database()`;
  return row;
}

function refuseAnother({ oid, owns, role, database }: Found, order: VacuumOrder): void {
  const name = `${order.schema}.${order.table}`;
  if (!owns)
    throw new AppError(
      'upstream',
      `CORE_DATABASE_OWNER_URL connects to the database ${database} as ${role}, who is not its owner. Remedy: set it to CORE_DATABASE_URL with the user and password of the owner.`,
    );
  if (oid !== order.oid)
    throw new AppError(
      'upstream',
      oid === 0
        ? `The table ${name} no longer exists in ${database}, or CORE_DATABASE_OWNER_URL and CORE_DATABASE_URL name different databases.`
        : `The table ${name} in ${database} is not the requested one: it was recreated, or CORE_DATABASE_OWNER_URL and CORE_DATABASE_URL name different databases.`,
    );
}

/** A completed FULL counts as done, even if ANALYZE failed afterwards. */
export async function endByError(thrown: unknown, sql: Sql, opened: OpenStatement): Promise<End> {
  const isAnswer = thrown instanceof postgres.PostgresError && thrown.severity === 'ERROR';
  if (!isAnswer) return { error: null, words: `the connection broke: ${messageOf(thrown)}`, isBroken: true };
  const rewritten = await isRewritten(sql, opened).catch(() => false);
  if (rewritten) return { error: null, words: `rewritten, but not analyzed: ${thrown.message}`, isBroken: false };
  return { error: thrown.code, words: thrown.message, isBroken: false };
}

async function isRewritten(sql: Sql, { pid, oid, filenode }: OpenStatement): Promise<boolean> {
  const rows = await sql`
    SELECT FROM pg_class WHERE oid = ${oid} AND relfilenode <> ${filenode} AND pg_backend_pid() = ${pid}`;
  return rows.length === 1;
}

const NOT_PERMITTED = '42501';
const UNDEFINED_TABLE = '42P01';

/**
 * A table skipped with a warning is an error, although the server reports success. Routine names
 * are not localized.
 */
export function endByNotices(notices: readonly Notice[]): End {
  for (const { severity, code, routine, message = '' } of notices) {
    const isRefused = /^vacuum_is_(?:permitted_for_relation|relation_owner)$/.test(routine ?? '');
    if (severity === 'WARNING' && (isRefused || code === UNDEFINED_TABLE))
      return { error: isRefused ? NOT_PERMITTED : UNDEFINED_TABLE, words: message, isBroken: false };
  }
  return { error: null, words: null, isBroken: false };
}

export interface CoreVacuumOptions {
  /** The core's database as its owner; undefined: vacuum is not possible. */
  url: Secret | undefined;
  log: Log;
  /** How long a statement may wait for its lock. */
  lockTimeoutMs?: number;
}

const OWNER = {
  name: NAMELESS,
  called: "the core's database as its owner",
  variable: 'CORE_DATABASE_OWNER_URL',
  withinMs: 10_000,
};
const LOCK_TIMEOUT_MS = 5000;
const OUTCOME_SHOWN_MS = 60_000;
const WORDS_KEPT = 100;
const LOOK_EVERY_MS = 25;
const CLOSE_WITHIN_S = 1;
const END_WITHIN_MS = 1000;

export function coreVacuum({ url, log, lockTimeoutMs = LOCK_TIMEOUT_MS }: CoreVacuumOptions): CoreVacuum {
  /**
   * By job: running statements, connections that show an outcome, and the messages of the last
   * ones.
   */
  const running = new Map<string, Promise<void>>();
  const shown = new Map<string, Sql>();
  const words = new Map<string, string | null>();
  const watch = freshConnections(url, { ...OWNER, name: `${NAMELESS}-watch` });

  async function begin(order: VacuumOrder): Promise<void> {
    const notices: Notice[] = [];
    await hide(order.job);
    const sql = connect(needed(url, OWNER), {
      name: OWNER.name,
      max: 1,
      lockTimeoutMs,
      lasting: true,
      socket: unattendedSocket,
      onNotice: (notice) => notices.push(notice),
    });
    const opened = await openedOn(sql, order);
    words.delete(order.job);
    const ended = carryOut(sql, order, opened, () => endByNotices(notices));
    running.set(order.job, ended);
    let isOver = false;
    const over = ended.finally(() => {
      isOver = true;
      if (running.get(order.job) === ended) running.delete(order.job);
    });
    await Promise.race([over, seenRunning(watch, opened.pid, () => isOver)]);
  }

  /** Never rejects. */
  async function carryOut(sql: Sql, order: VacuumOrder, opened: OpenStatement, noticed: () => End): Promise<void> {
    const { job, mode, schema, table } = order;
    log.info('vacuum.statement_began', { job, mode, schema, table, pid: opened.pid });
    const began = performance.now();
    const end = await sql.unsafe(opened.text).then(noticed, (error: unknown) => endByError(error, sql, opened));
    const seconds = Math.round(performance.now() - began) / 1000;
    log.info('vacuum.statement_ended', { job, mode, schema, table, seconds, error: end.words });
    remember(words, job, end.words);
    if (end.isBroken || !(await tell(sql, opened, outcomeName(job, end.error)))) return closed(sql);
    shown.set(job, sql);
    setTimeout(() => void (shown.get(job) === sql && hide(job)), OUTCOME_SHOWN_MS).unref();
  }

  /** Clears the name first: the server may take a moment to notice the closed connection. */
  async function hide(job: string): Promise<void> {
    const sql = shown.get(job);
    if (sql === undefined) return;
    shown.delete(job);
    await bounded(sql`SELECT set_config('application_name', ${NAMELESS}, false)`);
    await closed(sql);
  }

  async function settle(job: string): Promise<string | null> {
    await bounded(running.get(job) ?? Promise.resolve());
    await hide(job);
    await watch((sql) => hideElsewhere(sql, job)).catch(() => undefined);
    return words.get(job) ?? null;
  }

  return { begin, settle };
}

async function openedOn(sql: Sql, order: VacuumOrder): Promise<OpenStatement> {
  const late = (): Error => new Error(`no answer within ${OWNER.withinMs / 1000} s`);
  try {
    return await withTimeout(OWNER.withinMs, late, openStatement(sql, order));
  } catch (error) {
    await closed(sql);
    if (error instanceof AppError) throw error;
    const text = `The core's database does not answer as its owner (CORE_DATABASE_OWNER_URL): ${messageOf(error)}`;
    throw new AppError('unavailable', text);
  }
}

/** Ends connections of other processes of ours that show an outcome of the job. */
async function hideElsewhere(sql: Sql, job: string): Promise<void> {
  await sql`
    SELECT pg_terminate_backend(pid, ${END_WITHIN_MS}) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name LIKE ${`${statementName(job)} %`}`;
}

/** Continues even if the look-up fails, as the statement was sent. */
async function seenRunning(watch: RunSql, pid: number, isOver: () => boolean): Promise<void> {
  const look = async (sql: Sql): Promise<void> => {
    while (!isOver()) {
      const [row] = await sql`SELECT FROM pg_stat_activity WHERE pid = ${pid} AND query LIKE 'VACUUM %'`;
      if (row !== undefined) return;
      await delay(LOOK_EVERY_MS);
    }
  };
  await watch(look).catch(() => undefined);
}

/** False if it is no longer that connection: the client reconnects by itself. */
async function tell(sql: Sql, { pid, lock }: OpenStatement, name: string): Promise<boolean> {
  const telling = sql`
    SELECT set_config('application_name', ${name}, false), pg_advisory_unlock(${lock}) WHERE pg_backend_pid() = ${pid}`;
  return (await bounded(telling))?.length === 1;
}

/** Undefined if it fails or is late. */
async function bounded<T>(work: PromiseLike<T>): Promise<T | undefined> {
  return withTimeout(END_WITHIN_MS, () => new Error('late'), Promise.resolve(work)).catch(() => undefined);
}

async function closed(sql: Sql): Promise<void> {
  await sql.end({ timeout: CLOSE_WITHIN_S });
}

function remember(words: Map<string, string | null>, job: string, message: string | null): void {
  words.delete(job);
  words.set(job, message);
  const [oldest] = words.keys();
  if (words.size > WORDS_KEPT && oldest !== undefined) words.delete(oldest);
}

/** Connects to the first host that answers, with a socket that does not keep this process alive. */
async function unattendedSocket({ host, port, path }: ConnectTo): Promise<Socket> {
  if (path !== false) return connected(createConnection({ path }));
  for (const [place, name] of host.entries()) {
    const socket = createConnection({ host: name, port: port[place] ?? 5432 });
    try {
      // The client needs the host to check a certificate.
      return Object.assign(await connected(socket), { host: name });
    } catch (error) {
      if (place === host.length - 1) throw error;
    }
  }
  throw new Error('no host');
}

async function connected(socket: Socket): Promise<Socket> {
  socket.unref();
  await once(socket, 'connect');
  return socket;
}
