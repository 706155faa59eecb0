// Reads the sizes of the core's tables, and the largest sources of events, chat and files. Waits
// for locks no longer than the connection allows; sources are found within two seconds or not at
// all.

import { AppError, codeOf } from '@holdfast/kit/app-error';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Sql } from '@holdfast/kit/postgres';
import { oneLine, shortened } from '@holdfast/kit/text';
import { withTimeout } from '@holdfast/kit/timeout';
import { bytesOfOwn, seeingLocks, withOwnTables } from '../../core/database/table-sizes.ts';
import type { Filler, Fillers, GrowthFacts, TableSize } from '../port.ts';
import { type Arrival, arrivals, FILLED_TABLES, type FilledTable, type TimedQuery } from './arrived-rows.ts';

const LARGEST = 10;
const MAX_NAME_LENGTH = 200;
const NO_NAME = '(none)';

/** The largest types and UIDs among weighted sample rows. */
export interface LargestFillers {
  found: Omit<Fillers, 'uids'>;
  /** Without callsigns. */
  uids: Filler[];
  /** The newest sampled row of each of those UIDs, by name. */
  newest: Map<string, Arrival>;
}

interface Sum {
  name: string;
  rows: number;
  bytes: number;
  newest: Arrival;
  rowsOfType: Map<string, number>;
}

export function largestFillers(arrived: readonly Arrival[], seconds: number): LargestFillers {
  const [types, uids] = [new Map<string, Sum>(), new Map<string, Sum>()];
  let [rows, bytes] = [0, 0];
  for (const each of arrived) {
    rows += each.weight;
    bytes += each.weight * each.bytes;
    add(types, typeOf(each), each);
    add(uids, senderOf(each), each);
  }
  const largest = (of: ReadonlyMap<string, Sum>): Sum[] =>
    [...of.values()].toSorted((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1)).slice(0, LARGEST);
  const filler = (sum: Sum): Filler => ({
    name: sum.name,
    share: sum.bytes / bytes,
    rows: Math.round(sum.rows),
    bytes: Math.round(sum.bytes),
  });
  const heaviest = largest(uids);
  return {
    found: {
      seconds,
      sampled: arrived.length,
      rows: Math.round(rows),
      bytes: Math.round(bytes),
      types: largest(types).map(filler),
    },
    uids: heaviest.map((sum) => ({ ...filler(sum), cot_type: mostOf(sum.rowsOfType) })),
    newest: new Map(heaviest.map(({ name, newest }) => [name, newest])),
  };
}

function add(sums: Map<string, Sum>, name: string, arrival: Arrival): void {
  const sum = sums.get(name) ?? { name, rows: 0, bytes: 0, newest: arrival, rowsOfType: new Map<string, number>() };
  sum.rows += arrival.weight;
  sum.bytes += arrival.weight * arrival.bytes;
  if (arrival.at_ms > sum.newest.at_ms) sum.newest = arrival;
  const type = typeOf(arrival);
  sum.rowsOfType.set(type, (sum.rowsOfType.get(type) ?? 0) + arrival.weight);
  sums.set(name, sum);
}

function mostOf(rowsOfType: ReadonlyMap<string, number>): string | null {
  return [...rowsOfType].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}

function typeOf({ cot_type: type }: Arrival): string {
  return fit(type);
}

/** A chat message has its own UID, which contains that of its sender. */
function senderOf({ uid }: Arrival): string {
  return fit(/^GeoChat\.([^.]+)\./.exec(uid ?? '')?.[1] ?? uid);
}

/** Reduces untrusted text to one line of bounded length. */
export function fit(text: string | null): string {
  const line = shortened(oneLine(text ?? ''), MAX_NAME_LENGTH);
  return line === '' ? NO_NAME : line;
}

/** How many characters of a detail are searched for its contact. */
const DETAIL_READ = 20_000;
/** Larger details would take too long to decompress. */
const LARGEST_DETAIL_BYTES = 100_000;
const MAX_CALLSIGN_LENGTH = 200;
const CONTACT = /<contact\s[^<>]*?\bcallsign\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/;
const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Callsigns by the names of `newest`; rows without one are missing. */
export async function callsignsOf(
  timed: TimedQuery,
  newest: ReadonlyMap<string, Arrival>,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const table of new Set([...newest.values()].map((arrival) => arrival.table))) {
    const names = new Map([...newest].filter(([, of]) => of.table === table).map(([name, { id }]) => [id, name]));
    for (const [id, callsign] of await callsignsIn(timed, table, [...names.keys()])) {
      const name = names.get(id);
      if (name !== undefined && callsign !== '') found.set(name, callsign);
    }
  }
  return found;
}

async function callsignsIn(timed: TimedQuery, table: FilledTable, ids: number[]): Promise<[number, string][]> {
  const { callsign } = table;
  if (callsign === undefined) return [];
  const isDetail = 'detail' in callsign;
  const column = isDetail ? callsign.detail : callsign.column;
  const rows = await timed(
    (tx) => tx<{ id: number; text: string | null }[]>`
      SELECT r.id::float8 AS id,
        CASE WHEN pg_column_size(r.${tx.unsafe(column)}) <= ${LARGEST_DETAIL_BYTES} THEN left(r.${tx.unsafe(column)}, ${DETAIL_READ}) END AS text
      FROM ${tx.unsafe(table.table)} r WHERE r.id = ANY (${`{${ids.join()}}`}::text::bigint[])`,
  );
  return rows.map(({ id, text }) => [id, fitCallsign(isDetail ? contactIn(text ?? '') : (text ?? ''))]);
}

function contactIn(detail: string): string {
  const [, double, single] = CONTACT.exec(detail) ?? [];
  return (double ?? single ?? '').replaceAll(/&(\w+);/g, (entity, name: string) => ENTITIES[name] ?? entity);
}

function fitCallsign(callsign: string): string {
  return shortened(oneLine(callsign), MAX_CALLSIGN_LENGTH);
}

const FILLERS_WITHIN_MS = 2_000;
/** The fraction of the time for statements; the rest is for the connection. */
const FOR_STATEMENTS = 0.9;
const MAX_SECONDS = 86_400;
/** SQLSTATEs of a canceled statement, and of one without its lock. */
const NOT_IN_TIME = new Set(['57014', '55P03']);

export function growthFacts(run: RunSql, options: { withinMs?: number } = {}): GrowthFacts {
  const { withinMs: limitMs = FILLERS_WITHIN_MS } = options;
  return {
    tables: () => run(readTables),
    fillers: (seconds) =>
      withTimeout(
        limitMs,
        () => notInTime(limitMs),
        run((sql) => readFillers(sql, Math.min(Math.max(seconds, 1), MAX_SECONDS), limitMs)),
      ),
  };
}

async function readTables(sql: Sql): Promise<TableSize[]> {
  const rows = await seeingLocks(
    () => sql<TableSize[]>`
      WITH ${withOwnTables(sql)}, measured AS (
        SELECT nspname AS schema, relname AS table, ${bytesOfOwn(sql)}::float8 AS bytes,
          pg_stat_get_live_tuples(oid)::float8 AS rows
        FROM own)
      SELECT * FROM measured WHERE bytes IS NOT NULL ORDER BY bytes DESC, schema, "table"`,
  );
  return rows.map((row) => ({ ...row }));
}

async function readFillers(sql: Sql, seconds: number, limitMs: number): Promise<Fillers> {
  const until = performance.now() + limitMs * FOR_STATEMENTS;
  try {
    return await sql.begin('READ ONLY', async (tx) => {
      const timed: TimedQuery = async (question) => {
        const left = Math.floor(until - performance.now());
        if (left <= 0) throw notInTime(limitMs);
        // Uses an index or fails, regardless of the planner's statistics.
        await tx`
          SELECT set_config('statement_timeout', ${String(left)}, true), set_config('jit', 'off', true),
            set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
            set_config('max_parallel_workers_per_gather', '0', true),
            set_config('plan_cache_mode', 'force_custom_plan', true)`;
        return question(tx);
      };
      const all: Arrival[] = [];
      for (const table of FILLED_TABLES) all.push(...(await arrivals(timed, table, seconds)));
      const fillers = largestFillers(all, seconds);
      const callsigns = await callsignsOf(timed, fillers.newest);
      const uids = fillers.uids.map((each) => ({ ...each, callsign: callsigns.get(each.name) ?? null }));
      return { ...fillers.found, uids };
    });
  } catch (error) {
    throw NOT_IN_TIME.has(codeOf(error) ?? '') ? notInTime(limitMs, error) : error;
  }
}

function notInTime(limitMs: number, cause?: unknown): AppError {
  const seconds = limitMs / 1000;
  const text = `Couldn't find the largest sources of the core's database within ${seconds} s: it is overloaded, or something holds a lock`;
  return new AppError('unavailable', text, { cause });
}
