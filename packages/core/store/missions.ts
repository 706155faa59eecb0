// Reads missions, their contents and changes. `mission.groups` decides who sees which.

import type postgres from 'postgres';
import {
  type Attachment,
  CHANGE_TYPES,
  type Mission,
  MISSION_LIMITS,
  type MissionChange,
  type MissionContents,
  type MissionFile,
  type MissionUid,
  type MissionWithGroups,
  type Resource,
  type UidDetails,
} from '../model/mission.ts';
import { unescapeXml } from '../model/wire-text.ts';
import type { RunSql } from './certificates.ts';
import { resourceColumns } from './resources.ts';
import { unlessLocked, visible } from './tables.ts';

/** Places of groups; `all` sees what is in no group too. */
export type Places = readonly number[] | 'all';
export type MissionKey = { name: string } | { guid: string };

export interface MissionQuery {
  sees: Places;
  tool: string;
  passwordProtected: boolean;
  /** False: only those whose default role is MISSION_SUBSCRIBER. */
  defaultRole: boolean;
  nameContains: string;
  creatorContains: string;
}

export interface MissionPage {
  sort: 'name' | 'creatorUid' | 'createTime';
  ascending: boolean;
  offset: number;
  limit: number;
}

export interface ChangeWindow {
  start: Date | undefined;
  end: Date | undefined;
  /** The newest of each content and author, as long as it still says how things are. */
  squashed: boolean;
}

/** Rejects with an AppError `unavailable` when the database is away. */
export interface MissionReads {
  /** Of several of one name the oldest. */
  find(key: MissionKey, sees: Places): Promise<MissionWithGroups | undefined>;
  /** Every mission of that name, whoever may see it, the oldest first; at most 20. */
  named(name: string): Promise<MissionWithGroups[]>;
  wasDeleted(key: MissionKey): Promise<boolean>;
  /** None of those that are by invitation only. */
  list(query: MissionQuery, page: MissionPage): Promise<Mission[]>;
  count(query: MissionQuery): Promise<number>;
  /** As many as a mission may have, and nothing of what they say. */
  uids(missionId: number): Promise<string[]>;
  /**
   * At most `most` uids and as many files, by mission. With `detailsFor`: what the newest events
   * that may be seen say.
   */
  contents(missionIds: readonly number[], most: number, detailsFor?: Places): Promise<MissionContents>;
  /**
   * The newest first; one more than may be shown when there are more. `detailsFor` as in
   * `contents`.
   */
  changes(mission: Mission, window: ChangeWindow, detailsFor: Places): Promise<MissionChange[]>;
}

const SORTS = { name: 'name', creatorUid: 'creatoruid', createTime: 'create_time' } as const;
/** Of a detail: what stands behind is not looked at. */
const DETAIL_CHARACTERS = 20_000;
/** Of one start tag. */
const TAG_CHARACTERS = 2_000;

/** `runEvents`: of `eventTable`. */
export function missionReads(run: RunSql, runEvents: RunSql = run): MissionReads {
  return {
    find: (key, sees) =>
      run(async (sql) => {
        const [row] = await sql<MissionWithGroups[]>`
          SELECT ${missionColumns(sql)}, ${groupsColumn(sql)} FROM mission m LEFT JOIN role r ON r.id = m.default_role_id
          WHERE ${keyIs(sql, key)} AND ${visible(sql, sees, sql`m.groups`)} ORDER BY m.id LIMIT 1`;
        return row;
      }),

    named: (name) =>
      run(
        (sql) => sql<MissionWithGroups[]>`
          SELECT ${missionColumns(sql)}, ${groupsColumn(sql)} FROM mission m LEFT JOIN role r ON r.id = m.default_role_id
          WHERE m.name = ${name} ORDER BY m.id LIMIT 20`,
      ),

    wasDeleted: (key) =>
      run(async (sql) => {
        const is = 'name' in key ? sql`mission_name = ${key.name}` : sql`mission_guid = ${key.guid}::text::uuid`;
        const [row] = await sql`
          SELECT FROM mission_change WHERE ${is} AND change_type = 1 LIMIT 1`;
        return row !== undefined;
      }),

    list: (query, { sort, ascending, offset, limit }) =>
      run(
        (sql) => sql<Mission[]>`
          SELECT ${missionColumns(sql)} FROM mission m LEFT JOIN role r ON r.id = m.default_role_id
          WHERE ${wanted(sql, query)}
          ORDER BY ${sql(`m.${SORTS[sort]}`)} ${sort === 'createTime' ? sql`` : sql`COLLATE "C"`} ${ascending ? sql`ASC` : sql`DESC`}, m.id
          LIMIT ${limit} OFFSET ${offset}`,
      ),

    count: (query) =>
      run(async (sql) => {
        const [row] = await sql<{ count: number }[]>`
          SELECT count(*)::float8 AS count FROM mission m LEFT JOIN role r ON r.id = m.default_role_id
          WHERE ${wanted(sql, query)}`;
        return row?.count ?? 0;
      }),

    uids: (missionId) =>
      run(async (sql) => {
        const rows = await sql<{ uid: string }[]>`
          SELECT uid FROM mission_uid WHERE mission_id = ${missionId} LIMIT ${MISSION_LIMITS.contents}`;
        return rows.map(({ uid }) => uid);
      }),

    async contents(missionIds, most, detailsFor) {
      const ids = `{${missionIds.join()}}`;
      const plainUids = (): Promise<MissionUid[]> => run((sql) => uidsOf(sql, ids, most + 1));
      const uids =
        detailsFor === undefined
          ? await plainUids()
          : await unlessLocked(() => runEvents((sql) => uidsOf(sql, ids, most + 1, detailsFor)), plainUids);
      const files = await run((sql) => filesOf(sql, ids, most + 1));
      const isCut = uids.length > most || files.length > most;
      return { uids: uids.slice(0, most), files: files.slice(0, most), isCut };
    },

    changes: (mission, window, detailsFor) =>
      unlessLocked(
        () =>
          runEvents((sql) => changesOf(sql, mission, window, detailsFor, newestDetails(sql, sql`c.uid`, detailsFor))),
        () => run((sql) => changesOf(sql, mission, window, detailsFor, sql`NULL::json`)),
      ),
  };
}

async function changesOf(
  sql: postgres.Sql,
  { id, name, guid, createTime }: Mission,
  { start, end, squashed }: ChangeWindow,
  sees: Places,
  details: postgres.Fragment,
): Promise<MissionChange[]> {
  const within = sql`c.mission_id = ${id} AND c.change_type BETWEEN 0 AND ${CHANGE_TYPES.length - 1}
    AND c.ts >= ${start === undefined || start < createTime ? createTime : start}
    AND ${end === undefined ? sql`true` : sql`c.ts <= ${end}`}`;
  const rows = await sql<ChangeRow[]>`
    SELECT c.change_type AS "changeType", c.ts AS timestamp, coalesce(c.servertime, c.ts) AS "serverTime",
      coalesce(c.creatoruid, '') AS "changedBy", c.uid AS "contentUid", c.hash AS "contentHash",
      ${details} AS details, ${attachmentColumn(sql)} AS attachment, file.*
    FROM mission_change c
    LEFT JOIN LATERAL (
      SELECT ${resourceColumns(sql)} FROM resource
      WHERE resource.hash = c.hash AND (${visible(sql, sees, sql`resource.groups`)} OR EXISTS (
        SELECT FROM mission_resource f WHERE f.mission_id = c.mission_id AND f.resource_id = resource.id))
      ORDER BY resource.id DESC LIMIT 1
    ) file ON true
    WHERE ${within} AND ${squashed ? stillSo(sql, within) : sql`true`}
    ORDER BY c.id DESC LIMIT ${MISSION_LIMITS.changes + 1}`;
  return rows.map(
    ({ changeType, timestamp, serverTime, changedBy, contentUid, contentHash, details, attachment, ...file }) => ({
      type: CHANGE_TYPES[changeType] ?? 'ADD_CONTENT',
      missionName: name,
      missionGuid: guid,
      timestamp,
      serverTime,
      creatorUid: changedBy,
      contentUid,
      contentHash,
      details: plain(details),
      attachment: attachment ?? undefined,
      resource: file.id === null ? null : file,
    }),
  );
}

/** A file has a `creatorUid` too: that of the change is called otherwise. */
type ChangeRow = Pick<MissionChange, 'timestamp' | 'serverTime' | 'contentUid' | 'contentHash'> & {
  details: RawDetails | null;
  attachment: Attachment | null;
  changeType: number;
  changedBy: string;
} & (Resource | (Omit<Resource, 'id'> & { id: null }));

/** What the record says, and of what still hangs on the mission all else. */
function attachmentColumn(sql: postgres.ISql): postgres.Fragment {
  return sql`CASE WHEN num_nonnulls(c.external_data_uid, c.mission_feed_uid, c.map_layer_uid) > 0 THEN json_build_object(
    'kind', CASE WHEN c.external_data_uid IS NOT NULL THEN 'externalData'
      WHEN c.mission_feed_uid IS NOT NULL THEN 'missionFeed' ELSE 'mapLayer' END,
    'uid', coalesce(c.external_data_uid, c.mission_feed_uid, c.map_layer_uid),
    'body', (coalesce((SELECT a.body FROM mission_attachment a WHERE a.mission_id = c.mission_id
        AND a.uid = coalesce(c.external_data_uid, c.mission_feed_uid, c.map_layer_uid) LIMIT 1), '{}')::jsonb
      || jsonb_strip_nulls(jsonb_build_object('name', c.external_data_name, 'tool', c.external_data_tool,
        'notes', c.external_data_notes, 'token', c.external_data_token)))) END`;
}

/** Of `mission m LEFT JOIN role r`. */
function missionColumns(sql: postgres.ISql): postgres.Fragment {
  return sql`m.id::float8 AS id, m.guid::text AS guid, m.name, coalesce(m.creatoruid, '') AS "creatorUid",
    m.create_time AS "createTime", m.last_edited AS "lastEdited", coalesce(m.tool, 'public') AS tool,
    m.chatroom AS "chatRoom", m.description, m.base_layer AS "baseLayer", m.bbox,
    to_json(string_to_array(m.bounding_polygon, ' ')) AS "boundingPolygon", m.path, m.classification,
    m.password_hash AS "passwordHash", coalesce(r.role, 'MISSION_SUBSCRIBER') AS "defaultRole",
    coalesce(m.expiration, -1)::float8 AS expiration, m.invite_only AS "inviteOnly",
    (SELECT coalesce(json_agg(k.keyword ORDER BY k.keyword COLLATE "C"), '[]')
      FROM mission_keyword k WHERE k.mission_id = m.id) AS keywords`;
}

function groupsColumn(sql: postgres.ISql): postgres.Fragment {
  return sql`(SELECT coalesce(json_agg(json_build_object('name', g.name, 'place', g.bitpos) ORDER BY g.bitpos), '[]')
    FROM (SELECT m.groups || B'' AS bits OFFSET 0) plain CROSS JOIN groups g
    WHERE CASE WHEN g.bitpos < length(plain.bits)
      THEN get_bit(plain.bits, length(plain.bits) - 1 - g.bitpos) = 1 ELSE false END) AS groups`;
}

function keyIs(sql: postgres.ISql, key: MissionKey): postgres.Fragment {
  return 'name' in key ? sql`m.name = ${key.name}` : sql`m.guid = ${key.guid}::text::uuid`;
}

function wanted(sql: postgres.ISql, query: MissionQuery): postgres.Fragment {
  const { sees, tool, passwordProtected, defaultRole, nameContains, creatorContains } = query;
  return sql`NOT m.invite_only AND coalesce(m.tool, 'public') = ${tool}
    AND ${passwordProtected ? sql`true` : sql`m.password_hash IS NULL`}
    AND ${defaultRole ? sql`true` : sql`coalesce(r.role, 'MISSION_SUBSCRIBER') = 'MISSION_SUBSCRIBER'`}
    AND ${nameContains === '' ? sql`true` : sql`position(lower(${nameContains}) IN lower(m.name)) > 0`}
    AND ${creatorContains === '' ? sql`true` : sql`position(lower(${creatorContains}) IN lower(m.creatoruid)) > 0`}
    AND ${visible(sql, sees, sql`m.groups`)}`;
}

/** Added and still there, or taken away and still gone; the newest of each content and author. */
function stillSo(sql: postgres.ISql, within: postgres.Fragment): postgres.Fragment {
  return sql`c.id IN (
    SELECT max(c.id) FROM mission_change c WHERE ${within}
    GROUP BY c.change_type, c.uid, c.hash, c.creatoruid, c.external_data_uid, c.mission_feed_uid, c.map_layer_uid
  ) AND CASE
    WHEN c.change_type = 2 AND c.uid IS NOT NULL
      THEN EXISTS (SELECT FROM mission_uid u WHERE u.mission_id = c.mission_id AND u.uid = c.uid)
    WHEN c.change_type = 3 AND c.uid IS NOT NULL
      THEN NOT EXISTS (SELECT FROM mission_uid u WHERE u.mission_id = c.mission_id AND u.uid = c.uid)
    WHEN c.change_type = 2 AND c.hash IS NOT NULL
      THEN EXISTS (SELECT FROM mission_resource f WHERE f.mission_id = c.mission_id AND f.resource_hash = c.hash)
    WHEN c.change_type = 3 AND c.hash IS NOT NULL
      THEN NOT EXISTS (SELECT FROM mission_resource f WHERE f.mission_id = c.mission_id AND f.resource_hash = c.hash)
    ELSE true END`;
}

/** Who added it last, and when: one look into an index. */
function addition(sql: postgres.ISql, column: 'uid' | 'hash', content: postgres.Fragment): postgres.Fragment {
  return sql`LATERAL (SELECT ts, creatoruid FROM mission_change c
    WHERE c.mission_id = ${sql(column === 'uid' ? 'u.mission_id' : 'f.mission_id')} AND ${sql(`c.${column}`)} = ${content}
      AND c.change_type = 2
    ORDER BY c.id DESC LIMIT 1) a ON true`;
}

async function uidsOf(sql: postgres.ISql, ids: string, most: number, detailsFor?: Places): Promise<MissionUid[]> {
  const details = sql`, ${newestDetails(sql, sql`u.uid`, detailsFor ?? [])} AS details`;
  const rows = await sql<(Omit<MissionUid, 'details'> & { details?: RawDetails | null })[]>`
    SELECT u.mission_id::float8 AS "missionId", u.uid, a.ts AS "addedAt", a.creatoruid AS "addedBy"
      ${detailsFor === undefined ? sql`` : details}
    FROM mission_uid u
    LEFT JOIN ${addition(sql, 'uid', sql`u.uid`)}
    WHERE u.mission_id = ANY (${ids}::text::bigint[])
    ORDER BY u.mission_id, u.uid COLLATE "C" LIMIT ${most}`;
  return rows.map((row) => ({ ...row, details: plain(row.details ?? null) }));
}

/** What the newest event of that uid says, of those that may be seen. */
function newestDetails(sql: postgres.ISql, uid: postgres.Fragment, sees: Places): postgres.Fragment {
  return sql`(SELECT ${detailsColumn(sql)} FROM ${newestOf(sql, uid)} e
    WHERE ${visible(sql, sees, sql`e.groups`)} ORDER BY e.id DESC LIMIT 1)`;
}

/** So many of a uid are looked at: of one whom the caller never sees there may be millions. */
const NEWEST = 100;

/** A table expression: the newest events of that uid, whoever may see them. */
export function newestOf(sql: postgres.ISql, uid: postgres.Fragment): postgres.Fragment {
  return sql`(SELECT * FROM cot_router n WHERE n.uid = ${uid} ORDER BY n.id DESC LIMIT ${NEWEST})`;
}

/** What a row says of an event: three start tags as they stand in it. */
interface RawDetails extends Pick<UidDetails, 'type' | 'lat' | 'lon'> {
  contact: string | null;
  usericon: string | null;
  color: string | null;
}

function plain(raw: RawDetails | null): UidDetails | null {
  if (raw === null) return null;
  const { type, contact, usericon, color, lat, lon } = raw;
  return {
    type,
    callsign: attributeOf(contact, 'callsign'),
    iconsetPath: attributeOf(usericon, 'iconsetpath'),
    color: attributeOf(color, 'argb'),
    lat,
    lon,
  };
}

function attributeOf(tag: string | null, name: string): string | null {
  if (tag === null) return null;
  const [, double, single] = new RegExp(`^<\\w+\\s.*?\\b${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`, 's').exec(tag) ?? [];
  const written = double ?? single;
  return written === undefined ? null : unescapeXml(written);
}

/**
 * Tags are cut out by their first characters: that costs a tenth of a pattern. `plain` reads them.
 */
function detailsColumn(sql: postgres.ISql): postgres.Fragment {
  const tag = (element: string): postgres.Fragment =>
    sql`split_part(substring(e.detail FROM nullif(strpos(left(e.detail, ${DETAIL_CHARACTERS}), ${`<${element}`}), 0)
      FOR ${TAG_CHARACTERS}), '>', 1)`;
  return sql`json_build_object('type', coalesce(e.cot_type, ''), 'contact', ${tag('contact')}, 'usericon', ${tag('usericon')},
    'color', ${tag('color')}, 'lat', e.event_pt[1], 'lon', e.event_pt[0])`;
}

async function filesOf(sql: postgres.ISql, ids: string, most: number): Promise<MissionFile[]> {
  const rows = await sql<(Resource & Omit<MissionFile, 'resource'>)[]>`
    SELECT f.mission_id::float8 AS "missionId", a.ts AS "addedAt", a.creatoruid AS "addedBy", ${resourceColumns(sql)}
    FROM mission_resource f
    JOIN resource ON resource.id = f.resource_id
    LEFT JOIN ${addition(sql, 'hash', sql`f.resource_hash`)}
    WHERE f.mission_id = ANY (${ids}::text::bigint[])
    ORDER BY f.mission_id, f.resource_id LIMIT ${most}`;
  return rows.map(({ missionId, addedAt, addedBy, ...resource }) => ({ missionId, addedAt, addedBy, resource }));
}
