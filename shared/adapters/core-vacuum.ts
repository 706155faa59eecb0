// VACUUM of one table at a time, as the owner of the core's database, each on a connection of its own. The server goes on with it when this
// process dies; while it lives, the connection tells the outcome by its name for a minute. That one statement of a job runs at a time is
// the server's to say, by a lock that the connection holds.

import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../domain/app-error.ts';
import type { Secret } from '../domain/secret.ts';
import { messageOf } from '../domain/thrown.ts';
import type { CoreVacuum, VacuumOrder } from '../ports/core-vacuum.ts';
import type { Log } from '../ports/log.ts';
import { freshConnections, needed, type RunSql } from './kept-database.ts';
import { connect, type Notice, type Sql } from './postgres.ts';
import { withinMs } from './time-limit.ts';
import { unattendedSocket } from './unattended-socket.ts';
import { type End, endByError, endByNotices, openStatement, type OpenStatement } from './vacuum-connection.ts';
import { NAMELESS, outcomeName } from './vacuum-statement.ts';

export interface CoreVacuumOptions {
  /** The core's database as its owner; undefined: nobody may vacuum. */
  url: Secret | undefined;
  log: Log;
  /** So long a statement may wait for its lock. */
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
  /** By job: what runs, what shows its outcome, and what was said of the last ones. */
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

  /** The name goes first: the server may take a moment to notice that the connection was closed. */
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
    return words.get(job) ?? null;
  }

  return { begin, settle };
}

async function openedOn(sql: Sql, order: VacuumOrder): Promise<OpenStatement> {
  const late = (): Error => new Error(`no answer within ${OWNER.withinMs / 1000} s`);
  try {
    return await withinMs(OWNER.withinMs, openStatement(sql, order), late);
  } catch (error) {
    await closed(sql);
    if (error instanceof AppError) throw error;
    const text = `The core's database does not answer as its owner (CORE_DATABASE_OWNER_URL): ${messageOf(error)}`;
    throw new AppError('unavailable', text);
  }
}

/** Whoever cannot look goes on without having seen it: the statement was sent. */
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

/** False when it is not that connection any more: the client connects anew by itself. */
async function tell(sql: Sql, { pid, lock }: OpenStatement, name: string): Promise<boolean> {
  const telling = sql`
    SELECT set_config('application_name', ${name}, false), pg_advisory_unlock(${lock}) WHERE pg_backend_pid() = ${pid}`;
  return (await bounded(telling))?.length === 1;
}

/** Undefined when it fails, or is late. */
async function bounded<T>(work: PromiseLike<T>): Promise<T | undefined> {
  return withinMs(END_WITHIN_MS, Promise.resolve(work), () => new Error('late')).catch(() => undefined);
}

async function closed(sql: Sql): Promise<void> {
  await sql.end({ timeout: CLOSE_WITHIN_S });
}

function remember(words: Map<string, string | null>, job: string, said: string | null): void {
  words.delete(job);
  words.set(job, said);
  const [oldest] = words.keys();
  if (words.size > WORDS_KEPT && oldest !== undefined) words.delete(oldest);
}
