// Copies single rows from the databases of an archive, which a scratch server holds, into those of
// a running stack. Rows travel as JSON, in which every value of ours keeps its type.

import type { AnySql, TransactionSql } from '@holdfast/kit/postgres';
import { identifier, quoted } from '../tables.ts';

/** Of the same schema. */
export interface Databases {
  /** Of the archive. */
  from: AnySql;
  /** Of the running stack: what is written here is written together. */
  to: TransactionSql;
}

/** What is done with one account, mission or file. */
export interface PartChange {
  target: string;
  /** `completed`: it is there and gets what it lacks. `kept`: nothing is changed. */
  effect: 'new' | 'replaced' | 'completed' | 'kept' | 'refused';
  /** In plain words. */
  detail: string;
}

/**
 * Rows of a table as JSON, without these columns. `where` has `t` for the row, `$1` for `value`.
 */
export async function readRows(
  from: AnySql,
  table: string,
  where: string,
  value: string,
  without: readonly string[] = [],
): Promise<string[]> {
  const minus = without.map((column) => ` - '${column}'`).join('');
  const rows = await from.unsafe<{ row: string }[]>(
    `SELECT (to_jsonb(t)${minus})::text AS row FROM ${quoted(table)} t WHERE ${where}`,
    [value],
  );
  return rows.map(({ row }) => row);
}

/** With other values in some columns; a row that is there already stays as it is. */
export async function insertRow(
  to: TransactionSql,
  table: string,
  row: string,
  others: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  await to.unsafe(
    `INSERT INTO ${quoted(table)} OVERRIDING SYSTEM VALUE
      SELECT * FROM jsonb_populate_record(NULL::${quoted(table)}, $1::text::jsonb || $2::text::jsonb) ON CONFLICT DO NOTHING`,
    [row, JSON.stringify(others)],
  );
}

/**
 * The id that a row had, if its sequence has passed it and no row has it now; else a new one.
 * Sequences are never set: programs draw from them meanwhile.
 */
export async function freeId(
  to: TransactionSql,
  { table, column, sequence }: { table: string; column: string; sequence: string },
  wanted: string,
): Promise<string> {
  const [row] = await to.unsafe<{ id: string }[]>(
    `SELECT CASE WHEN $1::text::bigint > s.last_value OR EXISTS (
        SELECT FROM ${quoted(table)} t WHERE t.${identifier(column)} = $1::text::bigint)
      THEN nextval('${quoted(sequence)}') ELSE $1::text::bigint END::text AS id FROM ${quoted(sequence)} s`,
    [wanted],
  );
  if (row === undefined) throw new Error(`no id for ${table}`);
  return row.id;
}
