// Adds and removes mission contents, and reads changes and the newest events of its uids.

import { wrapped } from '../http/answers.ts';
import { type AdminContext, flag, invalid } from '../http/route.ts';
import {
  MISSION_LIMITS,
  type MissionChangeType,
  type MissionContents,
  type MissionFile,
  type MissionUid,
  type MissionWithGroups,
} from '../model/mission.ts';
import { escapeXml } from '../model/wire-text.ts';
import type { ContentChange } from '../store/mission-contents.ts';
import type { MissionEvents, StoredEvent } from '../store/mission-events.ts';
import type { MissionAccess, MissionApiOptions } from './access.ts';
import { audience } from './announce.ts';
import { changeWindow, contentsRequest, reportedUid } from './request.ts';
import { toChangeView, toMissionView } from './mission-views.ts';

/** Read at once: one event may have megabytes. */
const BATCH = { events: 200, bytes: 2_000_000 };

/**
 * Stored events as one XML document, written as it is sent: it may be larger than what should be in
 * memory. `<events>` with every event of `wanted`; those that are gone meanwhile are left out.
 */
export function eventsDocument(
  events: Pick<MissionEvents, 'read'>,
  wanted: readonly { id: string; bytes: number }[],
): Response {
  const encoder = new TextEncoder();
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) =>
      controller.enqueue(encoder.encode("<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n<events>")),
    async pull(controller) {
      const ids = nextBatch(wanted, at);
      at += ids.length;
      const found = await events.read(ids);
      controller.enqueue(encoder.encode(found.map((event) => `${eventXml(event)}\n`).join('')));
      if (at < wanted.length) return;
      controller.enqueue(encoder.encode('</events>'));
      controller.close();
    },
  });
  return new Response(body, { headers: { 'content-type': 'application/xml' } });
}

function nextBatch(wanted: readonly { id: string; bytes: number }[], from: number): string[] {
  const ids: string[] = [];
  let bytes = 0;
  for (const { id, bytes: more } of wanted.slice(from, from + BATCH.events)) {
    if (ids.length > 0 && bytes + more > BATCH.bytes) break;
    ids.push(id);
    bytes += more;
  }
  return ids;
}

/** `<event …><point …/><detail>…</detail></event>` */
export function eventXml(event: StoredEvent): string {
  const date = (value: Date | null): string => (value ?? new Date(0)).toISOString();
  const attributes: [string, string | null][] = [
    ['version', '2.0'],
    ['uid', event.uid],
    ['type', event.type ?? ''],
    ['time', date(event.time)],
    ['start', date(event.start)],
    ['stale', date(event.stale)],
    ['how', event.how ?? ''],
    ['access', event.access],
    ['qos', event.qos],
    ['opex', event.opex],
    ['caveat', event.caveat],
    ['releasableTo', event.releaseableTo],
  ];
  const written = attributes.flatMap(([name, value]) => (value === null ? [] : ` ${name}="${escapeXml(value)}"`));
  const point = {
    lat: event.lat ?? 0,
    lon: event.lon ?? 0,
    hae: event.hae ?? 0,
    ce: event.ce ?? 9_999_999,
    le: event.le ?? 9_999_999,
  };
  const where = Object.entries(point).map(([name, value]) => ` ${name}="${value}"`);
  return `<event${written.join('')}><point${where.join('')}/>${event.detail ?? '<detail/>'}</event>`;
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
    const change = await this.#writes.addContent(mission.id, {
      ...request,
      creatorUid: author,
      sees,
      now: this.#options.now(),
    });
    if (isSomething(change))
      await this.#tell({ mission, type: 'ADD_CONTENT', change, author, known: await this.#seenByAll(mission) });
    const contents = await this.#reads.contents([mission.id], MISSION_LIMITS.contents, sees);
    return wrapped('Mission', [toMissionView(mission, { contents })], this.#options.nodeId);
  };

  readonly remove = async (c: AdminContext): Promise<Response> => {
    const uid = reportedUid(c, 'uid');
    const hash = reportedUid(c, 'hash').toLowerCase();
    if ((uid === '') === (hash === '')) throw invalid('either hash or uid must say what goes');
    const author = reportedUid(c, 'creatorUid');
    const { mission, sees } = await this.#access.visitToWrite('MISSION_WRITE', c);
    const known = await this.#seenByAll(mission);
    const change = await this.#writes.removeContent(
      mission.id,
      uid === '' ? { hash } : { uid },
      author,
      this.#options.now(),
    );
    if (isSomething(change)) await this.#tell({ mission, type: 'REMOVE_CONTENT', change, author, known });
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
