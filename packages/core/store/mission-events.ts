// Reads the newest event of each uid of a mission, a few at a time.

import type postgres from 'postgres';
import type { RunSql } from './certificates.ts';
import { newestOf, type Places } from './missions.ts';
import { visible } from './tables.ts';

export interface StoredEvent {
  uid: string;
  type: string | null;
  how: string | null;
  access: string | null;
  qos: string | null;
  opex: string | null;
  caveat: string | null;
  releaseableTo: string | null;
  time: Date | null;
  start: Date | null;
  stale: Date | null;
  lat: number | null;
  lon: number | null;
  hae: number | null;
  ce: number | null;
  le: number | null;
  /** The whole element. */
  detail: string | null;
}

/** Rejects with an AppError `unavailable` when the database is away. */
export interface MissionEvents {
  /** Id and size of the newest event of each uid that may be seen, in the order of the uids. */
  newest(missionId: number, sees: Places): Promise<{ id: string; bytes: number }[]>;
  /** In the order of the ids. */
  read(ids: readonly string[]): Promise<StoredEvent[]>;
}

export function missionEvents(run: RunSql): MissionEvents {
  return {
    newest: (missionId, sees) =>
      run(
        (sql) => sql<{ id: string; bytes: number }[]>`
          SELECT e.id::text AS id, coalesce(octet_length(e.detail), 0) AS bytes
          FROM mission_uid u
          JOIN LATERAL (
            SELECT id, detail FROM ${newestOf(sql, sql`u.uid`)} e WHERE ${visible(sql, sees, sql`e.groups`)}
            ORDER BY e.id DESC LIMIT 1
          ) e ON true
          WHERE u.mission_id = ${missionId} ORDER BY u.uid COLLATE "C"`,
      ),

    read: (ids) =>
      run(
        (sql) => sql<StoredEvent[]>`
          SELECT e.uid, e.cot_type AS type, e.how, e.access, e.qos, e.opex, e.caveat, e.releaseableto AS "releaseableTo",
            ${finite(sql, 'time')}, ${finite(sql, 'start')}, ${finite(sql, 'stale')},
            e.event_pt[1] AS lat, e.event_pt[0] AS lon, e.point_hae::float8 AS hae, e.point_ce::float8 AS ce,
            e.point_le::float8 AS le, e.detail
          FROM unnest(${`{${ids.join()}}`}::text::bigint[]) WITH ORDINALITY AS wanted (id, at)
          JOIN cot_router e ON e.id = wanted.id ORDER BY wanted.at`,
      ),
  };
}

/** Somebody may write `infinity` by hand, which no event can say. */
function finite(sql: postgres.ISql, column: 'time' | 'start' | 'stale'): postgres.Fragment {
  return sql`CASE WHEN isfinite(${sql(`e.${column}`)}) THEN ${sql(`e.${column}`)} END AS ${sql(column)}`;
}
