// Adds and removes mission contents, and reads changes and the newest events of its uids.

import { CoreFault, wrapped } from '../http/answers.ts';
import { type AdminContext, flag, invalid } from '../http/route.ts';
import {
  MISSION_LIMITS,
  type MissionChangeType,
  type MissionContents,
  type MissionFile,
  type MissionUid,
  type MissionWithGroups,
} from '../model/mission.ts';
import { eventXml, type StoredEvent, XML_HEAD } from '../model/stored-event.ts';
import type { ContentChange } from '../store/mission-contents.ts';
import type { MissionEvents } from '../store/mission-events.ts';
import type { MissionAccess, MissionApiOptions, Visit } from './access.ts';
import { audience } from './announce.ts';
import { changeWindow, contentsRequest, reportedUid } from './request.ts';
import { toChangeView, toMissionView } from './mission-views.ts';

/** Read at once: one event may have megabytes. */
const BATCH = { events: 200, bytes: 2_000_000 };

/** `<events>` with every event of `wanted`. */
export function eventsDocument(
  events: Pick<MissionEvents, 'read'>,
  wanted: readonly { id: string; bytes: number }[],
): Response {
  return batchedDocument(events, wanted, {
    head: `${XML_HEAD}<events>`,
    each: (event) => `${eventXml(event)}\n`,
    tail: '</events>',
    type: 'application/xml',
  });
}

/**
 * Stored events as one document, written as it is sent: it may be larger than what should be in
 * memory. Those that are gone meanwhile are left out.
 */
export function batchedDocument(
  events: Pick<MissionEvents, 'read'>,
  wanted: readonly { id: string; bytes: number }[],
  { head, each, tail, type }: { head: string; each: (event: StoredEvent) => string; tail: string; type: string },
): Response {
  const encoder = new TextEncoder();
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(head)),
    async pull(controller) {
      const ids = nextBatch(wanted, at);
      at += ids.length;
      controller.enqueue(encoder.encode((await events.read(ids)).map(each).join('')));
      if (at < wanted.length) return;
      controller.enqueue(encoder.encode(tail));
      controller.close();
    },
  });
  return new Response(body, { headers: { 'content-type': type } });
}

/** Ids of the next few, of a size that memory can hold. */
export function nextBatch(wanted: readonly { id: string; bytes: number }[], from: number): string[] {
  const ids: string[] = [];
  let bytes = 0;
  for (const { id, bytes: more } of wanted.slice(from, from + BATCH.events)) {
    if (ids.length > 0 && bytes + more > BATCH.bytes) break;
    ids.push(id);
    bytes += more;
  }
  return ids;
}

interface Report {
  mission: MissionWithGroups;
  type: MissionChangeType;
  change: ContentChange;
  author: string;
  /** Where what is known of the contents is found. */
  known: { uids: readonly MissionUid[]; files: readonly MissionFile[] };
}

export class ContentHandlers {
  readonly #options: MissionApiOptions;
  readonly #access: MissionAccess;
  readonly #reads;
  readonly #writes;
  readonly #subscriptions;
  readonly #events;
  readonly #announce;
  readonly #hearers;

  readonly add = async (c: AdminContext): Promise<Response> => {
    const request = await contentsRequest(c);
    const author = reportedUid(c, 'creatorUid');
    const { mission, sees } = await this.#access.visitToWrite('MISSION_WRITE', c);
    const { filed, ...plain } = request;
    const all = { uids: [...plain.uids], hashes: [...plain.hashes] };
    for (const { uids, hashes } of filed) {
      all.uids.push(...uids);
      all.hashes.push(...hashes);
    }
    if (filed.length > 0) await this.#requireLayers(mission, new Set(filed.map(({ layerUid }) => layerUid)));
    await this.takeIn({ mission, sees }, all, author);
    for (const { layerUid, uids, hashes, afterUid } of filed)
      await this.#options.missions.layers.file(mission.id, layerUid, [...uids, ...hashes], afterUid);
    const contents = await this.#reads.contents([mission.id], MISSION_LIMITS.contents, sees);
    return wrapped('Mission', [toMissionView(mission, { contents })], this.#options.nodeId);
  };

  readonly remove = async (c: AdminContext): Promise<Response> => {
    const uid = reportedUid(c, 'uid');
    const hash = reportedUid(c, 'hash').toLowerCase();
    if ((uid === '') === (hash === '')) throw invalid('either hash or uid must say what goes');
    const { mission, sees } = await this.#access.visitToWrite('MISSION_WRITE', c);
    await this.takeOut(c, { mission, sees }, { uids: uid === '' ? [] : [uid], hashes: hash === '' ? [] : [hash] });
    const contents = await this.#reads.contents([mission.id], MISSION_LIMITS.contents, sees);
    return wrapped('Mission', [toMissionView(mission, { contents })], this.#options.nodeId);
  };

  readonly changes = async (c: AdminContext): Promise<Response> => {
    const { mission, sees } = await this.#access.visitWith('MISSION_READ', c);
    const isFull = (c.req.query('squashed') ?? '') !== '' && !flag(c, 'squashed');
    const found = await this.#reads.changes(mission, changeWindow(c, this.#options.now(), !isFull), sees);
    const isCut = found.length > MISSION_LIMITS.changes;
    const messages = isCut
      ? [`Only the newest ${MISSION_LIMITS.changes} changes are shown: say start and end.`]
      : undefined;
    return wrapped(
      'MissionChange',
      found.slice(0, MISSION_LIMITS.changes).map(toChangeView),
      this.#options.nodeId,
      messages,
    );
  };

  readonly events = async (c: AdminContext): Promise<Response> => {
    const { mission, sees } = await this.#access.visitWith('MISSION_READ', c);
    return eventsDocument(this.#events, await this.#events.newest(mission.id, sees));
  };

  constructor(options: MissionApiOptions, access: MissionAccess) {
    this.#options = options;
    this.#access = access;
    const { reads, writes, subscriptions, events, announce } = options.missions;
    this.#reads = reads;
    this.#writes = writes;
    this.#subscriptions = subscriptions;
    this.#events = events;
    this.#announce = announce;
    this.#hearers = audience(this.#subscriptions, options.subscriptions);
  }

  async #requireLayers({ id, name }: MissionWithGroups, wanted: ReadonlySet<string>): Promise<void> {
    const folders = (await this.#options.missions.layers.of(id)).filter(({ type }) => type !== 'ITEM');
    const known = new Set(folders.map(({ uid }) => uid));
    const missing = [...wanted].find((uid) => !known.has(uid));
    if (missing !== undefined) throw new CoreFault('not found', `The mission ${name} has no layer ${missing}.`);
  }

  /** Adds contents, and tells the subscribed devices of those that are new. */
  async takeIn(
    { mission, sees }: Pick<Visit, 'mission' | 'sees'>,
    content: ContentChange,
    author: string,
  ): Promise<ContentChange> {
    const addition = { ...content, creatorUid: author, sees, now: this.#options.now() };
    const change = await this.#writes.addContent(mission.id, addition);
    if (isSomething(change))
      await this.#tell({ mission, type: 'ADD_CONTENT', change, author, known: await this.#seenByAll(mission) });
    return change;
  }

  /** Takes contents away, and tells the subscribed devices. What is not there is left out. */
  async takeOut(c: AdminContext, { mission }: Pick<Visit, 'mission' | 'sees'>, content: ContentChange): Promise<void> {
    const author = reportedUid(c, 'creatorUid');
    const known = await this.#seenByAll(mission);
    const change = await this.#writes.removeContent(mission.id, content, author, this.#options.now());
    if (isSomething(change)) await this.#tell({ mission, type: 'REMOVE_CONTENT', change, author, known });
  }

  /** Tells the subscribed devices. */
  async #tell({ mission, type, change, author, known }: Report): Promise<void> {
    const at = this.#options.now();
    const common = {
      type,
      missionName: mission.name,
      missionGuid: mission.guid,
      timestamp: at,
      serverTime: at,
      creatorUid: author,
    };
    const details = new Map(known.uids.map((each) => [each.uid, each.details ?? null]));
    const resources = new Map(known.files.map(({ resource }) => [resource.hash, resource]));
    const changes = [
      ...change.uids.map((uid) => {
        return { ...common, contentUid: uid, contentHash: null, resource: null, details: details.get(uid) ?? null };
      }),
      ...change.hashes.map((hash) => {
        return { ...common, contentUid: null, contentHash: hash, resource: resources.get(hash) ?? null };
      }),
    ];
    this.#announce.contents(mission, await this.#hearers(mission), changes, author);
  }

  /**
   * What everybody who sees the mission may know of its contents: the notice goes to all of them.
   */
  async #seenByAll({ id, groups }: MissionWithGroups): Promise<MissionContents> {
    return this.#reads.contents(
      [id],
      MISSION_LIMITS.contents,
      groups.map(({ place }) => place),
    );
  }
}

function isSomething({ uids, hashes }: ContentChange): boolean {
  return uids.length + hashes.length > 0;
}
