// Reads positions and tracks through the core's admin API. Tracks come as KML, which the light core
// and a release write.

import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import { limitConcurrency } from '@holdfast/kit/concurrency';
import { unescapeXml } from '@holdfast/kit/text';
import { MINUTE_MS } from '@holdfast/kit/time';
import { ALL_CLIENTS, subscriptionShape, toClient } from '../clients.ts';
import type { Core } from '../port.ts';
import { type CorePort, WITHIN_MS } from '../request.ts';
import type { CoreTrack, CoreTracks, FoundTracks, PositionedClient, TrackPoint, TrackQuery } from './port.ts';

const EXPORT = '/Marti/ExportMissionKML';
const MAX_POINTS = 50_000;
const RECENT_MS = 15 * MINUTE_MS;
/** The core serves one export to a caller at a time: others wait here. */
const WAIT_MS = 20_000;
const PLACEMARK = /<Placemark\b[^>]*>([^]*?)<\/Placemark>/g;
const NAME = /<name>([^<]*)<\/name>/;
const UID = /<Data name="uid">\s*<value>([^<]*)<\/value>/;
const WHEN = /<when>\s*([^<\s]{1,40})\s*<\/when>/g;
const COORD = /<gx:coord>\s*(\S{1,40}) (\S{1,40})(?: (\S{1,40}))?\s*<\/gx:coord>/g;

/** A release reports no position, not even null. */
const placed = subscriptionShape
  .extend({
    position: z
      .object({
        lat: z.number().min(-90).max(90),
        lon: z.number().min(-180).max(180),
        hae: z.number().nullish(),
        time: z.iso.datetime().nullish(),
      })
      .nullish(),
  })
  .transform(({ position, ...read }) => {
    const shown = position &&
      isPlace(position.lat, position.lon) && {
        lat: position.lat,
        lon: position.lon,
        height: position.hae ?? null,
        at: position.time ?? null,
      };
    const client: PositionedClient = { ...toClient(read), position: shown || null };
    return { client, isReported: position !== undefined };
  });

export class HttpCoreTracks implements CoreTracks {
  readonly #port: CorePort;
  readonly #core: Pick<Core, 'clients'>;
  readonly #now: () => Date;
  readonly #inTurn = limitConcurrency(1, {
    ms: WAIT_MS,
    late: () => new AppError('unavailable', 'Too many replays and exports at once. Remedy: try again in a minute.'),
  });

  constructor(port: CorePort, core: Pick<Core, 'clients'>, now: () => Date = () => new Date()) {
    this.#port = port;
    this.#core = core;
    this.#now = now;
  }

  async positions(): Promise<PositionedClient[]> {
    const query = { positions: 'true' };
    const found = await this.#port.within(WITHIN_MS).data(ALL_CLIENTS, z.array(placed), { query });
    if (found.every(({ isReported }) => isReported)) return found.map(({ client }) => client);
    const nowMs = this.#now().getTime();
    const [clients, { tracks }] = await Promise.all([
      this.#core.clients(),
      this.find({ sinceMs: nowMs - RECENT_MS, untilMs: nowMs }),
    ]);
    const last = new Map(tracks.map(({ uid, points }) => [uid, points.at(-1)]));
    return clients.map((client) => ({ ...client, position: positionOf(last.get(client.uid)) }));
  }

  find({ sinceMs, untilMs, group }: TrackQuery): Promise<FoundTracks> {
    return this.#inTurn(async () => {
      const query = {
        startTime: new Date(sinceMs).toISOString(),
        endTime: new Date(untilMs).toISOString(),
        format: 'kml',
        ...(group === undefined ? {} : { groups: group }),
      };
      const answer = await this.#port.within(WITHIN_MS).ask('GET', EXPORT, { query });
      if (answer.status === 404 && group !== undefined)
        throw new AppError('not_found', `The core has no group ${group.slice(0, 100)}.`);
      if (answer.status !== 200) throw this.#port.failure(`GET ${EXPORT}`, answer);
      const tracks = readTracks(answer.text);
      if (tracks === undefined) throw this.#port.wrong(`answered GET ${EXPORT} with a body that is not KML`);
      const count = tracks.reduce((sum, { points }) => sum + points.length, 0);
      return { tracks, isCut: count >= MAX_POINTS };
    });
  }
}

/** Without a fix, devices and pings report 0, 0. */
function isPlace(lat: number, lon: number): boolean {
  return Math.abs(lat) <= 90 && Math.abs(lon) <= 180 && (lat !== 0 || lon !== 0);
}

function positionOf(point: TrackPoint | undefined): PositionedClient['position'] {
  if (point === undefined) return null;
  const [atMs, lat, lon, height] = point;
  return { lat, lon, height, at: new Date(atMs).toISOString() };
}

/** The tracks of a KML document, those of one uid together; undefined for another text. */
export function readTracks(kml: string): CoreTrack[] | undefined {
  if (!/<kml\b/.test(kml.slice(0, 1_000))) return undefined;
  const byUid = new Map<string, CoreTrack>();
  for (const [, inside = ''] of kml.matchAll(PLACEMARK)) {
    const callsign = unescapeXml(NAME.exec(inside)?.[1] ?? '');
    const uid = unescapeXml(UID.exec(inside)?.[1] ?? '') || callsign;
    const points = pointsIn(inside);
    if (uid === '' || points.length === 0) continue;
    const known = byUid.get(uid);
    if (known === undefined) byUid.set(uid, { uid, callsign: callsign || uid, points });
    else known.points.push(...points);
  }
  const tracks = [...byUid.values()];
  for (const { points } of tracks) points.sort(([one], [other]) => one - other);
  return tracks;
}

function pointsIn(inside: string): TrackPoint[] {
  const times = Array.from(inside.matchAll(WHEN), ([, text = '']) => Date.parse(text));
  let at = -1;
  const points: TrackPoint[] = [];
  for (const [, longitude, latitude, height] of inside.matchAll(COORD)) {
    at += 1;
    const [atMs = Number.NaN, lat, lon] = [times[at], Number(latitude), Number(longitude)];
    if (Number.isNaN(atMs) || !isPlace(lat, lon)) continue;
    const meters = Number(height ?? Number.NaN);
    points.push([atMs, lat, lon, Number.isFinite(meters) && meters !== 0 ? meters : null]);
  }
  return points;
}
