// Adds and removes uids and files of missions. Each change has a row in `mission_change`.

import type postgres from 'postgres';
import { CoreFault } from '../http/answers.ts';
import { CHANGE_TYPES, MISSION_LIMITS, type MissionChangeType } from '../model/mission.ts';
import type { Places } from './missions.ts';
import { visible } from './tables.ts';

export interface Addition {
  uids: readonly string[];
  hashes: readonly string[];
  creatorUid: string;
  /** Files that may be added are among it. */
  sees: Places;
  now: Date;
}

/** What was really added or taken away. */
export interface ContentChange {
  uids: string[];
  hashes: string[];
}
export const changeNumber = (type: MissionChangeType): number => CHANGE_TYPES.indexOf(type);

export async function contentAdded(
  tx: postgres.TransactionSql,
  id: number,
  addition: Addition,
): Promise<ContentChange> {
  const { uids, hashes, creatorUid, sees, now } = addition;
  // Held until the end: whoever deletes files waits, and sees then that a mission has them.
  const files = await tx<{ id: number; hash: string }[]>`
    SELECT id, hash FROM resource WHERE id IN (
      SELECT max(id) FROM resource
      WHERE hash IN (SELECT json_array_elements_text(${JSON.stringify(hashes)}::text::json)) AND ${visible(tx, sees, tx`groups`)}
      GROUP BY hash)
    ORDER BY id FOR KEY SHARE`;
  const found = new Set(files.map(({ hash }) => hash));
  const missing = hashes.find((hash) => !found.has(hash));
  if (missing !== undefined) throw new CoreFault('not found', `No file with the hash ${missing}.`);
  const newUids = await tx<{ uid: string }[]>`
    INSERT INTO mission_uid (mission_id, uid)
    SELECT DISTINCT ${id}::bigint, uid FROM json_array_elements_text(${JSON.stringify(uids)}::text::json) AS u (uid)
    ON CONFLICT DO NOTHING RETURNING uid`;
  const newFiles = await tx<{ hash: string }[]>`
    INSERT INTO mission_resource (mission_id, resource_id, resource_hash)
    SELECT ${id}::bigint, f.id, f.hash FROM json_to_recordset(${JSON.stringify(files)}::text::json) AS f (id int, hash text)
    WHERE NOT EXISTS (SELECT FROM mission_resource o WHERE o.mission_id = ${id} AND o.resource_hash = f.hash)
    RETURNING resource_hash AS hash`;
  const [counted] = await tx<{ uids: number; files: number }[]>`
    SELECT (SELECT count(*) FROM mission_uid WHERE mission_id = ${id})::float8 AS uids,
      (SELECT count(*) FROM mission_resource WHERE mission_id = ${id})::float8 AS files`;
  if (Math.max(counted?.uids ?? 0, counted?.files ?? 0) > MISSION_LIMITS.contents)
    throw new CoreFault('conflict', `A mission can have at most ${MISSION_LIMITS.contents} uids and as many files.`);
  const added = { uids: newUids.map(({ uid }) => uid), hashes: newFiles.map(({ hash }) => hash) };
  await contentRecorded(tx, id, 'ADD_CONTENT', added, creatorUid, now);
  return added;
}

/** What is not there is left out. */
export async function contentRemoved(
  tx: postgres.TransactionSql,
  id: number,
  content: ContentChange,
  creatorUid: string,
  now: Date,
): Promise<ContentChange> {
  const listed = (texts: readonly string[]) =>
    tx`(SELECT json_array_elements_text(${JSON.stringify(texts)}::text::json))`;
  const uids = await tx<{ uid: string }[]>`
    DELETE FROM mission_uid WHERE mission_id = ${id} AND uid IN ${listed(content.uids)} RETURNING uid`;
  const files = await tx<{ hash: string }[]>`
    DELETE FROM mission_resource WHERE mission_id = ${id} AND resource_hash IN ${listed(content.hashes)}
    RETURNING resource_hash AS hash`;
  const gone = { uids: uids.map(({ uid }) => uid), hashes: [...new Set(files.map(({ hash }) => hash))] };
  await tx`DELETE FROM mission_uid_keyword WHERE mission_id = ${id} AND uid IN ${listed(gone.uids)}`;
  await tx`DELETE FROM mission_resource_keyword WHERE mission_id = ${id} AND hash IN ${listed(gone.hashes)}`;
  await tx`
    DELETE FROM mission_layer
    WHERE mission_id = ${id} AND type = 'ITEM' AND uid IN ${listed([...gone.uids, ...gone.hashes])}`;
  await contentRecorded(tx, id, 'REMOVE_CONTENT', gone, creatorUid, now);
  return gone;
}

async function contentRecorded(
  tx: postgres.TransactionSql,
  id: number,
  type: MissionChangeType,
  { uids, hashes }: ContentChange,
  creatorUid: string,
  now: Date,
): Promise<void> {
  const changes = [...uids.map((uid) => ({ uid })), ...hashes.map((hash) => ({ hash }))];
  if (changes.length === 0) return;
  await tx`
    INSERT INTO mission_change (mission_id, mission_name, mission_guid, uid, hash, ts, servertime, change_type, creatoruid)
    SELECT m.id, m.name, m.guid, c.uid, c.hash, ${now}::timestamptz, ${now}::timestamptz, ${changeNumber(type)}::int, ${creatorUid}
    FROM mission m, json_to_recordset(${JSON.stringify(changes)}::text::json) AS c (uid text, hash text) WHERE m.id = ${id}`;
  await tx`UPDATE mission SET last_edited = ${now} WHERE id = ${id}`;
}
