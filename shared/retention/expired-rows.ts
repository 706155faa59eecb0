// Which rows a run of retention deletes, as pieces of SQL: the one place that says so to what counts them. They name only
// columns that a TAK Server release has too. The table of events is `e`, that of chat `c`, that of files `r`.

import type { AnySql, Piece } from '@holdfast/kit/postgres';
import type { FactsQuestion } from './port.ts';

/** Which rows are meant. */
export type Doom = Omit<FactsQuestion, 'withinMs'>;

/** Events of their age, also those that a mission has: only these are in the index of PostgreSQL that holds no chat. */
export function oldEvents(sql: AnySql, limit: string): Piece {
  return sql`e.servertime < ${limit} AND e.cot_type <> 'b-t-f'`;
}

/** Chat that older releases have put among the events. */
export function oldLegacyChat(sql: AnySql, limit: string): Piece {
  return sql`e.cot_type = 'b-t-f' AND e.servertime < ${limit}`;
}

export function oldChat(sql: AnySql, limit: string): Piece {
  return sql`c.servertime < ${limit}`;
}

export function doomedMissions(sql: AnySql, limit: string): Piece {
  return sql`
    SELECT m.id FROM mission m
    WHERE m.create_time < ${limit} AND m.name NOT IN ('exchecktemplates', 'citrap') AND m.invite_only = false`;
}

/** The uids of all missions: their events are spared by their age. */
export function missionUids(sql: AnySql): Piece {
  return sql`SELECT u.uid FROM mission_uid u`;
}

/** The uids whose events go with missions, whatever their age and type. */
export function goneUids(sql: AnySql, { core, limits }: Pick<Doom, 'core' | 'limits'>): Piece {
  if (limits.missions === undefined) return sql`SELECT u.uid FROM mission_uid u WHERE false`;
  const doomed = doomedMissions(sql, limits.missions);
  const surviving = sql`SELECT o.uid FROM mission_uid o WHERE o.mission_id NOT IN (${doomed})`;
  return sql`
    SELECT u.uid FROM mission_uid u WHERE u.mission_id IN (${doomed}) ${core === 'embedded' ? sql`EXCEPT ${surviving}` : sql``}`;
}

/** Files that go with missions. A release finds them by their hashes. */
export function goesWithMission(sql: AnySql, { core, limits }: Doom): Piece {
  if (limits.missions === undefined) return sql`false`;
  const doomed = doomedMissions(sql, limits.missions);
  if (core === 'release')
    return sql`r.hash IN (SELECT f.resource_hash FROM mission_resource f WHERE f.mission_id IN (${doomed}))`;
  return sql`r.id IN (
    SELECT f.resource_id FROM mission_resource f WHERE f.mission_id IN (${doomed})
    EXCEPT SELECT o.resource_id FROM mission_resource o WHERE o.mission_id NOT IN (${doomed}))`;
}

/** Files that go by their age. What only missions have that go is free by then. */
export function doomedFiles(sql: AnySql, type: 'files' | 'missionpackages', limit: string, doom: Doom): Piece {
  const { core, limits, exemptKeywords } = doom;
  const staying =
    limits.missions === undefined ? sql`` : sql`AND f.mission_id NOT IN (${doomedMissions(sql, limits.missions)})`;
  const isPackage = sql`coalesce('missionpackage' = ANY (r.keywords), false)`;
  const isOfType = type === 'missionpackages' ? isPackage : sql`NOT ${isPackage}`;
  return sql`r.submissiontime < ${limit} AND ${core === 'release' ? sql`true` : isOfType}
    AND NOT EXISTS (SELECT FROM unnest(r.keywords) AS own (keyword) WHERE own.keyword IN (
      SELECT json_array_elements_text(${JSON.stringify(exemptKeywords)}::text::json)))
    AND NOT EXISTS (SELECT FROM mission_resource f WHERE f.resource_id = r.id ${staying})
    AND (${goesWithMission(sql, doom)}) IS NOT TRUE`;
}
