// Tables for the rows of another product, whose own programs are not here to make them: their
// columns alone, without constraints and indexes. Only a proof uses them.

import type { ArchivedColumn, ArchivedDatabase } from './manifest.ts';
import { identifier, quoted } from './tables.ts';
import type { Sql } from '@holdfast/kit/postgres';

const OF_KINDS = { vector: 'bit varying', bytes: 'bytea', plain: undefined } as const;

/**
 * Makes those that are not there. A type that this PostgreSQL lacks, as PostGIS has, becomes text.
 */
export async function makeBareTables(sql: Sql, { tables }: Pick<ArchivedDatabase, 'tables'>): Promise<void> {
  const types = new Map<string, string>();
  for (const type of new Set(tables.flatMap(({ columns }) => columns.map((column) => column.type ?? 'text')))) {
    // Its name as the server writes it, so that nothing of the archive becomes part of a statement.
    const [row] = await sql<{ name: string | null }[]>`SELECT format_type(to_regtype(${type}), -1) AS name`;
    types.set(type, row?.name ?? 'text');
  }
  const typeOf = ({ kind, type = 'text' }: ArchivedColumn): string => OF_KINDS[kind] ?? types.get(type) ?? 'text';
  for (const { name, columns } of tables) {
    const fields = columns.map((column) => `${identifier(column.name)} ${typeOf(column)}`);
    await sql.unsafe(`CREATE TABLE IF NOT EXISTS ${quoted(name)} (${fields.join(', ')})`);
  }
}
