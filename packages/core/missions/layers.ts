// Keeps the layers of missions: folders, in their order, with the contents that are filed in them.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { CoreFault, emptyAnswer, wrapped } from '../http/answers.ts';
import { type AdminContext, checked, demanded, invalid } from '../http/route.ts';
import {
  LAYER_TYPES,
  MISSION_LIMITS,
  type MissionFile,
  type MissionLayer,
  type MissionUid,
  type MissionWithGroups,
} from '../model/mission.ts';
import type { MissionAccess, MissionApiOptions, Visit } from './access.ts';
import { audience } from './announce.ts';
import type { ContentHandlers } from './contents.ts';
import { toFileAddView, toMapLayerView, toUidAddView } from './mission-views.ts';
import { label, reportedUid, uidDemanded } from './request.ts';

const TYPE = 'MissionLayer';
const uids = z.array(label(MISSION_LIMITS.uid).min(1)).min(1).max(MISSION_LIMITS.added);

export class LayerHandlers {
  readonly #options: MissionApiOptions;
  readonly #access: MissionAccess;
  readonly #layers;
  readonly #announce;
  readonly #hearers;
  readonly #contents: Pick<ContentHandlers, 'takeOut'>;

  readonly list = async (c: AdminContext): Promise<Response> => {
    const views = await this.#views(await this.#access.visitWith('MISSION_READ', c));
    return wrapped(TYPE, views.top, this.#options.nodeId);
  };

  readonly read = async (c: AdminContext): Promise<Response> => {
    const uid = layerUid(c);
    const view = (await this.#views(await this.#access.visitWith('MISSION_READ', c))).byUid.get(uid);
    if (view === undefined) throw new CoreFault('not found', `The mission has no layer ${uid}.`);
    return wrapped(TYPE, view, this.#options.nodeId);
  };

  readonly add = async (c: AdminContext): Promise<Response> => {
    const name = nameDemanded(c);
    const type = z.enum(LAYER_TYPES).safeParse(c.req.query('type'));
    if (!type.success || type.data === 'ITEM')
      throw invalid(`type must be one of ${LAYER_TYPES.filter((each) => each !== 'ITEM').join(', ')}`);
    const uid = reportedUid(c, 'uid') || randomUUID();
    const place = { parentUid: reportedUid(c, 'parentUid') || null, afterUid: afterUid(c) };
    const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c);
    const layer = await this.#layers.add(mission.id, { uid, name, type: type.data }, place);
    await this.#tell(c, mission, [layer]);
    return wrapped(TYPE, toPlainView(layer), this.#options.nodeId);
  };

  readonly rename = async (c: AdminContext): Promise<Response> => {
    const name = nameDemanded(c);
    const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c);
    await this.#tell(c, mission, [await this.#layers.rename(mission.id, layerUid(c), name)]);
    return emptyAnswer();
  };

  readonly setPosition = async (c: AdminContext): Promise<Response> => {
    const place = { afterUid: afterUid(c) };
    const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c);
    await this.#tell(c, mission, await this.#layers.move(mission.id, [layerUid(c)], place));
    return emptyAnswer();
  };

  readonly setParent = async (c: AdminContext): Promise<Response> => {
    const moved = checked(uids, listOf(c, 'layerUid'));
    const place = { parentUid: reportedUid(c, 'parentUid') || null, afterUid: afterUid(c) };
    const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c);
    await this.#tell(c, mission, await this.#layers.move(mission.id, moved, place));
    return emptyAnswer();
  };

  /** With what is filed in them: it leaves the mission, as a release has it. */
  readonly remove = async (c: AdminContext): Promise<Response> => {
    const meant = checked(uids, listOf(c, 'uid'));
    const visited = await this.#access.visitToWrite('MISSION_WRITE', c);
    const { mission } = visited;
    const gone = await this.#layers.remove(mission.id, meant);
    const items = gone.filter(({ type }) => type === 'ITEM').map(({ uid }) => uid);
    if (items.length > 0) await this.#contents.takeOut(c, visited, { uids: items, hashes: items });
    await this.#tell(
      c,
      mission,
      gone.filter(({ type }) => type !== 'ITEM'),
    );
    return emptyAnswer();
  };

  constructor(options: MissionApiOptions, access: MissionAccess, contents: Pick<ContentHandlers, 'takeOut'>) {
    this.#options = options;
    this.#access = access;
    const { layers, announce, subscriptions } = options.missions;
    this.#layers = layers;
    this.#announce = announce;
    this.#hearers = audience(subscriptions, options.subscriptions);
    this.#contents = contents;
  }

  async #tell(c: AdminContext, mission: MissionWithGroups, layers: readonly MissionLayer[]): Promise<void> {
    this.#announce.layers(mission, await this.#hearers(mission), layers, reportedUid(c, 'creatorUid'));
  }

  async #views({ mission, sees }: Visit): Promise<{ top: LayerView[]; byUid: Map<string, LayerView> }> {
    const { reads, links } = this.#options.missions;
    const rows = await this.#layers.of(mission.id);
    const contents = await reads.contents([mission.id], MISSION_LIMITS.contents, sees);
    const attached = await links.attachments([mission.id]);
    const known: Filed = {
      mission,
      uids: new Map(contents.uids.map((each) => [each.uid, each])),
      files: new Map(contents.files.map((each) => [each.resource.hash, each])),
      mapLayers: new Map(
        attached.filter(({ kind }) => kind === 'mapLayer').map((each) => [each.uid, toMapLayerView(each)]),
      ),
    };
    const byUid = new Map(rows.map((row): [string, LayerView] => [row.uid, toPlainView(row)]));
    const top: LayerView[] = [];
    for (const row of rows) {
      const view = byUid.get(row.uid);
      const parent = row.parentUid === null ? undefined : byUid.get(row.parentUid);
      if (view === undefined) continue;
      if (parent === undefined) top.push(view);
      else if (row.type === 'ITEM') file(row.uid, parent, known);
      else (parent.mission_layers ??= []).push(view);
    }
    return { top, byUid };
  }
}

interface LayerView {
  uid: string;
  name: string | undefined;
  type: string;
  parentUid: string | undefined;
  mission_layers?: LayerView[];
  uids?: object[];
  contents?: object[];
  maplayers?: object[];
}

interface Filed {
  mission: MissionWithGroups;
  uids: ReadonlyMap<string, MissionUid>;
  files: ReadonlyMap<string, MissionFile>;
  mapLayers: ReadonlyMap<string, object>;
}

/** What is no longer in the mission is not shown. */
function file(uid: string, parent: LayerView, { mission, uids: events, files, mapLayers }: Filed): void {
  const event = events.get(uid);
  const resource = files.get(uid);
  const mapLayer = mapLayers.get(uid);
  if (event !== undefined) (parent.uids ??= []).push(toUidAddView(event, mission));
  else if (resource !== undefined) (parent.contents ??= []).push(toFileAddView(resource, mission));
  else if (mapLayer !== undefined) (parent.maplayers ??= []).push({ data: mapLayer });
}

function toPlainView({ uid, name, type, parentUid }: MissionLayer): LayerView {
  return { uid, name: name ?? undefined, type, parentUid: parentUid ?? undefined };
}

function layerUid(c: AdminContext): string {
  const uid = c.req.param('layer') ?? '';
  if (label(MISSION_LIMITS.uid).min(1).safeParse(uid).success) return uid;
  throw invalid(`the uid of a layer must have 1 to ${MISSION_LIMITS.uid} printable characters`);
}

/** Undefined: before all others. */
function afterUid(c: AdminContext): string | undefined {
  return reportedUid(c, 'afterUid') || undefined;
}

function nameDemanded(c: AdminContext): string {
  demanded(c, 'name');
  return uidDemanded(c, 'name');
}

/** `a,b` once, or one each. */
function listOf(c: AdminContext, name: string): string[] {
  return [...new Set((c.req.queries(name) ?? []).flatMap((each) => each.split(',')).filter((each) => each !== ''))];
}
