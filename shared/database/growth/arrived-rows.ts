// Samples rows that arrived in the last seconds evenly by primary key, each with the number of rows
// it represents. The work is bounded for any size of the table; if there are few rows, all are
// taken.

import type { Piece, TransactionSql } from '@holdfast/kit/postgres';

/** Runs one statement within the remaining time. */
export type TimedQuery = <T>(question: (tx: TransactionSql) => PromiseLike<T>) => Promise<T>;

/** A table with an ascending key `id` and an index on the arrival time. */
export interface FilledTable {
  table: string;
  arrived: string;
  uid: string;
  /** A column, or a constant for all rows. */
  cotType: string;
  columns: readonly string[];
  /** Where a row has its callsign. */
  callsign: { column: string } | { detail: string } | undefined;
}

/** One sampled row. */
export interface Arrival {
  table: FilledTable;
  id: number;
  at_ms: number;
  uid: string | null;
  cot_type: string | null;
  bytes: number;
  /** How many rows it represents. */
  weight: number;
}

const EVENT =
  'id uid cot_type access qos opex start time stale how point_hae point_ce point_le detail servertime event_pt groups'.split(
    ' ',
  );
/** Tables with columns that a TAK Server release also has. */
export const FILLED_TABLES: readonly FilledTable[] = [
  {
    table: 'cot_router',
    arrived: 'servertime',
    uid: 'r.uid',
    cotType: 'r.cot_type',
    columns: [...EVENT, 'servertime_hour'],
    callsign: { detail: 'detail' },
  },
  {
    table: 'cot_router_chat',
    arrived: 'servertime',
    uid: 'r.uid',
    cotType: 'r.cot_type',
    columns: [...EVENT, 'sender_callsign', 'dest_callsign', 'dest_uid', 'chat_content', 'chat_room'],
    callsign: { column: 'sender_callsign' },
  },
  {
    table: 'resource',
    arrived: 'submissiontime',
    uid: 'r.creatoruid',
    cotType: `'files'`,
    columns: ['data', 'filename', 'keywords', 'name', 'remarks', 'hash', 'mimetype', 'uid', 'submitter', 'groups'],
    callsign: undefined,
  },
];

/** Up to this many rows, all are taken. */
const FEW_ROWS = 5_000;
const SLOTS = 500;
const ROWS_OF_SLOT = 20;
const MAX_ROUNDS = 3;
/** The range of keys is taken from this many rows at each end, without outliers. */
const END_ROWS = 100;
const STRAYS = 0.05;
/** Header of a row and its pointer. */
const ROW_BYTES = 28;
/** More per row is index space left by deleted rows. */
const MAX_INDEX_BYTES = 1_000;
/** One more than shown, to detect a longer name. */
const NAME_READ = 201;

export async function arrivals(timed: TimedQuery, table: FilledTable, seconds: number): Promise<Arrival[]> {
  const { count, first, last, index_bytes: indexBytes } = await extentOf(timed, table, seconds);
  const few = count <= FEW_ROWS;
  const rows =
    few || first === null || last === null
      ? (await allOf(timed, table, seconds)).map((row) => ({ ...row, weight: 1 }))
      : await sampleOf(timed, table, seconds, [{ first: Math.min(first, last), end: Math.max(first, last) + 1 }]);
  return rows.map(({ id, at_ms, uid, cot_type, stored, weight }) => {
    const bytes = stored + ROW_BYTES + Math.min(indexBytes, MAX_INDEX_BYTES);
    return { table, id, at_ms, uid, cot_type, bytes, weight };
  });
}

interface Extent {
  /** At most one more than FEW_ROWS. */
  count: number;
  first: number | null;
  last: number | null;
  index_bytes: number;
}

/** Ids need not ascend exactly with the time. */
async function extentOf(timed: TimedQuery, table: FilledTable, seconds: number): Promise<Extent> {
  const [row] = await timed((tx) => {
    const [from, at] = [tx.unsafe(table.table), tx.unsafe(table.arrived)];
    const end = (share: number, order: 'ASC' | 'DESC'): Piece => tx`
      (SELECT percentile_disc(${share}::float8) WITHIN GROUP (ORDER BY id)::float8 FROM (
        SELECT r.id FROM ${from} r WHERE ${within(tx, table, seconds)} ORDER BY r.${at} ${tx.unsafe(order)} LIMIT ${END_ROWS}) ends)`;
    return tx<[Extent]>`
      SELECT (SELECT count(*) FROM (
          SELECT FROM ${from} r WHERE ${within(tx, table, seconds)} ORDER BY r.${at} LIMIT ${FEW_ROWS + 1}) counted)::float8 AS count,
        ${end(STRAYS, 'ASC')} AS first, ${end(1 - STRAYS, 'DESC')} AS last,
        (SELECT pg_indexes_size(oid) / greatest(pg_stat_get_live_tuples(oid), reltuples, 1)
          FROM pg_class WHERE oid = to_regclass(${table.table}))::float8 AS index_bytes`;
  });
  return row;
}

type Row = Omit<Arrival, 'table' | 'bytes' | 'weight'> & { stored: number };

async function allOf(timed: TimedQuery, table: FilledTable, seconds: number): Promise<Row[]> {
  return timed(
    (tx) => tx<Row[]>`
      SELECT ${columnsOf(tx, table)} FROM ${tx.unsafe(table.table)} r WHERE ${within(tx, table, seconds)}
      ORDER BY r.${tx.unsafe(table.arrived)} LIMIT ${FEW_ROWS}`,
  );
}

/**
 * If most keys are unused (a sequence set ahead, deleted rows), it samples the used ranges again.
 */
async function sampleOf(
  timed: TimedQuery,
  table: FilledTable,
  seconds: number,
  ranges: readonly Pick<Slot, 'first' | 'end'>[],
): Promise<(Row & { weight: number })[]> {
  let slots = spread(ranges, SLOTS);
  for (let round = 1; ; round++) {
    const rows = await rowsOfSlots(timed, table, seconds, slots);
    const alive = new Set(rows.filter(({ inside }) => inside).map(({ slot }) => slot));
    if (round === MAX_ROUNDS || alive.size * 2 >= slots.length || alive.size === 0)
      return weighed(rows, slots, ROWS_OF_SLOT).filter(({ inside }) => inside);
    slots = spread(
      slots.filter((_, index) => alive.has(index)),
      SLOTS,
    );
  }
}

type SlotRow = Row & { slot: number; inside: boolean };

/** Reads from a random place in each slot to its end, then from its beginning. */
async function rowsOfSlots(
  timed: TimedQuery,
  table: FilledTable,
  seconds: number,
  slots: readonly Slot[],
): Promise<SlotRow[]> {
  const given = JSON.stringify(slots.map((slot, index) => ({ slot: index, ...slot })));
  return timed((tx) => {
    const part = (condition: Piece): Piece => tx`
      (SELECT ${columnsOf(tx, table)}, (${within(tx, table, seconds)}) IS TRUE AS inside
      FROM ${tx.unsafe(table.table)} r WHERE ${condition} ORDER BY r.id LIMIT ${ROWS_OF_SLOT})`;
    return tx<SlotRow[]>`
      SELECT s.slot, taken.* FROM json_to_recordset(${given}::text::json) AS s (slot int, first bigint, place bigint, "end" bigint)
      CROSS JOIN LATERAL (
        SELECT * FROM (
          ${part(tx`r.id >= s.place AND r.id < s.end`)} UNION ALL ${part(tx`r.id >= s.first AND r.id < s.place`)}
        ) both_parts LIMIT ${ROWS_OF_SLOT}) taken`;
  });
}

function within(tx: TransactionSql, { arrived }: FilledTable, seconds: number): Piece {
  const at = tx.unsafe(arrived);
  return tx`r.${at} >= now() - make_interval(secs => ${seconds}::float8) AND r.${at} <= now()`;
}

/** Does not decompress values that PostgreSQL stores out of line. */
function columnsOf(tx: TransactionSql, { arrived, uid, cotType, columns }: FilledTable): Piece {
  const stored = columns.map((column) => `coalesce(pg_column_size(r."${column}"), 0)`).join(' + ');
  return tx`r.id::float8 AS id, (extract(epoch FROM r.${tx.unsafe(arrived)}) * 1000)::float8 AS at_ms,
    left(${tx.unsafe(uid)}, ${NAME_READ}) AS uid, left(${tx.unsafe(cotType)}, ${NAME_READ}) AS cot_type,
    (${tx.unsafe(stored)})::float8 AS stored`;
}

/** Keys from `first` to before `end`; rows are read from `place` on, then from `first` on. */
export interface Slot {
  first: number;
  place: number;
  end: number;
}

export type Range = Pick<Slot, 'first' | 'end'>;

/** Splits the ranges into about this many slots with random places, as arrivals may be periodic. */
export function spread(ranges: readonly Range[], slots: number): Slot[] {
  const each = Math.max(1, Math.floor(slots / ranges.length));
  return ranges.flatMap((range) => parts(range, each));
}

export function parts({ first, end }: Range, count: number): Slot[] {
  const edge = (index: number): number => first + Math.floor(((end - first) * index) / count);
  return Array.from({ length: count }, (_, index) => ({ first: edge(index), end: edge(index + 1) }))
    .filter((part) => part.end > part.first)
    .map((part) => ({ ...part, place: part.first + Math.floor(Math.random() * (part.end - part.first)) }));
}

/**
 * A slot with fewer than `most` rows was read completely. In others `most` rows were read, and the
 * keys passed for them estimate the total. That is unbiased for any gaps, because the last row,
 * where reading stopped, is not counted.
 */
export function weighed<T extends { slot: number; id: number }>(
  rows: readonly T[],
  slots: readonly Slot[],
  most: number,
): (T & { weight: number })[] {
  const taken = new Map<number, { rows: number; farthest: number }>();
  for (const { slot: index, id } of rows) {
    const slot = slots[index];
    const known = taken.get(index);
    const passed = slot === undefined ? 0 : distance(slot, id);
    taken.set(index, { rows: (known?.rows ?? 0) + 1, farthest: Math.max(known?.farthest ?? 0, passed) });
  }
  return rows.map((row) => {
    const [slot, of] = [slots[row.slot], taken.get(row.slot)];
    if (slot === undefined || of === undefined || of.rows < most) return { ...row, weight: 1 };
    const perKey = (most - 1) / of.farthest;
    return { ...row, weight: Math.max(1, ((slot.end - slot.first) * perKey) / most) };
  });
}

export function distance({ first, place, end }: Slot, id: number): number {
  return id >= place ? id - place : end - place + (id - first);
}
