// A connection that is about to vacuum one table: who it is, that it is the right table, that no other one does the same job, and how its
// statement ended.

import postgres from 'postgres';
import { AppError } from '../domain/app-error.ts';
import { messageOf } from '../domain/thrown.ts';
import type { VacuumOrder } from '../ports/core-vacuum.ts';
import type { Notice, Sql } from './postgres.ts';
import { statementName } from './vacuum-statement.ts';

export interface OpenStatement {
  pid: number;
  /** The statement, as the server quotes the name of the table. */
  text: string;
  oid: number;
  filenode: number;
  /** Number of the lock of its job, as text. */
  lock: string;
}

/** How it ended: SQLSTATE of its error, and what the server has said of it. */
export interface End {
  error: string | null;
  words: string | null;
  isBroken: boolean;
}

type Found = OpenStatement & { database: string; role: string; owns: boolean };

/**
 * ANALYZE, also with FULL: a rewrite leaves the counts of dead rows as they were, and everybody who looks at them would go on as if nothing
 * had happened. It comes after the exclusive lock was given back.
 */
const OPTIONS = { full: 'FULL, ANALYZE', standard: 'ANALYZE' };

/** Settings of a server by which it would end a statement, or the connection that tells of its end; not every version has each. */
const LIMITS = ['client_connection_check_interval', 'idle_session_timeout', 'transaction_timeout'];

/** Under the name of its job from now on. Rejects with `upstream` or `conflict`. */
export async function openStatement(sql: Sql, order: VacuumOrder): Promise<OpenStatement> {
  const found = await whereItLeads(sql, order);
  refuseAnother(found, order);
  const [got] = await sql<[{ locked: boolean }]>`SELECT pg_try_advisory_lock(${found.lock}) AS locked`;
  if (!got.locked) throw new AppError('conflict', `A statement of the vacuum job ${order.job} still runs.`);
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
      `CORE_DATABASE_OWNER_URL leads to the database ${database} as ${role}, who is not its owner. Remedy: the URL of CORE_DATABASE_URL with user and password of the owner.`,
    );
  if (oid !== order.oid)
    throw new AppError(
      'upstream',
      oid === 0
        ? `There is no table ${name} in ${database} any more, or CORE_DATABASE_OWNER_URL leads to another database than CORE_DATABASE_URL.`
        : `The table ${name} in ${database} is not the one that was meant: it was made anew, or CORE_DATABASE_OWNER_URL leads to another database than CORE_DATABASE_URL.`,
    );
}

/** A FULL that was carried out is one, whatever has kept ANALYZE out afterwards. */
export async function endByError(thrown: unknown, sql: Sql, opened: OpenStatement): Promise<End> {
  const isAnswer = thrown instanceof postgres.PostgresError && thrown.severity === 'ERROR';
  if (!isAnswer) return { error: null, words: `the connection broke: ${messageOf(thrown)}`, isBroken: true };
  const rewritten = await isRewritten(sql, opened).catch(() => false);
  if (rewritten) return { error: null, words: `rewritten, but not analysed: ${thrown.message}`, isBroken: false };
  return { error: thrown.code, words: thrown.message, isBroken: false };
}

async function isRewritten(sql: Sql, { pid, oid, filenode }: OpenStatement): Promise<boolean> {
  const rows = await sql`
    SELECT FROM pg_class WHERE oid = ${oid} AND relfilenode <> ${filenode} AND pg_backend_pid() = ${pid}`;
  return rows.length === 1;
}

const NOT_PERMITTED = '42501';
const UNDEFINED_TABLE = '42P01';

/** What the server has left out with a warning is an error: it answers success then. Its words are in any language, its routines are not. */
export function endByNotices(notices: readonly Notice[]): End {
  for (const { severity, code, routine, message = '' } of notices) {
    const isRefused = /^vacuum_is_(?:permitted_for_relation|relation_owner)$/.test(routine ?? '');
    if (severity === 'WARNING' && (isRefused || code === UNDEFINED_TABLE))
      return { error: isRefused ? NOT_PERMITTED : UNDEFINED_TABLE, words: message, isBroken: false };
  }
  return { error: null, words: null, isBroken: false };
}
