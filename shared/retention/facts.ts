// Counts in the core's tables, as a read-only role, what a retention run would delete.
// Waits for locks no longer than the connection allows.

import type { RunSql } from '@holdfast/kit/kept-database';
import type { AnySql, Piece } from '@holdfast/kit/postgres';
import { RETAINED, type Retained, type RetentionLimits } from '@holdfast/kit/retention';
import { type Figures, figuresWithin } from '../core/database/timed-figure.ts';
import {
  countExpired,
  type ExpiredQuestion,
  expiredFiles,
  expiredMissions,
  firstChat,
  firstEvent,
  firstLegacyChat,
  goneUids,
  missionUids,
  oldEvents,
  oldLegacyChat,
} from './expired-rows.ts';
import type { DayCount, ExpiredReferences, ExpiredRows, FactsQuestion, RetentionFacts } from './port.ts';

export function retentionFacts(run: RunSql): RetentionFacts {
  return {
    async expired(question) {
      const figures = figuresWithin(run, question.withinMs);
      const counted = quickFirst(limited(question.limits)).map(
        async ([type, limit]): Promise<[Retained, ExpiredRows]> => [
          type,
          await countExpired(figures, question, type, limit),
        ],
      );
      return Object.fromEntries(await Promise.all(counted));
    },

    async left(question) {
      const figures = figuresWithin(run, question.withinMs);
      const types = quickFirst(limited(question.limits));
      const looked = await Promise.all(
        types.map(async ([type, limit]): Promise<[Retained, boolean | undefined]> => {
          const queries = oneOf(question, type, limit);
          return [type, someOf(await Promise.all(queries.map((query) => hasRow(figures, query))))];
        }),
      );
      const found = new Map(looked);
      const requests = RETAINED.filter((type) => found.has(type));
      return {
        left: requests.filter((type) => found.get(type) === true),
        unknown: requests.filter((type) => found.get(type) === undefined),
      };
    },

    references: ({ limits, withinMs }) => countReferences(figuresWithin(run, withinMs), limits),

    perDay: (type, from, to) =>
      run(async (sql) => {
        const rows = await sql<DayCount[]>`
          SELECT to_char(day, 'YYYY-MM-DD') AS day, count(*)::float8 AS rows
          FROM (${type === 'cot' ? eventDays(sql, from, to) : chatDays(sql, from, to)}) counted GROUP BY counted.day ORDER BY counted.day`;
        return rows.map(({ day, rows: count }) => ({ day, rows: count }));
      }),

    oldestDays: () =>
      run(async (sql) => {
        const [row] = await sql<[Record<'cot' | 'geochat', string | null>]>`
          SELECT ${dayOf(sql, sql`(SELECT min(servertime) FROM cot_router WHERE cot_type <> 'b-t-f')`)} AS cot,
            ${dayOf(
              sql,
              sql`least((SELECT min(servertime) FROM cot_router_chat),
                (SELECT min(servertime) FROM cot_router WHERE cot_type = 'b-t-f'))`,
            )} AS geochat`;
        return { cot: row.cot, geochat: row.geochat };
      }),

    now: () =>
      run(async (sql) => {
        const [row] = await sql<[{ ms: number }]>`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`;
        return new Date(row.ms).toISOString();
      }),
  };
}

function limited(limits: RetentionLimits): [Retained, string][] {
  return RETAINED.flatMap((type) => {
    const limit = limits[type];
    return limit === undefined ? [] : [[type, limit]];
  });
}

/**
 * Puts files first: connections are few, and a slow or locked event table must not block other
 * figures.
 */
function quickFirst(types: readonly [Retained, string][]): [Retained, string][] {
  const isOfFiles = ([type]: [Retained, string]): boolean => type === 'files' || type === 'missionpackages';
  return types.toSorted((a, b) => Number(isOfFiles(b)) - Number(isOfFiles(a)));
}

type Query = (sql: AnySql) => Piece;

/** Queries that each return a row if rows of the type are left. */
function oneOf(question: FactsQuestion, type: Retained, limit: string): Query[] {
  if (type === 'cot') return [(sql) => firstEvent(sql, limit)];
  if (type === 'geochat') return [(sql) => firstChat(sql, limit), (sql) => firstLegacyChat(sql, limit, question)];
  if (type === 'missions') return [(sql) => sql`${expiredMissions(sql, limit)} LIMIT 1`];
  if (type === 'missionpackages' && question.core === 'release') return [];
  return [
    (sql) =>
      sql`SELECT FROM resource r WHERE ${expiredFiles(sql, type, limit, question)} ORDER BY r.submissiontime LIMIT 1`,
  ];
}

/** Undefined if it was not found in time. */
function hasRow(figures: Figures, query: Query): Promise<boolean | undefined> {
  return figures.ask(async (sql) => (await sql`${query(sql)}`).length > 0);
}

function someOf(answers: readonly (boolean | undefined)[]): boolean | undefined {
  if (answers.includes(true)) return true;
  return answers.includes(undefined) ? undefined : false;
}

/** Older releases wrote these tables; a missing table has no references. */
async function countReferences(figures: Figures, limits: RetentionLimits): Promise<ExpiredReferences | undefined> {
  const there = await figures.ask(async (sql) => {
    const [row] = await sql<[Record<keyof ExpiredReferences, boolean>]>`
      SELECT to_regclass('cot_image') IS NOT NULL AS images, to_regclass('cot_thumbnail') IS NOT NULL AS thumbnails,
        to_regclass('cot_link') IS NOT NULL AS links`;
    return row;
  });
  if (there === undefined) return undefined;
  const count = (isThere: boolean, references: Query): Promise<number | undefined> =>
    !isThere
      ? Promise.resolve(0)
      : figures.ask(async (sql) => {
          const [row] = await sql<[{ rows: number }]>`
            SELECT count(*)::float8 AS rows FROM (${references(sql)}) pointing (id)
            JOIN cot_router e ON e.id = pointing.id
            WHERE ${expiredEvents(sql, { core: 'release', limits })}`;
          return row.rows;
        });
  const [images, thumbnails, links] = await Promise.all([
    count(there.images, (sql) => sql`SELECT cot_id FROM cot_image`),
    count(there.thumbnails, (sql) => sql`SELECT cot_id FROM cot_thumbnail`),
    count(there.links, (sql) => sql`SELECT containing_event FROM cot_link`),
  ]);
  if (images === undefined || thumbnails === undefined || links === undefined) return undefined;
  return { images, thumbnails, links };
}

/** Events deleted by age, as chat, or with a mission. */
function expiredEvents(sql: AnySql, question: Pick<ExpiredQuestion, 'core' | 'limits'>): Piece {
  const { cot, geochat } = question.limits;
  return sql`(
    (${cot === undefined ? sql`false` : sql`${oldEvents(sql, cot)} AND e.uid NOT IN (${missionUids(sql)})`})
    OR (${geochat === undefined ? sql`false` : oldLegacyChat(sql, geochat)})
    OR e.uid IN (${goneUids(sql, question)}))`;
}

function eventDays(sql: AnySql, from: string, to: string): Piece {
  return sql`SELECT ${dayIn(sql)} FROM cot_router WHERE cot_type <> 'b-t-f' AND ${between(sql, from, to)}`;
}

function chatDays(sql: AnySql, from: string, to: string): Piece {
  return sql`
    SELECT ${dayIn(sql)} FROM cot_router_chat WHERE ${between(sql, from, to)}
    UNION ALL
    SELECT ${dayIn(sql)} FROM cot_router WHERE cot_type = 'b-t-f' AND ${between(sql, from, to)}`;
}

function dayIn(sql: AnySql): Piece {
  return sql`(servertime AT TIME ZONE 'UTC')::date AS day`;
}

function between(sql: AnySql, from: string, to: string): Piece {
  return sql`servertime >= ${`${from}T00:00:00Z`} AND servertime < ${`${to}T00:00:00Z`}`;
}

function dayOf(sql: AnySql, time: Piece): Piece {
  return sql`to_char(${time} AT TIME ZONE 'UTC', 'YYYY-MM-DD')`;
}
