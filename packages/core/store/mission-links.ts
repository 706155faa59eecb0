// Reads and writes what hangs on missions: parents and children, feeds, external data, map layers.

import type postgres from 'postgres';
import { CoreFault } from '../http/answers.ts';
import { type Attachment, type AttachmentKind, type MissionChangeType, MISSION_LIMITS } from '../model/mission.ts';
import type { RunSql } from './certificates.ts';
import { changeNumber } from './mission-contents.ts';
import { lockedMission } from './mission-writes.ts';
import type { Places } from './missions.ts';
import { visible } from './tables.ts';

/** How a change of an attachment is recorded. */
export interface AttachmentChange {
  type: MissionChangeType;
  creatorUid: string;
  /** Of external data: what its source says of the change. */
  token?: string | undefined;
  notes?: string | undefined;
  now: Date;
}

/**
 * Rejects with an AppError `unavailable` when the database is away, and with a CoreFault: `not
 * found` for a mission that has gone meanwhile, `conflict` beyond the limits.
 */
export interface MissionLinks {
  /** Guid of the parent, if it may be seen. */
  parentOf(missionId: number, sees: Places): Promise<string | undefined>;
  /** Guids of the children that may be seen. */
  childrenOf(missionId: number, sees: Places): Promise<string[]>;
  /** Null takes it away. Rejects with `invalid` for a mission above itself. */
  setParent(missionId: number, parentId: number | null): Promise<void>;
  /** Of these missions, in the order in which they came. */
  attachments(missionIds: readonly number[]): Promise<(Attachment & { missionId: number })[]>;
  /** Adds it, or replaces what is there under its uid. */
  attach(missionId: number, attachment: Attachment, change: AttachmentChange): Promise<void>;
  /** What went; undefined when there was none. */
  detach(
    missionId: number,
    kind: AttachmentKind,
    uid: string,
    change: AttachmentChange,
  ): Promise<Attachment | undefined>;
  /**
   * Records that the source of external data has changed; undefined when there is none of that uid.
   */
  changed(missionId: number, uid: string, change: AttachmentChange): Promise<Attachment | undefined>;
}

type Row = { missionId: number; kind: AttachmentKind; uid: string; body: string };

export function missionLinks(run: RunSql): MissionLinks {
  return {
    parentOf: (missionId, sees) =>
      run(async (sql) => {
        const [row] = await sql<{ guid: string }[]>`
          SELECT p.guid::text AS guid FROM mission m JOIN mission p ON p.id = m.parent_mission_id
          WHERE m.id = ${missionId} AND ${visible(sql, sees, sql`p.groups`)}`;
        return row?.guid;
      }),

    childrenOf: (missionId, sees) =>
      run(async (sql) => {
        const rows = await sql<{ guid: string }[]>`
          SELECT m.guid::text AS guid FROM mission m
          WHERE m.parent_mission_id = ${missionId} AND ${visible(sql, sees, sql`m.groups`)}
          ORDER BY m.name COLLATE "C", m.id LIMIT ${MISSION_LIMITS.attachments}`;
        return rows.map(({ guid }) => guid);
      }),

    setParent: (missionId, parentId) =>
      lockedMission(run, missionId, async (tx) => {
        if (parentId !== null) await requireNoCircle(tx, missionId, parentId);
        await tx`UPDATE mission SET parent_mission_id = ${parentId} WHERE id = ${missionId}`;
      }),

    attachments: (missionIds) =>
      run(async (sql) => {
        const rows = await sql<Row[]>`
          SELECT mission_id::float8 AS "missionId", kind, uid, body FROM mission_attachment
          WHERE mission_id = ANY (${`{${missionIds.join()}}`}::text::bigint[])
          ORDER BY mission_id, kind, uid COLLATE "C" LIMIT ${MISSION_LIMITS.contentsListed}`;
        return rows.map((row) => ({ ...parsed(row), missionId: row.missionId }));
      }),

    attach: (missionId, attachment, change) =>
      lockedMission(run, missionId, async (tx) => {
        const { kind, uid, body } = attachment;
        await tx`
          INSERT INTO mission_attachment (mission_id, kind, uid, body) VALUES (${missionId}, ${kind}, ${uid}, ${JSON.stringify(body)})
          ON CONFLICT (mission_id, kind, uid) DO UPDATE SET body = excluded.body`;
        const [counted] = await tx<{ count: number }[]>`
          SELECT count(*)::float8 AS count FROM mission_attachment WHERE mission_id = ${missionId} AND kind = ${kind}`;
        if ((counted?.count ?? 0) > MISSION_LIMITS.attachments)
          throw new CoreFault(
            'conflict',
            `A mission can have at most ${MISSION_LIMITS.attachments} of the kind ${kind}.`,
          );
        await recorded(tx, missionId, attachment, change);
      }),

    detach: (missionId, kind, uid, change) =>
      lockedMission(run, missionId, async (tx) => {
        const [row] = await tx<Row[]>`
          DELETE FROM mission_attachment WHERE mission_id = ${missionId} AND kind = ${kind} AND uid = ${uid}
          RETURNING kind, uid, body`;
        if (row === undefined) return undefined;
        await recorded(tx, missionId, parsed(row), change);
        return parsed(row);
      }),

    changed: (missionId, uid, change) =>
      lockedMission(run, missionId, async (tx) => {
        const [row] = await tx<Row[]>`
          SELECT kind, uid, body FROM mission_attachment
          WHERE mission_id = ${missionId} AND kind = 'externalData' AND uid = ${uid}`;
        if (row === undefined) return undefined;
        await recorded(tx, missionId, parsed(row), change);
        return parsed(row);
      }),
  };
}

function parsed({ kind, uid, body }: Omit<Row, 'missionId'>): Attachment {
  return { kind, uid, body: JSON.parse(body) as Attachment['body'] };
}

async function requireNoCircle(tx: postgres.TransactionSql, missionId: number, parentId: number): Promise<void> {
  // Two at once could close a circle that neither sees.
  await tx`SELECT pg_advisory_xact_lock(hashtextextended('mission parents', 0))`;
  const above = await tx<{ id: number }[]>`
    WITH RECURSIVE above (id) AS (
      SELECT ${parentId}::bigint UNION SELECT m.parent_mission_id FROM mission m JOIN above a ON a.id = m.id
      WHERE m.parent_mission_id IS NOT NULL)
    SELECT id::float8 AS id FROM above`;
  if (above.some(({ id }) => id === missionId))
    throw new CoreFault('invalid', 'Invalid Request: a mission cannot lie above itself');
}

async function recorded(
  tx: postgres.TransactionSql,
  missionId: number,
  { kind, uid, body }: Attachment,
  { type, creatorUid, token, notes, now }: AttachmentChange,
): Promise<void> {
  const textOf = (name: string): string | null => (typeof body[name] === 'string' ? body[name] : null);
  const is = (wanted: AttachmentKind): string | null => (kind === wanted ? uid : null);
  const isExternal = kind === 'externalData';
  await tx`
    INSERT INTO mission_change (mission_id, mission_name, mission_guid, ts, servertime, change_type, creatoruid,
      mission_feed_uid, map_layer_uid, external_data_uid, external_data_name, external_data_tool, external_data_token,
      external_data_notes)
    SELECT id, name, guid, ${now}::timestamptz, ${now}::timestamptz, ${changeNumber(type)}::int, ${creatorUid},
      ${is('missionFeed')}, ${is('mapLayer')}, ${is('externalData')}, ${isExternal ? textOf('name') : null},
      ${isExternal ? textOf('tool') : null}, ${token ?? null}, ${notes ?? null}
    FROM mission WHERE id = ${missionId}`;
  await tx`UPDATE mission SET last_edited = ${now} WHERE id = ${missionId}`;
}
