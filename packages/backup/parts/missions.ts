// Brings missions of an archive back into a running core: with keywords, contents, their files and
// newest events, changes and roles. A mission that is there gets the contents that it lacks, and
// keeps its own. The core reads these tables again within ten seconds.

import type { AnySql } from '@holdfast/kit/postgres';
import { counted } from '@holdfast/kit/format';
import { restoreFile } from './files.ts';
import { takeGroups } from './groups.ts';
import { type Databases, freeId, insertRow, type PartChange, readRows } from './rows.ts';

export interface ArchivedMission {
  id: string;
  guid: string;
  name: string;
  created_at: Date;
  edited_at: Date | null;
  /** Map items. */
  uids: number;
  files: number;
  subscribers: number;
}

export interface MissionOptions {
  /** False for a preview, which is rolled back. */
  copyBytes: boolean;
  now: Date;
}

/** Not the invitations: nobody is let in by a restore. */
const HANGING = [
  'mission_keyword',
  'mission_uid_keyword',
  'mission_resource_keyword',
  'mission_log_mission',
  'mission_layer',
  'mission_attachment',
];
const ADD_CONTENT = 2;
const DELETE_MISSION = 1;

/** By name. */
export async function listMissions(from: AnySql): Promise<ArchivedMission[]> {
  return from<ArchivedMission[]>`
    SELECT m.id::text, m.guid::text, m.name, m.create_time AS created_at, m.last_edited AS edited_at,
      (SELECT count(*)::int FROM mission_uid u WHERE u.mission_id = m.id) AS uids,
      (SELECT count(*)::int FROM mission_resource f WHERE f.mission_id = m.id) AS files,
      (SELECT count(*)::int FROM mission_subscription s WHERE s.mission_id = m.id) AS subscribers
    FROM mission m ORDER BY m.name, m.id`;
}

/** In the caller's transaction. Rejects with a StackError if a group has another place now. */
export async function restoreMissions(
  databases: Databases,
  missions: readonly ArchivedMission[],
  options: MissionOptions,
): Promise<PartChange[]> {
  const changes: PartChange[] = [];
  for (const mission of missions) changes.push(await new MissionRestore(databases, mission, options).run());
  return changes;
}

class MissionRestore {
  readonly #databases: Databases;
  readonly #mission: ArchivedMission;
  readonly #options: MissionOptions;
  /** In the running core. */
  #id = '';

  constructor(databases: Databases, mission: ArchivedMission, options: MissionOptions) {
    this.#databases = databases;
    this.#mission = mission;
    this.#options = options;
  }

  async run(): Promise<PartChange> {
    const { to } = this.#databases;
    const { name: target, guid, id } = this.#mission;
    // As the core makes one of that name.
    await to`SELECT pg_advisory_xact_lock(hashtextextended(${target}, 0))`;
    const found = await to<{ id: string; guid: string }[]>`
      SELECT id::text, guid::text FROM mission WHERE name = ${target} OR guid = ${guid}::text::uuid FOR UPDATE`;
    const same = found.find((each) => each.guid === guid);
    if (same === undefined && found.length > 0)
      return { target, effect: 'refused', detail: 'another mission has this name now: delete it first' };
    await takeGroups(this.#databases, 'SELECT groups FROM mission WHERE id = $1::text::bigint', id);
    if (same === undefined) await this.#add();
    else this.#id = same.id;
    const [uids, files, events] = [await this.#addUids(), await this.#addFiles(), await this.#addEvents()];
    if (same === undefined) await this.#addPeople();
    await this.#recordAdditions(uids, files);
    const words = [
      counted(uids.length, 'map item'),
      counted(files.length, 'file'),
      ...(events > 0 ? [`${counted(events, 'event')} of them`] : []),
    ];
    if (same === undefined)
      return { target, effect: 'new', detail: `${words.join(', ')}; ${counted(this.#mission.subscribers, 'device')}` };
    if (uids.length + files.length + events === 0)
      return { target, effect: 'kept', detail: 'has all contents of the archive' };
    return { target, effect: 'completed', detail: `${words.join(', ')} come back; nothing is taken away` };
  }

  async #rows(table: string): Promise<string[]> {
    return readRows(this.#databases.from, table, 't.mission_id = $1::text::bigint', this.#mission.id);
  }

  /** The row, its keywords, and its changes as far as they are gone. */
  async #add(): Promise<void> {
    const { from, to } = this.#databases;
    const { id, guid } = this.#mission;
    const [row = '{}'] = await readRows(from, 'mission', 't.id = $1::text::bigint', id);
    this.#id = await freeId(to, { table: 'mission', column: 'id', sequence: 'mission_id_seq' }, id);
    await insertRow(to, 'mission', row, { id: Number(this.#id), parent_mission_id: null });
    const logs = 't.id IN (SELECT mission_log_id FROM mission_log_mission WHERE mission_id = $1::text::bigint)';
    for (const log of await readRows(from, 'mission_log', logs, id)) await insertRow(to, 'mission_log', log);
    for (const table of HANGING)
      for (const each of await this.#rows(table)) await insertRow(to, table, each, { mission_id: Number(this.#id) });
    // The mission is back: its deletion is no longer so.
    await to`DELETE FROM mission_change WHERE mission_guid = ${guid}::text::uuid AND change_type = ${DELETE_MISSION}`;
    await to`
      UPDATE mission_change SET mission_id = ${this.#id}::text::bigint
      WHERE mission_guid = ${guid}::text::uuid AND mission_id <> ${this.#id}::text::bigint`;
    const numbers = { table: 'mission_change', column: 'id', sequence: 'mission_change_id_seq' };
    const changes = await from<{ id: string; row: string }[]>`
      SELECT id::text, to_jsonb(c)::text AS row FROM mission_change c WHERE mission_id = ${id}::text::bigint ORDER BY id`;
    for (const { id: was, row: change } of changes) {
      const [there] = await to`
        SELECT FROM mission_change WHERE id = ${was}::text::bigint AND mission_guid = ${guid}::text::uuid`;
      if (there !== undefined) continue;
      await insertRow(to, 'mission_change', change, {
        id: Number(await freeId(to, numbers, was)),
        mission_id: Number(this.#id),
      });
    }
  }

  async #addUids(): Promise<string[]> {
    const { from, to } = this.#databases;
    const uids = await from<{ uid: string }[]>`
      SELECT uid FROM mission_uid WHERE mission_id = ${this.#mission.id}::text::bigint`;
    const rows = await to<{ uid: string }[]>`
      INSERT INTO mission_uid (mission_id, uid)
      SELECT ${this.#id}::text::bigint, uid FROM json_array_elements_text(${JSON.stringify(uids.map(({ uid }) => uid))}::text::json) AS u (uid)
      ON CONFLICT DO NOTHING RETURNING uid`;
    return rows.map(({ uid }) => uid);
  }

  /** Resolves with the hashes that the mission lacked. */
  async #addFiles(): Promise<string[]> {
    const { from, to } = this.#databases;
    const files = await from<{ id: string; hash: string; bytes: number }[]>`
      SELECT r.id::text, f.resource_hash AS hash, coalesce(octet_length(r.data), 0) AS bytes
      FROM mission_resource f JOIN resource r ON r.id = f.resource_id
      WHERE f.mission_id = ${this.#mission.id}::text::bigint ORDER BY r.id`;
    const added: string[] = [];
    for (const file of files) {
      const [there] = await to`
        SELECT FROM mission_resource WHERE mission_id = ${this.#id}::text::bigint AND resource_hash = ${file.hash}`;
      if (there !== undefined) continue;
      const { id } = await restoreFile(this.#databases, file, this.#options.copyBytes);
      await to`
        INSERT INTO mission_resource (mission_id, resource_id, resource_hash)
        VALUES (${this.#id}::text::bigint, ${id}::text::int, ${file.hash})`;
      added.push(file.hash);
    }
    return added;
  }

  /** The newest event of each map item that has none now: deleted with the mission. */
  async #addEvents(): Promise<number> {
    const { from, to } = this.#databases;
    const newest = await from<{ id: string; uid: string }[]>`
      SELECT e.id::text, u.uid FROM mission_uid u
      JOIN LATERAL (SELECT id FROM cot_router n WHERE n.uid = u.uid ORDER BY id DESC LIMIT 1) e ON true
      WHERE u.mission_id = ${this.#mission.id}::text::bigint ORDER BY e.id`;
    let added = 0;
    for (const { id, uid } of newest) {
      const [there] = await to`SELECT FROM cot_router WHERE uid = ${uid} LIMIT 1`;
      if (there !== undefined) continue;
      await takeGroups(this.#databases, 'SELECT groups FROM cot_router WHERE id = $1::text::bigint', id);
      const [row = '{}'] = await readRows(from, 'cot_router', 't.id = $1::text::bigint', id);
      const at = { table: 'cot_router', column: 'id', sequence: 'cot_router_seq' };
      await insertRow(to, 'cot_router', row, { id: Number(await freeId(to, at, id)) });
      added++;
    }
    return added;
  }

  /** Devices with their roles, so that its owner can manage it. */
  async #addPeople(): Promise<void> {
    const { to } = this.#databases;
    const numbers = { table: 'mission_subscription', column: 'id', sequence: 'mission_subscription_id_seq' };
    for (const row of await this.#rows('mission_subscription')) {
      const { id } = JSON.parse(row) as { id: number };
      await insertRow(to, 'mission_subscription', row, {
        id: Number(await freeId(to, numbers, String(id))),
        mission_id: Number(this.#id),
      });
    }
  }

  /** Devices that follow the changes must hear of contents whose last change is their removal. */
  async #recordAdditions(uids: readonly string[], hashes: readonly string[]): Promise<void> {
    const { to } = this.#databases;
    const contents = [...uids.map((uid) => ({ uid })), ...hashes.map((hash) => ({ hash }))];
    await to`
      INSERT INTO mission_change (mission_id, mission_name, mission_guid, uid, hash, ts, servertime, change_type, creatoruid)
      SELECT m.id, m.name, m.guid, c.uid, c.hash, ${this.#options.now}, ${this.#options.now}, ${ADD_CONTENT}, m.creatoruid
      FROM mission m, json_to_recordset(${JSON.stringify(contents)}::text::json) AS c (uid text, hash text)
      WHERE m.id = ${this.#id}::text::bigint AND (
        SELECT l.change_type FROM mission_change l
        WHERE l.mission_id = m.id AND l.uid IS NOT DISTINCT FROM c.uid AND l.hash IS NOT DISTINCT FROM c.hash
        ORDER BY l.id DESC LIMIT 1) IS DISTINCT FROM ${ADD_CONTENT}`;
    if (contents.length > 0)
      await to`UPDATE mission SET last_edited = ${this.#options.now} WHERE id = ${this.#id}::text::bigint`;
  }
}
