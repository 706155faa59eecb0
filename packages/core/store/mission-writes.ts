// Changes the tables of missions. Each change is one transaction with a row in `mission_change`.

import { randomUUID } from 'node:crypto';
import type postgres from 'postgres';
import { CoreFault } from '../http/answers.ts';
import { type Mission, MISSION_LIMITS, MISSION_ROLES, type MissionDraft, type MissionRole } from '../model/mission.ts';
import type { RunSql } from './certificates.ts';
import type { GroupVectors } from './groups.ts';
import { type Addition, changeNumber, contentAdded, type ContentChange, contentRemoved } from './mission-contents.ts';
import type { Places } from './missions.ts';
import { visible } from './tables.ts';

export interface NewMission {
  name: string;
  draft: MissionDraft;
  creatorUid: string;
  username: string;
  /** Places of its groups, ascending. */
  places: readonly number[];
  /** What its creator sees: no second mission of the name among it. */
  sees: Places;
  /** How many missions its creator may own. */
  maxOwned: number;
  now: Date;
}

export interface MadeMission {
  id: number;
  /** Of the subscription of its owner. */
  subscriptionUid: string;
}

/**
 * Rejects with an AppError `unavailable` when the database is away, and with a CoreFault: `not
 * found` for a mission that has gone meanwhile or a file that is not there, `conflict` for what is
 * beyond the limits.
 */
export interface MissionWrites {
  /** Undefined when there is one of that name already. */
  create(mission: NewMission): Promise<MadeMission | undefined>;
  /** Changes what was said; `places` are its groups from now on. */
  update(id: number, draft: MissionDraft, places: readonly number[] | undefined, now: Date): Promise<void>;
  /** What is there already stays as it is. */
  addContent(id: number, addition: Addition): Promise<ContentChange>;
  removeContent(id: number, content: ContentChange, creatorUid: string, now: Date): Promise<ContentChange>;
  /** Undefined takes all away. */
  setKeywords(id: number, keywords: readonly string[], now: Date): Promise<void>;
  removeKeyword(id: number, keyword: string, now: Date): Promise<void>;
  /**
   * The mission with all that hangs on it; files and events stay. False when it was gone already.
   * `also` is done in the same transaction when it was not.
   */
  remove(
    mission: Pick<Mission, 'id' | 'name' | 'guid'>,
    creatorUid: string,
    now: Date,
    also?: (tx: postgres.TransactionSql) => Promise<void>,
  ): Promise<boolean>;
  /** One batch of the events of its uids that no other mission has. True: there may be more. */
  removeEvents(id: number): Promise<boolean>;
  /**
   * The same of its files, of those that somebody may see; of that submitter alone when it is
   * given.
   */
  removeFiles(id: number, sees: Places, submitter?: string): Promise<boolean>;
}

/** Rows in one statement: it ends well within its time. */
const EVENTS_AT_ONCE = 2_000;
const FILES_AT_ONCE = 20;
export const roleId = (role: MissionRole): number => MISSION_ROLES.indexOf(role);

/** A transaction. Rejects when the mission is gone; until the end nobody else changes it. */
export async function lockedMission<T>(
  run: RunSql,
  id: number,
  use: (tx: postgres.TransactionSql) => Promise<T>,
): Promise<T> {
  const result = await run((sql) =>
    sql.begin(async (tx) => {
      const [row] = await tx`SELECT FROM mission WHERE id = ${id} FOR UPDATE`;
      if (row === undefined) throw new CoreFault('not found', 'The mission was deleted in the meantime.');
      return use(tx);
    }),
  );
  return result as T;
}

/**
 * `changed` is called after everything but additions: whoever does not know of one only adds the
 * same again. `runEvents`: of `eventTable`.
 */
export class StoredMissionWrites implements MissionWrites {
  readonly #run: RunSql;
  readonly #vectors: Pick<GroupVectors, 'ensure' | 'keyOf' | 'forget'>;
  readonly #changed: () => void;
  readonly #runEvents: RunSql;

  constructor(
    run: RunSql,
    vectors: Pick<GroupVectors, 'ensure' | 'keyOf' | 'forget'>,
    changed: () => void,
    runEvents: RunSql = run,
  ) {
    this.#run = run;
    this.#vectors = vectors;
    this.#changed = changed;
    this.#runEvents = runEvents;
  }

  async create(mission: NewMission): Promise<MadeMission | undefined> {
    const made = await this.#withVector(mission.places, (key) =>
      this.#run((sql) => sql.begin((tx) => created(tx, mission, key))),
    );
    this.#changed();
    return made;
  }

  async update(id: number, draft: MissionDraft, places: readonly number[] | undefined, now: Date): Promise<void> {
    const set = async (key: string | undefined): Promise<'no vector' | 'done'> =>
      this.#locked(id, async (tx) => {
        await tx`UPDATE mission SET last_edited = ${now}, ${draftColumns(tx, draft)} WHERE id = ${id}`;
        if (key === undefined) return 'done';
        const rows = await tx`
            UPDATE mission SET groups = v.vector FROM group_vector v WHERE id = ${id} AND v.places = ${key} RETURNING id`;
        return rows.length === 0 ? 'no vector' : 'done';
      });
    if (places === undefined) await set(undefined);
    else await this.#withVector(places, set);
    this.#changed();
  }

  addContent(id: number, addition: Addition): Promise<ContentChange> {
    return this.#locked(id, (tx) => contentAdded(tx, id, addition));
  }

  async removeContent(id: number, content: ContentChange, creatorUid: string, now: Date): Promise<ContentChange> {
    const removed = await this.#locked(id, (tx) => contentRemoved(tx, id, content, creatorUid, now));
    this.#changed();
    return removed;
  }

  setKeywords(id: number, keywords: readonly string[], now: Date): Promise<void> {
    return this.#locked(id, async (tx) => {
      await tx`DELETE FROM mission_keyword WHERE mission_id = ${id}`;
      await tx`
          INSERT INTO mission_keyword (mission_id, keyword)
          SELECT DISTINCT ${id}::bigint, keyword FROM json_array_elements_text(${JSON.stringify(keywords)}::text::json) AS k (keyword)`;
      await tx`UPDATE mission SET last_edited = ${now} WHERE id = ${id}`;
    });
  }

  removeKeyword(id: number, keyword: string, now: Date): Promise<void> {
    return this.#locked(id, async (tx) => {
      await tx`DELETE FROM mission_keyword WHERE mission_id = ${id} AND keyword = ${keyword}`;
      await tx`UPDATE mission SET last_edited = ${now} WHERE id = ${id}`;
    });
  }

  async remove(
    { id, name, guid }: Pick<Mission, 'id' | 'name' | 'guid'>,
    creatorUid: string,
    now: Date,
    also?: (tx: postgres.TransactionSql) => Promise<void>,
  ): Promise<boolean> {
    const gone = await this.#run((sql) =>
      sql.begin(async (tx) => {
        const [row] = await tx`SELECT FROM mission WHERE id = ${id} FOR UPDATE`;
        if (row === undefined) return false;
        await tx`
            DELETE FROM mission_log WHERE id IN (SELECT mission_log_id FROM mission_log_mission WHERE mission_id = ${id})
              AND NOT EXISTS (SELECT FROM mission_log_mission o WHERE o.mission_log_id = mission_log.id AND o.mission_id <> ${id})`;
        for (const table of HANGING) await tx`DELETE FROM ${tx(table)} WHERE mission_id = ${id}`;
        await tx`UPDATE mission SET parent_mission_id = NULL WHERE parent_mission_id = ${id}`;
        await tx`DELETE FROM mission WHERE id = ${id}`;
        await tx`
            INSERT INTO mission_change (mission_id, mission_name, mission_guid, ts, servertime, change_type, creatoruid)
            VALUES (${id}, ${name}, ${guid}::text::uuid, ${now}, ${now}, ${changeNumber('DELETE_MISSION')}, ${creatorUid})`;
        await also?.(tx);
        return true;
      }),
    );
    this.#changed();
    return gone;
  }

  removeEvents(id: number): Promise<boolean> {
    return this.#runEvents(async (sql) => {
      const { count } = await sql`
          DELETE FROM cot_router WHERE id = ANY (ARRAY(
            SELECT e.id FROM mission_uid u JOIN cot_router e ON e.uid = u.uid
            WHERE u.mission_id = ${id}
              AND NOT EXISTS (SELECT FROM mission_uid o WHERE o.uid = u.uid AND o.mission_id <> ${id})
            LIMIT ${EVENTS_AT_ONCE}))`;
      return count === EVENTS_AT_ONCE;
    });
  }

  removeFiles(id: number, sees: Places, submitter?: string): Promise<boolean> {
    return this.#run((sql) =>
      sql.begin(async (tx) => {
        const rows = await tx<{ id: number }[]>`
            DELETE FROM resource WHERE id = ANY (ARRAY(
              SELECT f.id FROM mission_resource m JOIN resource f ON f.id = m.resource_id
              WHERE m.mission_id = ${id} AND ${visible(tx, sees, tx`f.groups`)}
                AND ${submitter === undefined ? tx`true` : tx`f.submitter = ${submitter}`}
                AND NOT EXISTS (SELECT FROM mission_resource o WHERE o.resource_id = m.resource_id AND o.mission_id <> ${id})
              LIMIT ${FILES_AT_ONCE})) RETURNING id`;
        await tx`
            DELETE FROM mission_resource WHERE mission_id = ${id}
              AND resource_id = ANY (${`{${rows.map((row) => row.id).join()}}`}::text::int[])`;
        return rows.length === FILES_AT_ONCE;
      }),
    );
  }

  #locked<T>(id: number, use: (tx: postgres.TransactionSql) => Promise<T>): Promise<T> {
    return lockedMission(this.#run, id, use);
  }

  /** With the row of the vector there: somebody may have emptied its table. */
  async #withVector<T>(places: readonly number[], use: (key: string) => Promise<T | 'no vector'>): Promise<T> {
    for (const attempt of [1, 2]) {
      await this.#vectors.ensure([places]);
      const done = await use(this.#vectors.keyOf(places));
      if (done !== 'no vector') return done;
      if (attempt === 1) this.#vectors.forget();
    }
    throw new Error('the row of the group vector keeps disappearing');
  }
}

const HANGING = [
  'mission_subscription',
  'mission_uid',
  'mission_resource',
  'mission_keyword',
  'mission_uid_keyword',
  'mission_resource_keyword',
  'mission_invitation',
  'mission_log_mission',
  'mission_layer',
  'mission_attachment',
];

async function created(
  tx: postgres.TransactionSql,
  { name, draft, creatorUid, username, places, sees, maxOwned, now }: NewMission,
  vectorKey: string,
): Promise<MadeMission | undefined | 'no vector'> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))`;
  const [same] = await tx`
    SELECT FROM mission m WHERE name = ${name}
      AND (${visible(tx, sees, tx`m.groups`)} OR ${visible(tx, places, tx`m.groups`)}) LIMIT 1`;
  if (same !== undefined) return undefined;
  const [counted] = await tx<{ all: number; owned: number }[]>`
    SELECT (SELECT count(*) FROM mission)::float8 AS all,
      (SELECT count(DISTINCT mission_id) FROM mission_subscription
        WHERE lower(username) = lower(${username}) AND role_id = ${roleId('MISSION_OWNER')})::float8 AS owned`;
  if ((counted?.all ?? 0) >= MISSION_LIMITS.missions)
    throw new CoreFault('conflict', `The limit of ${MISSION_LIMITS.missions} missions is reached. Delete old ones.`);
  if ((counted?.owned ?? 0) >= maxOwned)
    throw new CoreFault('conflict', `You already own ${maxOwned} missions, the maximum. Delete old ones.`);
  const [row] = await tx<{ id: number }[]>`
    INSERT INTO mission (name, creatoruid, create_time, tool, groups)
    SELECT ${name}, ${creatorUid}, ${now}::timestamptz, 'public', v.vector FROM group_vector v WHERE v.places = ${vectorKey}
    RETURNING id::float8 AS id`;
  if (row === undefined) return 'no vector';
  const { id } = row;
  await tx`
    WITH change AS (
      INSERT INTO mission_change (mission_id, mission_name, mission_guid, ts, servertime, change_type, creatoruid)
      SELECT id, name, guid, ${now}::timestamptz, ${now}::timestamptz, ${changeNumber('CREATE_MISSION')}::int, ${creatorUid}
      FROM mission WHERE id = ${id} RETURNING id
    )
    UPDATE mission SET create_change_id = change.id, ${draftColumns(tx, draft)} FROM change WHERE mission.id = ${id}`;
  const subscriptionUid = randomUUID();
  await tx`
    INSERT INTO mission_subscription (mission_id, client_uid, username, create_time, uid, role_id)
    VALUES (${id}, ${creatorUid}, ${username}, ${now}, ${subscriptionUid}, ${roleId('MISSION_OWNER')})`;
  return { id, subscriptionUid };
}

/** Of an UPDATE: what was said; at least one column. */
function draftColumns(sql: postgres.ISql, draft: MissionDraft): postgres.Fragment {
  const messagesOf = (column: string, value: string | number | boolean | null | undefined): postgres.Fragment =>
    value === undefined ? sql`` : sql`, ${sql(column)} = ${value}`;
  return sql`tool = ${draft.tool === undefined ? sql`tool` : draft.tool}
    ${messagesOf('description', draft.description)} ${messagesOf('chatroom', draft.chatRoom)} ${messagesOf('base_layer', draft.baseLayer)}
    ${messagesOf('bbox', draft.bbox)} ${messagesOf('bounding_polygon', draft.boundingPolygon?.join(' '))} ${messagesOf('path', draft.path)}
    ${messagesOf('classification', draft.classification)} ${messagesOf('password_hash', draft.passwordHash)}
    ${messagesOf('default_role_id', draft.defaultRole === undefined ? undefined : roleId(draft.defaultRole))}
    ${messagesOf('expiration', draft.expiration)} ${messagesOf('invite_only', draft.inviteOnly)}`;
}
