// Ninety days of synthetic rows of every type that retention knows, in the tables of a running
// core, and what a run with given limits deletes of them: counted here by SQL of its own, from the
// rules in words.

import type { Retained, RetentionLimits } from '@holdfast/kit/retention';
import { query } from './embedded.ts';

/** Every kind of row that is spared is among them. Written as the owner of the database. */
const ROWS = `
  INSERT INTO cot_router (uid, cot_type, servertime)
    SELECT CASE WHEN n % 150 = 0 THEN 'held-' || n / 150 % 90 + 1 ELSE 'device-' || n % 50 END,
      CASE WHEN n % 997 = 0 THEN NULL WHEN n % 100 = 7 THEN 'b-t-f' WHEN n % 100 = 8 THEN 'b-t-f-d' ELSE 'a-f-G' END,
      now() - n * interval '172.8 s'
    FROM generate_series(1, 45000) AS n;
  INSERT INTO cot_router (uid, cot_type, servertime) VALUES ('timeless', 'a-f-G', NULL);
  INSERT INTO cot_image (image, cot_id) SELECT 'x', id FROM cot_router WHERE uid = 'device-1' AND cot_type = 'a-f-G' ORDER BY servertime LIMIT 3;
  INSERT INTO cot_link (containing_event) SELECT id FROM cot_router WHERE uid = 'device-1' AND cot_type = 'a-f-G' ORDER BY servertime LIMIT 3;
  INSERT INTO cot_router_chat (uid, cot_type, servertime)
    SELECT 'chat-' || n, 'b-t-f', now() - n * interval '864 s' FROM generate_series(1, 9000) AS n;
  INSERT INTO resource (name, hash, keywords, submissiontime, data)
    SELECT 'file-' || n, md5(n::text), CASE WHEN n % 10 = 0 THEN '{missionpackage,x}'::varchar[] WHEN n % 10 = 1 THEN NULL ELSE '{}' END,
      now() - n * interval '2.4 hours', 'x'
    FROM generate_series(1, 900) AS n;
  INSERT INTO mission (name, create_time, invite_only, tool)
    SELECT 'mission-' || n, now() - n * interval '1 day', n % 10 = 0, 'public' FROM generate_series(1, 90) AS n;
  INSERT INTO mission_uid (mission_id, uid) SELECT id, replace(name, 'mission', 'held') FROM mission WHERE name LIKE 'mission-%';
  INSERT INTO mission_uid (mission_id, uid)
    SELECT young.id, replace(old.name, 'mission', 'held') FROM mission young, mission old
    WHERE young.name = 'mission-1' AND old.name IN ('mission-81', 'mission-82');
  INSERT INTO mission_resource (mission_id, resource_id, resource_hash)
    SELECT m.id, f.id, f.hash FROM mission m JOIN resource f ON f.name = replace(m.name, 'mission', 'file');
  INSERT INTO mission_resource (mission_id, resource_id, resource_hash)
    SELECT young.id, f.id, f.hash FROM mission young, resource f WHERE young.name = 'mission-1' AND f.name IN ('file-83', 'file-84');
  ANALYZE`;

export async function ninetyDays(database: string): Promise<void> {
  await query(database, ROWS);
}

export interface Expired {
  rows: Partial<Record<Retained, number>>;
  included: { cot: number; files: number };
}

/** What a run of the embedded core with these limits deletes. */
export async function expiredRows(database: string, limits: Required<RetentionLimits>): Promise<Expired> {
  const expiredMission = `create_time < '${limits.missions}' AND name NOT IN ('exchecktemplates', 'citrap') AND NOT invite_only`;
  const [row] = await query<Record<Retained | 'withEvents' | 'withFiles', number>>(
    database,
    `WITH gone AS (SELECT id FROM mission WHERE ${expiredMission}),
      uids AS (
        SELECT uid FROM mission_uid WHERE mission_id IN (SELECT id FROM gone)
        EXCEPT SELECT uid FROM mission_uid WHERE mission_id NOT IN (SELECT id FROM gone)),
      files AS (
        SELECT resource_id FROM mission_resource WHERE mission_id IN (SELECT id FROM gone)
        EXCEPT SELECT resource_id FROM mission_resource WHERE mission_id NOT IN (SELECT id FROM gone)),
      loose AS (SELECT *, 'missionpackage' = ANY (coalesce(keywords, '{}')) AS package FROM resource
        WHERE id NOT IN (SELECT resource_id FROM mission_resource))
    SELECT (SELECT count(*)::int FROM gone) AS missions,
      (SELECT count(*)::int FROM cot_router WHERE uid IN (SELECT uid FROM uids)) AS "withEvents",
      (SELECT count(*)::int FROM resource WHERE id IN (SELECT resource_id FROM files)) AS "withFiles",
      (SELECT count(*)::int FROM loose WHERE NOT package AND submissiontime < '${limits.files}') AS files,
      (SELECT count(*)::int FROM loose WHERE package AND submissiontime < '${limits.missionpackages}') AS missionpackages,
      (SELECT count(*)::int FROM cot_router WHERE servertime < '${limits.cot}' AND cot_type <> 'b-t-f'
        AND uid NOT IN (SELECT uid FROM mission_uid)) AS cot,
      (SELECT count(*)::int FROM cot_router_chat WHERE servertime < '${limits.geochat}')
        + (SELECT count(*)::int FROM cot_router WHERE servertime < '${limits.geochat}' AND cot_type = 'b-t-f'
          AND uid NOT IN (SELECT uid FROM uids)) AS geochat`,
  );
  if (row === undefined) throw new Error('no counts');
  const { withEvents: cot, withFiles: files, ...rows } = row;
  return { rows, included: { cot, files } };
}

/** How many rows there are in each table. */
export async function rowsOf(database: string): Promise<Record<string, number>> {
  const tables = ['cot_router', 'cot_router_chat', 'resource', 'mission', 'cot_image', 'cot_link'];
  // Each start of management probes, which stores an event.
  const unprobed = (table: string): string => (table === 'cot_router' ? "WHERE cot_type <> 't-x-holdfast-probe'" : '');
  const counts = tables.map((table) => `(SELECT count(*)::int FROM ${table} ${unprobed(table)}) AS ${table}`);
  const [row] = await query<Record<string, number>>(database, `SELECT ${counts.join()}`);
  return { ...row };
}
