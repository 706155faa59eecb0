// Defines in SQL which rows a retention run deletes, and counts them; the only place with these
// rules. Uses only columns that a TAK Server release also has. Aliases: events `e`, chat `c`, files
// `r`.

import type { AnySql, Piece } from '@holdfast/kit/postgres';
import type { Retained } from '@holdfast/kit/retention';
import type { Figures } from '../core/database/timed-figure.ts';
import type { ExpiredRows, FactsQuestion } from './port.ts';

/** Selects the expired rows. */
export type ExpiredQuestion = Omit<FactsQuestion, 'withinMs'>;

/**
 * Old events, including those of missions: this condition matches the PostgreSQL index without
 * chat.
 */
export function oldEvents(sql: AnySql, limit: string): Piece {
  return sql`e.servertime < ${limit} AND e.cot_type <> 'b-t-f'`;
}

/** Old chat that older releases stored with the events. */
export function oldLegacyChat(sql: AnySql, limit: string): Piece {
  return sql`e.cot_type = 'b-t-f' AND e.servertime < ${limit}`;
}

export function oldChat(sql: AnySql, limit: string): Piece {
  return sql`c.servertime < ${limit}`;
}

export function expiredMissions(sql: AnySql, limit: string): Piece {
  return sql`
    SELECT m.id FROM mission m
    WHERE m.create_time < ${limit} AND m.name NOT IN ('exchecktemplates', 'citrap') AND m.invite_only = false`;
}

/** The uids of all missions: their events are not deleted by age. */
export function missionUids(sql: AnySql): Piece {
  return sql`SELECT u.uid FROM mission_uid u`;
}

/** The uids whose events are deleted with missions, regardless of age and type. */
export function goneUids(sql: AnySql, { core, limits }: Pick<ExpiredQuestion, 'core' | 'limits'>): Piece {
  if (limits.missions === undefined) return sql`SELECT u.uid FROM mission_uid u WHERE false`;
  const expired = expiredMissions(sql, limits.missions);
  const surviving = sql`SELECT o.uid FROM mission_uid o WHERE o.mission_id NOT IN (${expired})`;
  return sql`
    SELECT u.uid FROM mission_uid u WHERE u.mission_id IN (${expired}) ${core === 'embedded' ? sql`EXCEPT ${surviving}` : sql``}`;
}

/** Files that are deleted with missions. A release finds them by hash. */
export function goesWithMission(sql: AnySql, { core, limits }: ExpiredQuestion): Piece {
  if (limits.missions === undefined) return sql`false`;
  const expired = expiredMissions(sql, limits.missions);
  if (core === 'release')
    return sql`r.hash IN (SELECT f.resource_hash FROM mission_resource f WHERE f.mission_id IN (${expired}))`;
  return sql`r.id IN (
    SELECT f.resource_id FROM mission_resource f WHERE f.mission_id IN (${expired})
    EXCEPT SELECT o.resource_id FROM mission_resource o WHERE o.mission_id NOT IN (${expired}))`;
}

/** Files that are deleted by age. Files used only by expired missions are free by then. */
export function expiredFiles(
  sql: AnySql,
  type: 'files' | 'missionpackages',
  limit: string,
  question: ExpiredQuestion,
): Piece {
  const { core, limits, exemptKeywords } = question;
  const staying =
    limits.missions === undefined ? sql`` : sql`AND f.mission_id NOT IN (${expiredMissions(sql, limits.missions)})`;
  const isPackage = sql`coalesce('missionpackage' = ANY (r.keywords), false)`;
  const isOfType = type === 'missionpackages' ? isPackage : sql`NOT ${isPackage}`;
  return sql`r.submissiontime < ${limit} AND ${core === 'release' ? sql`true` : isOfType}
    AND NOT EXISTS (SELECT FROM unnest(r.keywords) AS own (keyword) WHERE own.keyword IN (
      SELECT json_array_elements_text(${JSON.stringify(exemptKeywords)}::text::json)))
    AND NOT EXISTS (SELECT FROM mission_resource f WHERE f.resource_id = r.id ${staying})
    AND (${goesWithMission(sql, question)}) IS NOT TRUE`;
}

const NOTHING: ExpiredRows = {
  rows: 0,
  atMost: null,
  included: null,
  bytesPerRow: null,
  bytes: 0,
  oldest: null,
  newest: null,
};

/**
 * Figures of the expired rows of a type with a limit, each within its time: rows, bytes, oldest and
 * newest. Quick figures come first, as the count of a large table may need all its time.
 */
export function countExpired(
  figures: Figures,
  question: ExpiredQuestion,
  type: Retained,
  limit: string,
): Promise<ExpiredRows> {
  if (type === 'cot') return countEvents(figures, limit);
  if (type === 'geochat') return countChat(figures, question, limit);
  if (type === 'missions') return countMissions(figures, question, limit);
  // A release deletes packages with the files, and nothing by this limit.
  if (type === 'missionpackages' && question.core === 'release') return Promise.resolve(NOTHING);
  return countFiles(figures, question, type, limit);
}

/**
 * An index-only count is far quicker, so events of missions are counted separately and subtracted.
 */
async function countEvents(figures: Figures, limit: string): Promise<ExpiredRows> {
  const [all, bytesPerRow, span, counted] = await Promise.all([
    figures.rowsOf('cot_router'),
    bytesPerRowOf(figures, 'cot_router'),
    spanOf(figures, [(sql, order) => firstEvent(sql, limit, order)]),
    figures.ask(async (sql) => {
      const [row] = await sql<[{ rows: number }]>`
        SELECT ((SELECT count(*) FROM cot_router e WHERE ${oldEvents(sql, limit)})
          - ${eventsOfUids(sql, missionUids(sql), { limit, type: sql`e.cot_type <> 'b-t-f'` })})::float8 AS rows`;
      return row.rows;
    }),
  ]);
  const rows = counted ?? null;
  return { ...NOTHING, rows, atMost: rows === null ? all : null, bytesPerRow, bytes: null, ...span };
}

async function countChat(figures: Figures, question: ExpiredQuestion, limit: string): Promise<ExpiredRows> {
  const [all, perRow, perLegacyRow, span, counted] = await Promise.all([
    figures.rowsOf('cot_router_chat'),
    bytesPerRowOf(figures, 'cot_router_chat'),
    bytesPerRowOf(figures, 'cot_router'),
    spanOf(figures, [
      (sql, order) => firstChat(sql, limit, order),
      (sql, order) => firstLegacyChat(sql, limit, question, order),
    ]),
    figures.ask(async (sql) => {
      const [row] = await sql<[{ chat: number; legacy: number }]>`
        SELECT (SELECT count(*) FROM cot_router_chat c WHERE ${oldChat(sql, limit)})::float8 AS chat,
          ((SELECT count(*) FROM cot_router e WHERE ${oldLegacyChat(sql, limit)})
            - ${eventsOfUids(sql, goneUids(sql, question), { limit, type: sql`e.cot_type = 'b-t-f'` })})::float8 AS legacy`;
      return row;
    }),
  ]);
  const bytesPerRow = perRow ?? perLegacyRow;
  if (counted !== undefined) {
    const { chat, legacy } = counted;
    const bytes = Math.round(chat * (perRow ?? 0) + legacy * (perLegacyRow ?? 0));
    return { ...NOTHING, rows: chat + legacy, bytesPerRow, bytes: bytesPerRow === null ? null : bytes, ...span };
  }
  return { ...NOTHING, rows: null, atMost: all, bytesPerRow, bytes: null, ...span };
}

/** Counts files with the bytes of their data on disk. */
async function countFiles(
  figures: Figures,
  question: ExpiredQuestion,
  type: 'files' | 'missionpackages',
  limit: string,
): Promise<ExpiredRows> {
  const [atMost, bytesPerRow, counted] = await Promise.all([
    figures.rowsOf('resource'),
    bytesPerRowOf(figures, 'resource'),
    figures.ask(async (sql) => {
      const [row] = await sql<[{ rows: number; bytes: number } & Span<Date>]>`
        SELECT count(*)::float8 AS rows, coalesce(sum(pg_column_size(r.data)), 0)::float8 AS bytes,
          min(r.submissiontime) AS oldest, max(r.submissiontime) AS newest
        FROM resource r WHERE ${expiredFiles(sql, type, limit, question)}`;
      return { ...row, ...isoSpan(row) };
    }),
  ]);
  if (counted !== undefined) return { ...NOTHING, ...counted, bytesPerRow };
  return { ...NOTHING, rows: null, atMost, bytesPerRow, bytes: null };
}

async function countMissions(figures: Figures, question: ExpiredQuestion, limit: string): Promise<ExpiredRows> {
  const [atMost, perEvent, counted] = await Promise.all([
    figures.rowsOf('mission'),
    bytesPerRowOf(figures, 'cot_router'),
    figures.ask(async (sql) => {
      const [row] = await sql<[{ rows: number; cot: number; files: number; bytes: number } & Span<Date>]>`
        SELECT count(*)::float8 AS rows, min(create_time) AS oldest, max(create_time) AS newest,
          ${eventsOfUids(sql, goneUids(sql, question))}::float8 AS cot,
          (SELECT count(*) FROM resource r WHERE ${goesWithMission(sql, question)})::float8 AS files,
          (SELECT coalesce(sum(pg_column_size(r.data)), 0) FROM resource r WHERE ${goesWithMission(sql, question)})::float8 AS bytes
        FROM mission WHERE id IN (${expiredMissions(sql, limit)})`;
      return row;
    }),
  ]);
  if (counted !== undefined) {
    const { rows, cot, files } = counted;
    const bytes = Math.round(counted.bytes + cot * (perEvent ?? 0));
    return { ...NOTHING, rows, included: { cot, files }, bytes, ...isoSpan(counted) };
  }
  return { ...NOTHING, rows: null, atMost, bytes: null };
}

/**
 * Counts the events with one of these uids, with the index of uid and time per uid, regardless of
 * the planner's estimates. As a condition, the type would make it read all events of that type for
 * each uid.
 */
function eventsOfUids(sql: AnySql, uids: Piece, only?: { limit: string; type: Piece }): Piece {
  const count = only === undefined ? sql`count(*)` : sql`count(*) FILTER (WHERE ${only.type})`;
  return sql`(
    SELECT coalesce(sum(found.events), 0) FROM (SELECT DISTINCT listed.uid FROM (${uids}) listed) of_mission
    CROSS JOIN LATERAL (
      SELECT ${count} AS events FROM cot_router e
      WHERE e.uid = of_mission.uid ${only === undefined ? sql`` : sql`AND e.servertime < ${only.limit}`}) found)`;
}

interface Span<T> {
  oldest: T | null;
  newest: T | null;
}

type Order = 'ASC' | 'DESC';

export function firstEvent(sql: AnySql, limit: string, order: Order = 'ASC'): Piece {
  return sql`
    SELECT e.servertime AS at FROM cot_router e
    WHERE ${oldEvents(sql, limit)} AND NOT EXISTS (SELECT FROM mission_uid u WHERE u.uid = e.uid)
    ORDER BY e.servertime ${sql.unsafe(order)} LIMIT 1`;
}

export function firstChat(sql: AnySql, limit: string, order: Order = 'ASC'): Piece {
  return sql`
    SELECT c.servertime AS at FROM cot_router_chat c WHERE ${oldChat(sql, limit)}
    ORDER BY c.servertime ${sql.unsafe(order)} LIMIT 1`;
}

export function firstLegacyChat(sql: AnySql, limit: string, question: ExpiredQuestion, order: Order = 'ASC'): Piece {
  return sql`
    SELECT e.servertime AS at FROM cot_router e
    WHERE ${oldLegacyChat(sql, limit)} AND e.uid NOT IN (${goneUids(sql, question)})
    ORDER BY e.servertime ${sql.unsafe(order)} LIMIT 1`;
}

type End = (sql: AnySql, order: Order) => Piece;

/** The span over all tables of the type; empty if one of them did not answer in time. */
async function spanOf(figures: Figures, ends: readonly End[]): Promise<Span<string>> {
  const timesOf = (end: End, order: Order): Promise<number[] | undefined> =>
    figures.ask(async (sql) => (await sql<{ at: Date }[]>`${end(sql, order)}`).map(({ at }) => at.getTime()));
  const ofOrder = async (order: Order): Promise<number[]> => {
    const times = await Promise.all(ends.map((end) => timesOf(end, order)));
    return times.includes(undefined) ? [] : times.flatMap((each) => each ?? []);
  };
  const [oldest, newest] = await Promise.all([ofOrder('ASC'), ofOrder('DESC')]);
  return {
    oldest: isoOf(oldest.length === 0 ? undefined : Math.min(...oldest)),
    newest: isoOf(newest.length === 0 ? undefined : Math.max(...newest)),
  };
}

function isoSpan({ oldest, newest }: Span<Date>): Span<string> {
  return { oldest: isoOf(oldest?.getTime()), newest: isoOf(newest?.getTime()) };
}

function isoOf(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

/**
 * Bytes per row with its share of indexes and TOAST. A table that was never analyzed uses the live
 * row count.
 */
async function bytesPerRowOf(figures: Figures, table: string): Promise<number | null> {
  const perRow = await figures.ask(async (sql) => {
    const [row] = await sql<{ bytes: number | null }[]>`
      SELECT pg_total_relation_size(oid) / nullif(
        CASE WHEN reltuples > 0 THEN reltuples::float8 ELSE pg_stat_get_live_tuples(oid)::float8 END, 0) AS bytes
      FROM pg_class WHERE oid = to_regclass(${table})`;
    return row?.bytes ?? null;
  });
  return perRow ?? null;
}
