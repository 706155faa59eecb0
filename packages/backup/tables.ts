// Reads what a database of ours holds: its tables, their columns and sizes, its sequences.

import { StackError } from '@holdfast/kit/app-error';
import type { AnySql } from '@holdfast/kit/postgres';
import type { Secret } from '@holdfast/kit/secret';
import type { ArchivedColumn, ArchivedDatabase, DatabaseKey } from './manifest.ts';

/** A database that is copied out or in, as the owner of its tables. */
export interface DatabasePlace {
  key: DatabaseKey;
  url: Secret;
  /** The table of its migrations, which is schema; undefined if the schema isn't ours. */
  migrations?: string;
  /**
   * For a schema that another product makes: a query for what it has done to it, as `mark`. All
   * marks of a database must also be those of the rows that are loaded into it.
   */
  marks?: string;
}

export interface TableInfo {
  name: string;
  /** `p`: it has partitions, which are copied with it. */
  kind: 'r' | 'p';
  columns: ArchivedColumn[];
  /** With indexes and everything else. */
  bytes: number;
  /** Of its rows alone. */
  heapBytes: number;
}

/**
 * Tables of history: what devices have sent, and its pictures and links. Without history their rows
 * are left out.
 */
const HISTORY_TABLES: Readonly<Record<DatabaseKey, readonly string[]>> = {
  core: ['cot_router', 'cot_router_chat', 'cot_image', 'cot_thumbnail', 'cot_link', 'latestcot'],
  identity: [],
  // Figures of those rows.
  state: ['retention_day'],
};

/** Who is signed in: a restored stack asks everybody again. */
const NEVER_COPIED: Readonly<Record<DatabaseKey, readonly string[]>> = { core: [], identity: [], state: ['session'] };

/** Whether a backup, a restore and a proof leave out the rows of a table. */
export function isLeftOut(key: DatabaseKey, table: string, history: boolean): boolean {
  return NEVER_COPIED[key].includes(table) || (!history && HISTORY_TABLES[key].includes(table));
}

/** Every ordinary table in schema public, except those of extensions and of migrations. */
export async function readTables(sql: AnySql, migrations: string | undefined): Promise<TableInfo[]> {
  const rows = await sql<{ name: string; kind: 'r' | 'p'; columns: ArchivedColumn[]; bytes: number; heap: number }[]>`
    SELECT c.relname AS name, c.relkind AS kind, size.total::float8 AS bytes, size.heap::float8 AS heap,
      (SELECT json_agg(json_build_object('name', a.attname, 'kind',
          CASE t.typname WHEN 'varbit' THEN 'vector' WHEN 'bytea' THEN 'bytes' ELSE 'plain' END,
          'type', format_type(a.atttypid, a.atttypmod))
        ORDER BY CASE t.typname WHEN 'varbit' THEN 0 WHEN 'bytea' THEN 2 ELSE 1 END, a.attnum)
      FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '') AS columns
    FROM pg_class c
    CROSS JOIN LATERAL (SELECT sum(pg_total_relation_size(p.relid)) AS total, sum(pg_table_size(p.relid)) AS heap
      FROM pg_partition_tree(c.oid) p UNION ALL SELECT pg_total_relation_size(c.oid), pg_table_size(c.oid)
      WHERE c.relkind = 'r') AS size
    WHERE c.relnamespace = to_regnamespace('public') AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND c.relpersistence <> 't' AND size.total IS NOT NULL
      AND c.relname <> ${migrations ?? ''}
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    ORDER BY c.relname COLLATE "C"`;
  return rows.map(({ name, kind, columns, bytes, heap }) => ({
    name,
    kind,
    columns: columns ?? [],
    bytes,
    heapBytes: heap,
  }));
}

export async function readSequences(sql: AnySql): Promise<ArchivedDatabase['sequences']> {
  const names = await sql<{ name: string }[]>`
    SELECT c.relname AS name FROM pg_class c
    WHERE c.relnamespace = to_regnamespace('public') AND c.relkind = 'S'
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    ORDER BY c.relname COLLATE "C"`;
  const found: ArchivedDatabase['sequences'] = [];
  for (const { name } of names) {
    const [row] = await sql.unsafe<{ last_value: string; is_called: boolean }[]>(
      `SELECT last_value::text, is_called FROM ${quoted(name)}`,
    );
    if (row !== undefined) found.push({ name, ...row });
  }
  return found;
}

/**
 * Throws a StackError if a database that another product fills has something that no copy of its
 * tables holds.
 */
export async function refuseUncopied(sql: AnySql, key: DatabaseKey): Promise<void> {
  const found = await sql<{ what: string }[]>`
    SELECT 'tables in the schema ' || n.nspname AS what FROM pg_namespace n
    WHERE n.nspname <> 'public' AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
      AND EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p') AND NOT EXISTS (
        SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'))
    UNION ALL
    SELECT 'large objects' WHERE EXISTS (SELECT FROM pg_largeobject_metadata)
    ORDER BY 1`;
  if (found.length === 0) return;
  throw new StackError(
    `The database ${key} has ${found.map(({ what }) => what).join(', ')}, which a backup can't hold.`,
    'remove them, or back up the volumes while the stack is stopped (docs/containers.md)',
  );
}

/** The number of the last migration; null if the database has no table of them. */
export async function readSchemaNumber(sql: AnySql, migrations: string | undefined): Promise<number | null> {
  if (migrations === undefined) return null;
  const [{ there } = { there: false }] = await sql<{ there: boolean }[]>`
    SELECT to_regclass(${`public.${migrations}`}) IS NOT NULL AS there`;
  if (!there) return null;
  const [row] = await sql.unsafe<{ number: number | null }[]>(
    `SELECT max(number) AS number FROM ${quoted(migrations)}`,
  );
  return row?.number ?? 0;
}

/** A name of schema public in a statement. */
export function quoted(name: string): string {
  return `public.${identifier(name)}`;
}

export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Where the entries of a table are in an archive. */
export function tableDirectory(key: DatabaseKey, table: string): string {
  return `databases/${key}/${table}`;
}

export function partName(directory: string, number: number, ending = 'copy'): string {
  return `${directory}/${String(number).padStart(5, '0')}.${ending}`;
}
