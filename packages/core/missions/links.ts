// Links missions: parents and children, feeds, external data, map layers.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { CoreFault, emptyAnswer, json, wrapped } from '../http/answers.ts';
import { type AdminContext, checked, invalid, readJson, readText } from '../http/route.ts';
import {
  type Attachment,
  type AttachmentKind,
  MISSION_LIMITS,
  type MissionChangeType,
  type MissionWithGroups,
} from '../model/mission.ts';
import type { AttachmentChange } from '../store/mission-links.ts';
import type { MissionKey } from '../store/missions.ts';
import type { MissionAccess, MissionApiOptions, Visit } from './access.ts';
import { audience } from './announce.ts';
import { toAttachmentView, toMapLayerView, toMissionView } from './mission-views.ts';
import { guidOf, label, longText, reportedUid, uidDemanded } from './request.ts';

const MISSION_TYPE = 'Mission';
const EXTERNAL_TYPE = 'com.bbn.marti.sync.model.ExternalMissionData';
const MAP_LAYER_TYPE = 'MapLayer';

const text = label(MISSION_LIMITS.uid);
/** Devices open it: nothing but the web. */
const webUrl = z
  .string()
  .max(2_000)
  .refine((url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol), 'must be a URL of http or https');
const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? undefined);

const ExternalData = z.object({
  uid: text.min(1),
  name: text.min(1),
  tool: text.min(1),
  urlData: webUrl,
  urlView: optional(webUrl),
  notes: optional(longText),
});

const degrees = optional(z.number().min(-180).max(180));
const zoom = optional(z.number().int().min(0).max(30));
const MapLayer = z.object({
  uid: optional(text),
  name: text.min(1),
  description: optional(longText),
  type: optional(z.enum(['MapTile', 'WMS', 'WMTS'])),
  url: webUrl,
  creatorUid: optional(text),
  minZoom: zoom,
  maxZoom: zoom,
  north: degrees,
  south: degrees,
  east: degrees,
  west: degrees,
  tileType: optional(text),
  serverParts: optional(text),
  backgroundColor: optional(text),
  tileUpdate: optional(text),
  additionalParameters: optional(text),
  coordinateSystem: optional(text),
  version: optional(text),
  layers: optional(text),
  path: optional(text),
  after: optional(text),
  opacity: optional(z.number().int().min(0).max(100)),
  defaultLayer: optional(z.boolean()),
  enabled: optional(z.boolean()),
  ignoreErrors: optional(z.boolean()),
  invertYCoordinate: optional(z.boolean()),
});

const cotTypes = z.array(text.min(1)).max(100);
const corner = z
  .string()
  .regex(/^\s*-?\d{1,3}(\.\d{1,20})?\s*,\s*-?\d{1,3}(\.\d{1,20})?\s*$/, 'must be two numbers with a comma');

export class LinkHandlers {
  readonly #options: MissionApiOptions;
  readonly #access: MissionAccess;
  readonly #links;
  readonly #hearers;

  readonly parent = async (c: AdminContext): Promise<Response> => {
    const { mission, sees } = await this.#access.visitWith('MISSION_READ', c);
    const guid = await this.#links.parentOf(mission.id, sees);
    if (guid === undefined) throw new CoreFault('not found', `The mission ${mission.name} has no parent.`);
    return wrapped(MISSION_TYPE, toMissionView((await this.#access.visit(c, { guid })).mission), this.#options.nodeId);
  };

  readonly children = async (c: AdminContext): Promise<Response> => {
    const { mission, sees } = await this.#access.visitWith('MISSION_READ', c);
    const shown = [];
    for (const guid of await this.#links.childrenOf(mission.id, sees)) {
      const visited = await this.#access.visitIfSeen(c, { guid });
      if (visited !== undefined && (visited.role !== undefined || !visited.mission.inviteOnly))
        shown.push(toMissionView(visited.mission));
    }
    return wrapped(MISSION_TYPE, shown, this.#options.nodeId);
  };

  readonly setParent = async (c: AdminContext): Promise<Response> => {
    const above = await this.#access.visitWith('MISSION_READ', c, parentKey(c));
    const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c);
    await this.#links.setParent(mission.id, above.mission.id);
    return emptyAnswer();
  };

  readonly clearParent = async (c: AdminContext): Promise<Response> => {
    const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c);
    await this.#links.setParent(mission.id, null);
    return emptyAnswer();
  };

  /** The light core has no feeds of its own: what is kept is what devices show of it. */
  readonly addFeed = async (c: AdminContext): Promise<Response> => {
    const visited = await this.#access.visitToWrite('MISSION_WRITE', c);
    const dataFeedUid = uidDemanded(c, 'dataFeedUid');
    const corners = checked(z.array(corner).max(MISSION_LIMITS.corners), c.req.queries('filterPolygon') ?? []);
    const body = {
      dataFeedUid,
      name: dataFeedUid,
      filterPolygon: corners.length === 0 ? undefined : corners.map((each) => each.replaceAll(/\s/g, '')).join(' '),
      filterCotTypesSerialized: JSON.stringify(checked(cotTypes, parsedJson(c, 'filterCotTypes'))),
      filterCallsign: reportedUid(c, 'filterCallsign') || undefined,
    };
    await this.#attach(c, visited, { kind: 'missionFeed', uid: randomUUID(), body }, 'CREATE_DATA_FEED');
    return emptyAnswer();
  };

  readonly removeFeed = (c: AdminContext) => this.#detach(c, 'missionFeed', 'DELETE_DATA_FEED');

  readonly setExternalData = async (c: AdminContext): Promise<Response> => {
    const { uid, ...body } = await readJson(c, ExternalData);
    const visited = await this.#access.visitToWrite('MISSION_WRITE', c);
    const attachment: Attachment = { kind: 'externalData', uid, body };
    await this.#attach(c, visited, attachment, 'ADD_CONTENT', body.notes);
    const data = toAttachmentView(attachment);
    return json({ version: '3', type: EXTERNAL_TYPE, data, nodeId: this.#options.nodeId }, 201);
  };

  readonly removeExternalData = (c: AdminContext) => this.#detach(c, 'externalData', 'REMOVE_CONTENT');

  readonly reportExternalChange = async (c: AdminContext): Promise<Response> => {
    const token = checked(longText, await readText(c));
    const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c);
    const change = { ...this.#change(c, 'ADD_CONTENT', reportedText(c, 'notes')), token };
    const changed = await this.#links.changed(mission.id, attachedUid(c), change);
    if (changed === undefined)
      throw new CoreFault('not found', `No external data ${attachedUid(c)} in ${mission.name}.`);
    await this.#tell(c, mission, { ...changed, body: { ...changed.body, token } }, change);
    return emptyAnswer();
  };

  readonly setMapLayer = async (c: AdminContext): Promise<Response> => {
    const { uid = randomUUID(), ...body } = await readJson(c, MapLayer);
    const visited = await this.#access.visitToWrite('MISSION_WRITE', c);
    const attachment: Attachment = { kind: 'mapLayer', uid, body: { ...body, type: body.type ?? 'MapTile' } };
    await this.#attach(c, visited, attachment, 'ADD_CONTENT');
    return wrapped(MAP_LAYER_TYPE, toMapLayerView(attachment), this.#options.nodeId);
  };

  readonly removeMapLayer = (c: AdminContext) => this.#detach(c, 'mapLayer', 'REMOVE_CONTENT');

  constructor(options: MissionApiOptions, access: MissionAccess) {
    this.#options = options;
    this.#access = access;
    this.#links = options.missions.links;
    this.#hearers = audience(options.missions.subscriptions, options.subscriptions);
  }

  #change(c: AdminContext, type: MissionChangeType, notes?: string): AttachmentChange {
    return { type, creatorUid: reportedUid(c, 'creatorUid'), notes, now: this.#options.now() };
  }

  async #attach(
    c: AdminContext,
    { mission }: Visit,
    attachment: Attachment,
    type: MissionChangeType,
    notes?: string,
  ): Promise<void> {
    const change = this.#change(c, type, notes);
    await this.#links.attach(mission.id, attachment, change);
    await this.#tell(c, mission, attachment, change);
  }

  async #detach(c: AdminContext, kind: AttachmentKind, type: MissionChangeType): Promise<Response> {
    const change = this.#change(c, type, reportedText(c, 'notes'));
    const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c);
    const gone = await this.#links.detach(mission.id, kind, attachedUid(c), change);
    if (gone === undefined) throw new CoreFault('not found', `No ${kind} ${attachedUid(c)} in ${mission.name}.`);
    await this.#tell(c, mission, gone, change);
    return emptyAnswer();
  }

  async #tell(
    c: AdminContext,
    mission: MissionWithGroups,
    attachment: Attachment,
    { type, now }: AttachmentChange,
  ): Promise<void> {
    const creatorUid = reportedUid(c, 'creatorUid');
    const change = {
      type,
      missionName: mission.name,
      missionGuid: mission.guid,
      timestamp: now,
      serverTime: now,
      creatorUid,
      contentUid: null,
      contentHash: null,
      resource: null,
      attachment,
    };
    this.#options.missions.announce.contents(mission, await this.#hearers(mission), [change], creatorUid);
  }
}

function parentKey(c: AdminContext): MissionKey {
  const guid = c.req.param('parentGuid');
  return guid === undefined
    ? { name: checked(label(MISSION_LIMITS.name), (c.req.param('parent') ?? '').trim()) }
    : { guid: guidOf(guid) };
}

function attachedUid(c: AdminContext): string {
  return checked(text.min(1), c.req.param('uid') ?? '');
}

function reportedText(c: AdminContext, name: string): string | undefined {
  const given = c.req.query(name) ?? '';
  return given === '' ? undefined : checked(longText, given);
}

function parsedJson(c: AdminContext, name: string): unknown {
  const given = c.req.query(name) ?? '';
  try {
    return given === '' ? [] : JSON.parse(given);
  } catch (cause) {
    throw invalid(`${name} must be a list in JSON: ${String(cause).slice(0, 100)}`);
  }
}
