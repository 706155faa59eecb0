// Reads stored events by uid and time, newest first, a bounded part of the tables at a time.

import type postgres from 'postgres';
import type { StoredEvent } from '../model/stored-event.ts';
import type { RunSql } from './certificates.ts';
import { newestOf, type Places } from './missions.ts';
import { visible } from './tables.ts';

export interface Box {
  west: number;
  south: number;
  /** Less than west: across the 180th meridian. */
  east: number;
  north: number;
}

export interface HistoryQuery {
  /** Default: of every uid. */
  uid?: string;
  start: Date;
  end: Date;
  /** Of events at `end`: those with a smaller id. */
  before?: string | undefined;
  box?: Box | undefined;
  /** Positions, routes and chat alone. */
  positionsOnly?: boolean;
  sees: Places;
  limit: number;
}

export interface HistoryPage {
  events: { id: string; bytes: number }[];
  /** Where the next page begins; undefined: there is none. */
  next: { end: Date; before: string } | undefined;
}

/** Where a client was. */
export interface TrackPoint {
  uid: string;
  type: string | null;
  at: Date;
  lat: number;
  lon: number;
  /** Meters; undefined where it is unknown. */
  hae: number | null;
  callsign: string | null;
}

/** Rejects with an AppError `unavailable` when the database or the table is. */
export interface History {
  /** The newest event of the uid that may be seen, with the time at which it came. */
  newest(uid: string, sees: Places): Promise<(StoredEvent & { receivedAt: Date }) | undefined>;
  list(query: HistoryQuery): Promise<HistoryPage>;
  /** In the order of the ids. */
  read(ids: readonly string[]): Promise<StoredEvent[]>;
  /** The newest so many, by uid and then by time. */
  track(query: HistoryQuery): Promise<TrackPoint[]>;
  /** When events of the uid came. */
  times(uid: string, start: Date, end: Date): Promise<Date[]>;
}

/**
 * For one row that may be seen so many are looked at: of a uid that the caller never sees there may
 * be millions.
 */
const LOOKED_AT = 4;
const HEIGHT_UNKNOWN = 9_999_999;

/** `run` is that of `eventTable`. */
export function history(run: RunSql): History {
  return {
    newest: (uid, sees) =>
      run(async (sql) => {
        const [row] = await sql<(StoredEvent & { receivedAt: Date })[]>`
          SELECT ${columns(sql)}, e.servertime AS "receivedAt" FROM (
            (SELECT ${shared(sql)}, caveat, releaseableto FROM ${newestOf(sql, sql`${uid}`)} r
              WHERE ${visible(sql, sees, sql`r.groups`)} ORDER BY id DESC LIMIT 1)
            UNION ALL
            (SELECT ${shared(sql)}, NULL, NULL FROM (SELECT * FROM cot_router_chat WHERE uid = ${uid} ORDER BY id DESC LIMIT 100) c
              WHERE ${visible(sql, sees, sql`c.groups`)} ORDER BY id DESC LIMIT 1)
          ) e ORDER BY e.id DESC LIMIT 1`;
        return row;
      }),

    list: (query) => run((sql) => page(sql, query)),
    read: (ids) => run((sql) => readEvents(sql, ids)),

    track: (query) =>
      run(
        (sql) => sql<TrackPoint[]>`
          SELECT e.uid, e.cot_type AS type, e.servertime AS at, e.event_pt[1] AS lat, e.event_pt[0] AS lon,
            CASE WHEN e.point_hae < ${HEIGHT_UNKNOWN} THEN e.point_hae::float8 END AS hae,
            substring(left(e.detail, 10000) FROM '<contact\\s[^>]*?callsign\\s*=\\s*["'']([^"'']*)["'']') AS callsign
          FROM (
            SELECT * FROM (SELECT * FROM cot_router e WHERE ${wanted(sql, query)}
              ORDER BY servertime DESC, id DESC LIMIT ${query.limit * LOOKED_AT}) looked
            WHERE ${visible(sql, query.sees, sql`looked.groups`)} AND event_pt IS NOT NULL
              AND cot_type !~ '^b-(t-f|f-t)' LIMIT ${query.limit}
          ) e ORDER BY e.uid COLLATE "C", e.servertime, e.id`,
      ),

    times: (uid, start, end) =>
      run(async (sql) => {
        const rows = await sql<{ at: Date }[]>`
          SELECT servertime AS at FROM cot_router WHERE uid = ${uid} AND servertime BETWEEN ${start} AND ${end}`;
        return rows.map(({ at }) => at);
      }),
  };
}

/** Rows that may not be seen end a page too, so that the next one goes on behind them. */
async function page(sql: postgres.ISql, query: HistoryQuery): Promise<HistoryPage> {
  const { limit, sees } = query;
  const most = sees === 'all' ? limit : limit * LOOKED_AT;
  const part = (table: 'cot_router' | 'cot_router_chat'): postgres.Fragment => sql`
    (SELECT id, servertime, groups, coalesce(octet_length(detail), 0) AS bytes FROM ${sql(table)}
      WHERE ${wanted(sql, query, table)} ORDER BY servertime DESC, id DESC LIMIT ${most})`;
  const looked = sql`(SELECT * FROM (${part('cot_router')} UNION ALL ${part('cot_router_chat')}) of_both
    ORDER BY servertime DESC, id DESC LIMIT ${most})`;
  const rows = await sql<{ id: string; at: Date; bytes: number }[]>`
    SELECT id::text AS id, servertime AS at, bytes FROM ${looked} looked
    WHERE ${visible(sql, sees, sql`looked.groups`)} ORDER BY servertime DESC, looked.id DESC LIMIT ${limit}`;
  const events = rows.map(({ id, bytes }) => ({ id, bytes }));
  const last = rows.length === limit ? rows.at(-1) : await lastOf(sql, looked, most);
  return { events, next: last && { end: last.at, before: last.id } };
}

/** The last of so many rows; undefined when there are fewer. */
async function lastOf(sql: postgres.ISql, looked: postgres.Fragment, most: number) {
  const [row] = await sql<{ id: string; at: Date }[]>`
    SELECT id::text AS id, servertime AS at FROM ${looked} looked ORDER BY servertime DESC, looked.id DESC OFFSET ${most - 1}`;
  return row;
}

function wanted(
  sql: postgres.ISql,
  { uid, start, end, before, box, positionsOnly = false }: HistoryQuery,
  table: 'cot_router' | 'cot_router_chat' = 'cot_router',
): postgres.Fragment {
  const onlySome = positionsOnly && table === 'cot_router';
  return sql`servertime BETWEEN ${start} AND ${end}
    ${before === undefined ? sql`` : sql`AND (servertime < ${end} OR id < ${before}::text::bigint)`}
    ${uid === undefined ? sql`` : sql`AND uid = ${uid}`}
    ${onlySome ? sql`AND cot_type ~ '^(a-[fnuh]|b-m-r)'` : sql``}
    ${box === undefined ? sql`` : sql`AND ${inside(sql, box)}`}`;
}

function inside(sql: postgres.ISql, { west, south, east, north }: Box): postgres.Fragment {
  const between =
    west <= east
      ? sql`event_pt[0] BETWEEN ${west} AND ${east}`
      : sql`(event_pt[0] >= ${west} OR event_pt[0] <= ${east})`;
  return sql`(event_pt[1] BETWEEN ${south} AND ${north} AND ${between})`;
}

/** In the order of the ids; those that are gone meanwhile are left out. */
export function readEvents(sql: postgres.ISql, ids: readonly string[]): Promise<StoredEvent[]> {
  return sql<StoredEvent[]>`
    SELECT ${columns(sql)}
    FROM unnest(${`{${ids.join()}}`}::text::bigint[]) WITH ORDINALITY AS wanted (id, at)
    JOIN LATERAL (
      SELECT ${shared(sql)}, caveat, releaseableto FROM cot_router WHERE id = wanted.id
      UNION ALL SELECT ${shared(sql)}, NULL, NULL FROM cot_router_chat WHERE id = wanted.id
    ) e ON true ORDER BY wanted.at`;
}

/** What both tables have. */
function shared(sql: postgres.ISql): postgres.Fragment {
  return sql`id, uid, cot_type, how, access, qos, opex, "time", start, stale, event_pt, point_hae, point_ce, point_le,
    detail, servertime`;
}

function columns(sql: postgres.ISql): postgres.Fragment {
  return sql`e.uid, e.cot_type AS type, e.how, e.access, e.qos, e.opex, e.caveat, e.releaseableto AS "releaseableTo",
    ${finite(sql, 'time')}, ${finite(sql, 'start')}, ${finite(sql, 'stale')},
    e.event_pt[1] AS lat, e.event_pt[0] AS lon, e.point_hae::float8 AS hae, e.point_ce::float8 AS ce,
    e.point_le::float8 AS le, e.detail`;
}

/** Somebody may write `infinity` by hand, which no event can say. */
function finite(sql: postgres.ISql, column: 'time' | 'start' | 'stale'): postgres.Fragment {
  return sql`CASE WHEN isfinite(${sql(`e.${column}`)}) THEN ${sql(`e.${column}`)} END AS ${sql(column)}`;
}
