// Serves /Marti/TracksKML and /locate/api: positions that come by HTTP instead of the stream.

import { randomUUID } from 'node:crypto';
import { limitPerCaller } from '@holdfast/kit/concurrency';
import { DAY_MS, MINUTE_MS } from '@holdfast/kit/time';
import { request, requestedNumber } from '../files/query-parameters.ts';
import { type GroupParts, sendingRows } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer, PageFault } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, demanded, invalid, readText } from '../http/route.ts';
import { type KmlPoint, pointsOfKml } from '../history/kml.ts';
import type { Archive, ArchivedEvent, ServerEvent, StreamNotices } from '../model/stream.ts';
import { escapeXml } from '../model/wire-text.ts';
import type { CotWriter } from '../store/cot-events.ts';
import type { History } from '../store/history.ts';
import { archivable } from '../archive/archivable.ts';

export interface TrackOptions extends GroupParts {
  /** Which tracks are there already. */
  history: Pick<History, 'times'>;
  /** On connections that have minutes. */
  trackWriter: CotWriter;
  archive: Pick<Archive, 'store'>;
  toPlaces: StreamNotices['toPlaces'];
  now: () => Date;
}

const MAX_BODY_BYTES = 8 * 1024 * 1024;
const MAX_POINTS = 20_000;
const BATCH = 500;
const STALE_MS = 5 * MINUTE_MS;
/** Clocks of devices differ. */
const MAX_AHEAD_MS = 5 * MINUTE_MS;
const MARKER_STALE_MS = 365 * DAY_MS;
const MAX_UID = 512;
const UNKNOWN = 9_999_999;
const MAX_AT_ONCE = { most: 4, maxPerOne: 1 };

export class TrackRoutes {
  readonly #options: TrackOptions;
  readonly #running = limitPerCaller(MAX_AT_ONCE);

  constructor(options: TrackOptions) {
    this.#options = options;
  }

  routes(): AdminRoute[] {
    return [
      { path: '/Marti/TracksKML', handlers: { POST: (c) => this.#take(c) } },
      { path: '/locate/api', handlers: { POST: (c) => this.#locate(c) } },
    ];
  }

  /** What was uploaded before is not stored again. */
  async #take(c: AdminContext): Promise<Response> {
    const uid = demanded(c, 'uid');
    if (uid.length > MAX_UID) throw invalid(`uid has at most ${MAX_UID} characters`);
    const callsign = request(c, 'callsign') ?? '';
    const type = request(c, 'cotType') ?? 'a-f-G-U-C';
    const group = { name: request(c, 'groupName'), role: request(c, 'groupRole') };
    const places = await this.#places(c);
    const leave = this.#running.enter(c.env.caller.username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many tracks at once. Try again in a moment.', { headers: { 'retry-after': '10' } });
    try {
      const points = await this.#newPoints(uid, await readText(c, MAX_BODY_BYTES));
      const detail = detailOf(callsign, group);
      const sender = c.env.caller.username;
      await this.#store(points.map((point) => eventOf(point, { uid, type, detail, places, sender })));
    } finally {
      leave();
    }
    return emptyAnswer();
  }

  async #newPoints(uid: string, text: string): Promise<KmlPoint[]> {
    const points = pointsOfKml(text);
    if (points.length === 0) throw invalid('the body must be KML with a gx:Track');
    if (points.length > MAX_POINTS) throw invalid(`a track may have ${MAX_POINTS} points at most`);
    const untilMs = this.#options.now().getTime() + MAX_AHEAD_MS;
    const good = points.filter(({ atMs }) => atMs > 0 && atMs <= untilMs);
    if (good.length === 0) return [];
    const times = good.map(({ atMs }) => atMs);
    const [first, last] = [new Date(Math.min(...times)), new Date(Math.max(...times))];
    const known = new Set((await this.#options.history.times(uid, first, last)).map((at) => at.getTime()));
    return good.filter(({ atMs }) => !known.has(atMs) && known.add(atMs));
  }

  async #store(events: readonly ArchivedEvent[]): Promise<void> {
    const writer = this.#options.trackWriter;
    for (let from = 0; from < events.length; from += BATCH) {
      const rows = events.slice(from, from + BATCH).flatMap((event) => archivable(event) ?? []);
      const ids = await writer.ids(rows.length);
      await writer.write(
        rows.map((row, at) => ({ ...row, ids: ids.slice(at, at + 1) })),
        false,
      );
    }
  }

  /** A marker for all whom the caller may send to. */
  async #locate(c: AdminContext): Promise<Response> {
    const lat = requestedNumber(c, 'latitude', -90, 90);
    const lon = requestedNumber(c, 'longitude', -180, 180);
    const name = request(c, 'name');
    if (lat === undefined || lon === undefined || name === undefined)
      throw invalid('latitude, longitude and name are needed');
    const places = await this.#places(c);
    const sender = c.env.caller.username;
    const event = markerOf({ lat, lon, callsign: `${name} (${sender})`, remarks: request(c, 'remarks', 1_000) ?? '' });
    this.#options.toPlaces(places, event);
    const now = this.#options.now();
    const stale = new Date(now.getTime() + event.staleMs).toISOString();
    this.#options.archive.store({
      ...archivedOf({ uid: event.uid, type: event.type, how: event.how, sender, places, atMs: now.getTime() }),
      stale,
      point: event.point,
      detail: `<detail>${event.detail}</detail>`,
    });
    return emptyAnswer();
  }

  /** Of the groups that are on. */
  async #places(c: AdminContext): Promise<number[]> {
    const rows = (await sendingRows(c.env.caller, this.#options)).filter(({ active }) => active);
    if (rows.length === 0) throw new CoreFault('forbidden', 'You have no group that you may send to.');
    return [...new Set(rows.map(({ group }) => group.bitpos))].toSorted((a, b) => a - b);
  }
}

function markerOf({ lat, lon, callsign, remarks }: { lat: number; lon: number; callsign: string; remarks: string }) {
  const uid = randomUUID();
  const point = { lat, lon, hae: UNKNOWN, ce: UNKNOWN, le: UNKNOWN };
  const detail =
    `<contact callsign="${escapeXml(callsign)}"/><archive/><usericon iconsetpath="COT_MAPPING_2525B/a-u/a-u-G"/>` +
    `<remarks>${escapeXml(remarks)}</remarks>`;
  return { uid, type: 'a-u-G', how: 'h-g-i-g-o', staleMs: MARKER_STALE_MS, detail, point } satisfies ServerEvent;
}

function detailOf(callsign: string, { name, role }: { name: string | undefined; role: string | undefined }): string {
  const group =
    name === undefined || role === undefined ? '' : `<__group name="${escapeXml(name)}" role="${escapeXml(role)}"/>`;
  return `<detail><contact callsign="${escapeXml(callsign)}"/>${group}</detail>`;
}

type Track = Pick<ArchivedEvent, 'uid' | 'type' | 'detail' | 'places' | 'sender'>;

function eventOf({ atMs, lat, lon, hae }: KmlPoint, { detail, ...track }: Track): ArchivedEvent {
  const stale = new Date(atMs + STALE_MS).toISOString();
  const point = { lat, lon, hae, ce: UNKNOWN, le: UNKNOWN };
  return { ...archivedOf({ ...track, how: 'm-g', atMs }), stale, point, detail };
}

function archivedOf(from: Pick<Track, 'uid' | 'type' | 'places' | 'sender'> & { how: string; atMs: number }) {
  const { atMs, ...event } = from;
  const time = new Date(atMs).toISOString();
  const none = { access: undefined, qos: undefined, opex: undefined, caveat: undefined, releaseableTo: undefined };
  return { ...event, ...none, time, start: time, receivedAtMs: atMs };
}
