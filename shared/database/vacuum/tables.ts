// Reads the tables that can be vacuumed, with their files, columns and indexes, without waiting for
// locks.

import { codeOf } from '@holdfast/kit/app-error';
import type { Sql } from '@holdfast/kit/postgres';
import { bytesOfOwn, withOwnTables } from '../../core/database/table-sizes.ts';
import type { VacuumTable } from '../port.ts';
import { type Column, type Index, reclaimableBytes, type TableParts, type Toast } from './estimate.ts';

const PAGE_BYTES = 8192;

type TableRow = Omit<VacuumTable, 'reclaimable_bytes'> & { oid: number };
type PartRow = Index & {
  oid: number;
  table: number;
  name: string;
  kind: string;
  is_toast: boolean;
  is_locked: boolean;
};
type ColumnRow = Column & { relation: number; key: number };

export async function readVacuumTables(sql: Sql): Promise<VacuumTable[]> {
  const [tables, parts, columns] = await Promise.all([readTables(sql), readParts(sql), readColumns(sql)]);
  const pieces = await readPieces(sql, parts);
  const partsOf = Map.groupBy(parts, ({ table }) => table);
  const columnsOf = Map.groupBy(columns, ({ relation }) => relation);
  return tables.map(({ oid, ...table }) => {
    const made = assembled(oid, table.bytes, partsOf.get(oid) ?? [], columnsOf, pieces);
    return { ...table, reclaimable_bytes: made && reclaimableBytes(made) };
  });
}

function assembled(
  oid: number,
  bytes: number,
  parts: PartRow[],
  columnsOf: Map<number, ColumnRow[]>,
  pieces: Map<number, number | null>,
): TableParts | null {
  const heap = parts.find((part) => part.oid === oid);
  if (heap === undefined) return null;
  const columns = columnsOf.get(oid) ?? [];
  const own = new Map(columns.map((column) => [column.attnum, column]));
  const indexes = parts.filter(({ kind, is_toast }) => kind === 'i' && !is_toast);
  return {
    bytes,
    heap,
    columns,
    indexes: indexes.map((index) => ({
      ...index,
      columns: (columnsOf.get(index.oid) ?? []).map((key) => keyOf(key, own)),
    })),
    toast: toastOf(parts, pieces),
  };
}

/** A plain key has the statistics of its column; only an expression has its own. */
function keyOf(key: ColumnRow, own: Map<number, Column>): Column {
  const column = own.get(key.key);
  if (column === undefined) return key;
  const { avg_width, null_frac, n_distinct } = column;
  return { ...key, avg_width, null_frac, n_distinct };
}

function toastOf(parts: PartRow[], pieces: Map<number, number | null>): Toast | undefined {
  const toast = parts.find(({ kind }) => kind === 't');
  const index = parts.find(({ kind, is_toast }) => kind === 'i' && is_toast);
  return toast && { ...toast, index_bytes: index?.bytes ?? 0, piece_bytes: pieces.get(toast.oid) ?? null };
}

/**
 * How many TOAST tables are sampled, the pages of each, and the size from which sampling is worth
 * it.
 */
const LOOKED_AT = 8;
const PAGES_LOOKED_AT = 32;
const WORTH_BYTES = 4e6;
/** The most pieces on a page; full-size ones are four. */
const PIECES_OF_A_PAGE = 16;

/**
 * Samples the length of TOAST pieces, which no statistics have; pages can hold twice as many short
 * ones. Reads random positions, because PostgreSQL can't sample TOAST tables.
 */
async function readPieces(sql: Sql, parts: PartRow[]): Promise<Map<number, number | null>> {
  const worth = parts.filter(({ kind, bytes, is_locked }) => kind === 't' && bytes >= WORTH_BYTES && !is_locked);
  const largest = worth.toSorted((a, b) => b.bytes - a.bytes).slice(0, LOOKED_AT);
  return new Map(await Promise.all(largest.map(async (part) => [part.oid, await pieceBytes(sql, part)] as const)));
}

/** Null if the role may not read it (as on PostgreSQL 13), or the table no longer exists. */
async function pieceBytes(sql: Sql, { name, bytes }: PartRow): Promise<number | null> {
  try {
    const [row] = await sql<[{ length: number | null }]>`
      SELECT avg(octet_length(chunk_data))::float8 AS length FROM ${sql(`pg_toast.${name}`)}
      WHERE ctid = ANY (ARRAY(
        SELECT format('(%s,%s)', page, item)::tid
        FROM (
          SELECT floor(random() * ${bytes / PAGE_BYTES}::float8)::int8 FROM generate_series(1, ${PAGES_LOOKED_AT}::int)
        ) AS p (page), generate_series(1, ${PIECES_OF_A_PAGE}::int) AS item))`;
    return row.length;
  } catch (error) {
    if (['42501', '42P01'].includes(codeOf(error) ?? '')) return null;
    throw error;
  }
}

const vacuumed = (sql: Sql) => sql`
  own JOIN pg_class c ON c.oid = own.oid AND c.relkind IN ('r', 'm') AND c.relpersistence <> 't'`;

async function readTables(sql: Sql): Promise<TableRow[]> {
  return sql<TableRow[]>`
    WITH ${withOwnTables(sql)}
    SELECT own.oid, own.nspname AS schema, own.relname AS table,
      coalesce(${bytesOfOwn(sql)}, 0)::float8 AS bytes,
      pg_stat_get_dead_tuples(own.oid)::float8 AS dead_tuples,
      pg_stat_get_live_tuples(own.oid)::float8 AS live_tuples,
      pg_has_role(d.datdba, c.relowner, 'USAGE') AS allowed,
      d.dattablespace <> (SELECT oid FROM pg_tablespace WHERE spcname = 'pg_default') OR EXISTS (
        SELECT FROM pg_class p LEFT JOIN pg_index i ON i.indexrelid = p.oid
        WHERE p.reltablespace <> 0
          AND (p.oid IN (own.oid, own.reltoastrelid) OR i.indrelid IN (own.oid, own.reltoastrelid))
      ) AS elsewhere
    FROM ${vacuumed(sql)} JOIN pg_database d ON d.datname = current_database()
    ORDER BY bytes DESC, own.nspname, own.relname`;
}

/** The table itself, its TOAST table, and the indexes of both. */
async function readParts(sql: Sql): Promise<PartRow[]> {
  return sql<PartRow[]>`
    WITH ${withOwnTables(sql)}, part AS (
      SELECT own.oid AS table, own.is_locked, own.reltoastrelid, p.oid FROM ${vacuumed(sql)}
        JOIN pg_class p ON p.oid IN (own.oid, own.reltoastrelid)
      UNION ALL SELECT own.oid, own.is_locked, own.reltoastrelid, i.indexrelid FROM ${vacuumed(sql)}
        JOIN pg_index i ON i.indrelid IN (own.oid, own.reltoastrelid)
    )
    SELECT part.table, part.oid, part.is_locked, p.relname AS name, p.relkind AS kind, coalesce(i.indrelid = part.reltoastrelid, false) AS is_toast,
      coalesce(CASE WHEN part.is_locked THEN p.relpages * current_setting('block_size')::int8
        ELSE pg_relation_size(part.oid) END, 0)::float8 AS bytes,
      (SELECT option_value::int FROM pg_options_to_table(p.reloptions) WHERE option_name = 'fillfactor') AS fillfactor,
      p.relpages AS pages, p.reltuples::float8 AS reltuples,
      pg_stat_get_live_tuples(part.oid)::float8 AS live, pg_stat_get_dead_tuples(part.oid)::float8 AS dead,
      coalesce(pg_stat_get_last_vacuum_time(part.oid), pg_stat_get_last_autovacuum_time(part.oid),
        pg_stat_get_last_analyze_time(part.oid), pg_stat_get_last_autoanalyze_time(part.oid)) IS NOT NULL AS counted,
      m.amname AS method, coalesce(i.indisunique, false) AS unique, i.indpred IS NOT NULL AS partial,
      coalesce(i.indnkeyatts = i.indnatts AND NOT EXISTS (
        SELECT FROM unnest(i.indclass::oid[]) AS k (opclass) JOIN pg_opclass o ON o.oid = k.opclass
        WHERE NOT EXISTS (
          SELECT FROM pg_amproc f WHERE f.amprocfamily = o.opcfamily AND f.amproclefttype = o.opcintype AND f.amprocnum = 4)
      ), false) AS deduplicates
    FROM part JOIN pg_class p ON p.oid = part.oid
      LEFT JOIN pg_index i ON i.indexrelid = part.oid LEFT JOIN pg_am m ON m.oid = p.relam`;
}

/**
 * Columns of each table and its indexes, in order; `key` is the table's column at that place of an
 * index, or 0.
 */
async function readColumns(sql: Sql): Promise<ColumnRow[]> {
  return sql<ColumnRow[]>`
    WITH ${withOwnTables(sql)}, relation AS (
      SELECT own.oid, own.nspname, own.relname, NULL::int2vector AS keys FROM ${vacuumed(sql)}
      UNION ALL SELECT i.indexrelid, own.nspname, p.relname, i.indkey FROM ${vacuumed(sql)}
        JOIN pg_index i ON i.indrelid = own.oid JOIN pg_class p ON p.oid = i.indexrelid
    ), known AS MATERIALIZED (
      SELECT schemaname, tablename, attname, avg_width, null_frac, n_distinct FROM pg_stats WHERE NOT inherited
    )
    SELECT a.attrelid AS relation, a.attnum, a.attisdropped AS dropped, a.attlen AS length,
      CASE a.attalign WHEN 'd' THEN 8 WHEN 'i' THEN 4 WHEN 's' THEN 2 ELSE 1 END AS align,
      coalesce(r.keys[a.attnum - 1], 0)::int AS key,
      k.avg_width, k.null_frac::float8 AS null_frac, k.n_distinct::float8 AS n_distinct
    FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0
      LEFT JOIN known k ON k.schemaname = r.nspname AND k.tablename = r.relname AND k.attname = a.attname
    ORDER BY a.attrelid, a.attnum`;
}
