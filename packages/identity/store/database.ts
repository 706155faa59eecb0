// Provides what the parts of the store share: database access, errors, conditions and pages.

import type postgres from 'postgres';
import { codeOf } from '@holdfast/kit/app-error';

/**
 * Runs one piece of work on a connection; rejects with an AppError `unavailable` when the server
 * does not answer.
 */
export type RunSql = <T>(use: (sql: postgres.Sql) => Promise<T>) => Promise<T>;

/** A connection, or a transaction on one. */
export type Sql = postgres.ISql;

/** A piece of a statement with its parameters. */
export type Piece = postgres.Fragment;

/** Values that the store does not take: field -> what is wrong with it, in sentences. */
export class FieldRefusal extends Error {
  readonly fields: Readonly<Record<string, string[]>>;

  constructor(fields: Record<string, string | string[]>) {
    super('invalid values');
    this.name = 'FieldRefusal';
    this.fields = Object.fromEntries(
      Object.entries(fields).map(([field, reported]) => [field, typeof reported === 'string' ? [reported] : reported]),
    );
  }
}

/** A value outside the ones that a filter knows. */
export function noChoice(field: string, value: string): FieldRefusal {
  return new FieldRefusal({ [field]: `Select a valid choice. ${value} is not one of the available choices.` });
}

const UNIQUE_VIOLATION = '23505';
const FOREIGN_KEY_VIOLATION = '23503';
const DEADLOCK = '40P01';
const MAX_TRIES = 4;

/** Turns the breach of a named unique constraint into a refusal; other errors go on as they are. */
export function refusing(taken: Record<string, FieldRefusal>): (error: unknown) => never {
  return (error) => {
    if (isTaken(error)) {
      const { constraint_name: constraint = '' } = error as { constraint_name?: string };
      const refusal = taken[constraint];
      if (refusal !== undefined) throw refusal;
    }
    throw error;
  };
}

/** True for the breach of a unique constraint. */
export function isTaken(error: unknown): boolean {
  return codeOf(error) === UNIQUE_VIOLATION;
}

/** True when what a row points at has gone in the meantime. */
export function pointsNowhere(error: unknown): boolean {
  return codeOf(error) === FOREIGN_KEY_VIOLATION;
}

/**
 * One transaction. Whoever gives way in a deadlock begins anew: the other one has ended by then.
 */
export async function inTransaction<T>(run: RunSql, work: (sql: Sql) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return (await run((sql) => sql.begin(work))) as T;
    } catch (error) {
      if (codeOf(error) !== DEADLOCK || tries === MAX_TRIES) throw error;
    }
  }
}

export interface Paging {
  /** From 1. */
  page: number;
  pageSize: number;
  /** Fields, with `-` in front for descending; unknown ones are passed over. */
  ordering: readonly string[];
}

export interface Found<T> {
  results: T[];
  /** Of the filtered set. */
  count: number;
}

/** `first AND second ...`; true without any. */
export function allOf(sql: Sql, conditions: readonly Piece[]): Piece {
  return conditions.reduce((all, each) => sql`${all} AND ${each}`, sql`true`);
}

/**
 * `ORDER BY` of the wanted columns out of the known ones, and of `last`, so that pages never
 * overlap.
 */
export function orderBy(
  sql: Sql,
  wanted: readonly string[],
  known: Readonly<Record<string, Piece>>,
  usual: Piece,
  last: Piece,
): Piece {
  const pieces = wanted.flatMap((each) => {
    const descending = each.startsWith('-');
    const field = descending ? each.slice(1) : each;
    const column = Object.hasOwn(known, field) ? known[field] : undefined;
    if (column === undefined) return [];
    return [descending ? sql`${column} DESC NULLS LAST` : sql`${column} ASC NULLS FIRST`];
  });
  const order = pieces.length === 0 ? usual : pieces.reduce((all, each) => sql`${all}, ${each}`);
  return sql`ORDER BY ${order}, ${last}`;
}

/** How many rows there are: `SELECT count(*)` and `from`. */
export async function countOf(sql: Sql, from: Piece): Promise<number> {
  const [counted] = await sql<{ count: number }[]>`SELECT count(*)::int AS count ${from}`;
  return counted?.count ?? 0;
}

/** `LIMIT` and `OFFSET` of a page. */
export function pageOf(sql: Sql, { page, pageSize }: Paging): Piece {
  return sql`LIMIT ${pageSize} OFFSET ${(page - 1) * pageSize}`;
}

/** A pattern that finds the text anywhere, whatever is in it. */
export function containing(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
}
