// Reads and writes `mission_layer`: folders of a mission, and what of its contents is filed in
// them.

import type postgres from 'postgres';
import { CoreFault } from '../http/answers.ts';
import { type LayerType, MISSION_LIMITS, type MissionLayer } from '../model/mission.ts';
import type { RunSql } from './certificates.ts';
import { lockedMission } from './mission-writes.ts';

/**
 * Where a layer goes: under that parent (null: on top), behind that sibling (undefined: as the
 * first).
 */
export interface LayerPlace {
  parentUid: string | null;
  afterUid: string | undefined;
}

/**
 * Rejects with an AppError `unavailable` when the database is away, and with a CoreFault: `not
 * found` for what is not in the mission, `conflict` beyond the limits, `invalid` for a layer within
 * itself.
 */
export interface MissionLayers {
  /** In their order; parents may come behind their children. */
  of(missionId: number): Promise<MissionLayer[]>;
  /** One that is there already is moved, and keeps its name and type. */
  add(
    missionId: number,
    layer: { uid: string; name: string | null; type: LayerType },
    at: LayerPlace,
  ): Promise<MissionLayer>;
  rename(missionId: number, uid: string, name: string): Promise<MissionLayer>;
  /** In their order, one behind the other. Without `parentUid` each stays under its own. */
  move(
    missionId: number,
    uids: readonly string[],
    at: { parentUid?: string | null; afterUid: string | undefined },
  ): Promise<MissionLayer[]>;
  /** With all below them. Returns all that went. */
  remove(missionId: number, uids: readonly string[]): Promise<MissionLayer[]>;
  /** Files contents in a layer; what lies in another one is moved. */
  file(missionId: number, layerUid: string, uids: readonly string[], afterUid: string | undefined): Promise<void>;
}

export function missionLayers(run: RunSql): MissionLayers {
  return {
    of: (missionId) => run((sql) => rowsOf(sql, missionId)),

    add: (missionId, layer, at) =>
      lockedMission(run, missionId, async (tx) => {
        const tree = await LayerTree.read(tx, missionId);
        if (!tree.has(layer.uid)) tree.create(layer);
        tree.move(layer.uid, at.parentUid, at.afterUid);
        await tree.write();
        return tree.find(layer.uid);
      }),

    rename: (missionId, uid, name) =>
      lockedMission(run, missionId, async (tx) => {
        const tree = await LayerTree.read(tx, missionId);
        const renamed = { ...tree.find(uid), name };
        await tx`UPDATE mission_layer SET name = ${name} WHERE mission_id = ${missionId} AND uid = ${uid}`;
        return renamed;
      }),

    move: (missionId, uids, { parentUid, afterUid }) =>
      lockedMission(run, missionId, async (tx) => {
        const tree = await LayerTree.read(tx, missionId);
        let after = afterUid;
        for (const uid of uids) {
          tree.move(uid, parentUid === undefined ? tree.find(uid).parentUid : parentUid, after);
          after = uid;
        }
        await tree.write();
        return uids.map((uid) => tree.find(uid));
      }),

    remove: (missionId, uids) =>
      lockedMission(run, missionId, async (tx) => {
        const tree = await LayerTree.read(tx, missionId);
        const gone = uids.flatMap((uid) => tree.remove(uid));
        await tree.write();
        return gone;
      }),

    file: (missionId, layerUid, uids, afterUid) =>
      lockedMission(run, missionId, async (tx) => {
        const tree = await LayerTree.read(tx, missionId);
        tree.find(layerUid);
        let after = afterUid;
        for (const uid of uids) {
          if (!tree.has(uid)) tree.create({ uid, name: null, type: 'ITEM' });
          tree.move(uid, layerUid, after);
          after = uid;
        }
        await tree.write();
      }),
  };
}

async function rowsOf(sql: postgres.ISql, missionId: number): Promise<MissionLayer[]> {
  return sql<MissionLayer[]>`
    SELECT uid, name, type, parent_uid AS "parentUid" FROM mission_layer WHERE mission_id = ${missionId}
    ORDER BY position, uid COLLATE "C"`;
}

/** All layers of one mission in memory, while it is locked. */
class LayerTree {
  readonly #tx: postgres.TransactionSql;
  readonly #missionId: number;
  readonly #layers: Map<string, MissionLayer>;
  readonly #children = new Map<string | null, string[]>();

  static async read(tx: postgres.TransactionSql, missionId: number): Promise<LayerTree> {
    return new LayerTree(tx, missionId, await rowsOf(tx, missionId));
  }

  private constructor(tx: postgres.TransactionSql, missionId: number, rows: readonly MissionLayer[]) {
    this.#tx = tx;
    this.#missionId = missionId;
    this.#layers = new Map(rows.map((row) => [row.uid, row]));
    for (const { uid, parentUid } of rows) this.#siblings(parentUid).push(uid);
  }

  has(uid: string): boolean {
    return this.#layers.has(uid);
  }

  find(uid: string): MissionLayer {
    const layer = this.#layers.get(uid);
    if (layer === undefined) throw new CoreFault('not found', `The mission has no layer ${uid}.`);
    return layer;
  }

  /** On top, until it is moved. */
  create({ uid, name, type }: Pick<MissionLayer, 'uid' | 'name' | 'type'>): void {
    const folders = [...this.#layers.values()].filter((each) => each.type !== 'ITEM').length;
    if (type !== 'ITEM' && folders >= MISSION_LIMITS.layers)
      throw new CoreFault('conflict', `A mission can have at most ${MISSION_LIMITS.layers} layers.`);
    this.#layers.set(uid, { uid, name, type, parentUid: null });
    this.#siblings(null).push(uid);
  }

  /** `afterUid` that is no sibling there: as the last. */
  move(uid: string, parentUid: string | null, afterUid: string | undefined): void {
    const layer = this.find(uid);
    let depth = 0;
    for (let above = parentUid; above !== null; above = this.find(above).parentUid) {
      depth += 1;
      if (above === uid) throw new CoreFault('invalid', `Invalid Request: the layer ${uid} cannot lie within itself`);
      if (this.find(above).type === 'ITEM')
        throw new CoreFault('invalid', `Invalid Request: ${above} is a content, and nothing can lie in it`);
    }
    if (depth > MISSION_LIMITS.layerDepth)
      throw new CoreFault('conflict', `Layers can be nested at most ${MISSION_LIMITS.layerDepth} deep.`);
    const before = this.#siblings(layer.parentUid);
    before.splice(before.indexOf(uid), 1);
    const siblings = this.#siblings(parentUid);
    const at = afterUid === undefined ? 0 : siblings.indexOf(afterUid) + 1;
    siblings.splice(afterUid !== undefined && at === 0 ? siblings.length : at, 0, uid);
    this.#layers.set(uid, { ...layer, parentUid });
  }

  remove(uid: string): MissionLayer[] {
    const layer = this.find(uid);
    const below = [...this.#siblings(uid)].flatMap((child) => this.remove(child));
    const siblings = this.#siblings(layer.parentUid);
    siblings.splice(siblings.indexOf(uid), 1);
    this.#layers.delete(uid);
    return [...below, layer];
  }

  async write(): Promise<void> {
    const rows = [...this.#children.values()].flatMap((uids) =>
      uids.map((uid, position) => ({ ...this.find(uid), position })),
    );
    const tx = this.#tx;
    await tx`DELETE FROM mission_layer WHERE mission_id = ${this.#missionId}`;
    await tx`
      INSERT INTO mission_layer (mission_id, uid, name, type, parent_uid, position)
      SELECT ${this.#missionId}::bigint, r.uid, r.name, r.type, r."parentUid", r.position
      FROM json_to_recordset(${JSON.stringify(rows)}::text::json)
        AS r (uid varchar, name varchar, type varchar, "parentUid" varchar, position int)`;
  }

  #siblings(parentUid: string | null): string[] {
    const known = this.#children.get(parentUid) ?? [];
    this.#children.set(parentUid, known);
    return known;
  }
}
