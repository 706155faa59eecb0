// Writes tracks as CSV, GPX and KML, a page of the core at a time, newest page first. Names are
// what devices wrote: they are escaped for XML, and harmless in a spreadsheet.

import { grouped } from '@holdfast/kit/format';
import { csvLine, escapeHtml } from '@holdfast/kit/text';
import type { CoreTrack, CoreTracks, TrackPoint, TrackQuery } from './port.ts';

export const TRACK_FORMATS = ['kml', 'gpx', 'csv'] as const;
export type TrackFormat = (typeof TRACK_FORMATS)[number];

export const TRACK_TYPES: Readonly<Record<TrackFormat, string>> = {
  kml: 'application/vnd.google-earth.kml+xml',
  gpx: 'application/gpx+xml',
  csv: 'text/csv; charset=utf-8',
};

/** Points of one file. One page of the core is in memory at a time. */
export const MAX_EXPORTED = 500_000;
const CUT = `Only the newest ${grouped(MAX_EXPORTED)} positions. Choose a shorter time.`;

interface Writer {
  head: string;
  track: (track: CoreTrack) => string;
  /** `note`: what is missing. */
  tail: (note: string | undefined) => string;
}

const XML = '<?xml version="1.0" encoding="UTF-8"?>\n';

const WRITERS: Readonly<Record<TrackFormat, Writer>> = {
  kml: {
    head: `${XML}<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"><Document><name>Tracks</name>\n`,
    track: ({ uid, callsign, points }) =>
      `<Placemark><name>${xmlText(callsign)}</name>` +
      `<ExtendedData><Data name="uid"><value>${xmlText(uid)}</value></Data></ExtendedData>` +
      `<gx:Track><altitudeMode>${points.some(hasHeight) ? 'absolute' : 'clampToGround'}</altitudeMode>` +
      points.map(([atMs]) => `<when>${iso(atMs)}</when>`).join('') +
      points.map(([, lat, lon, height]) => `<gx:coord>${lon} ${lat} ${height ?? 0}</gx:coord>`).join('') +
      '</gx:Track></Placemark>\n',
    tail: (note) => `${note === undefined ? '' : `<Folder><name>${xmlText(note)}</name></Folder>`}</Document></kml>\n`,
  },
  gpx: {
    head: `${XML}<gpx version="1.1" creator="Holdfast" xmlns="http://www.topografix.com/GPX/1/1">\n`,
    track: ({ uid, callsign, points }) =>
      `<trk><name>${xmlText(callsign)}</name><desc>${xmlText(uid)}</desc><trkseg>` +
      points
        .map(
          ([atMs, lat, lon, height]) =>
            `<trkpt lat="${lat}" lon="${lon}">${height === null ? '' : `<ele>${height}</ele>`}<time>${iso(atMs)}</time></trkpt>`,
        )
        .join('') +
      '</trkseg></trk>\n',
    tail: (note) => `${note === undefined ? '' : `<!-- ${note} -->`}</gpx>\n`,
  },
  csv: {
    head: csvLine(['time', 'callsign', 'uid', 'latitude', 'longitude', 'height_m']),
    track: ({ uid, callsign, points }) =>
      points.map(([atMs, lat, lon, height]) => csvLine([iso(atMs), callsign, uid, lat, lon, height])).join(''),
    tail: (note) => (note === undefined ? '' : csvLine([note])),
  },
};

/**
 * The file as it is read. The first piece comes after the first page of the core: what fails before
 * it can be answered as an error.
 */
export async function* writeTracks(
  coreTracks: Pick<CoreTracks, 'find'>,
  query: TrackQuery,
  format: TrackFormat,
  most = MAX_EXPORTED,
): AsyncGenerator<string> {
  const { head, track, tail } = WRITERS[format];
  let left = most;
  let isBegun = false;
  for await (const tracks of pagesOf(coreTracks, query)) {
    if (!isBegun) yield head;
    isBegun = true;
    for (const each of tracks) {
      if (left <= 0) break;
      const points = each.points.slice(-left);
      left -= points.length;
      if (points.length > 0) yield track({ ...each, points });
    }
    if (left <= 0) break;
  }
  yield tail(left <= 0 ? CUT : undefined);
}

/** Each point once. A page ends where the core cut it, in the middle of a millisecond at worst. */
async function* pagesOf(coreTracks: Pick<CoreTracks, 'find'>, query: TrackQuery): AsyncGenerator<CoreTrack[]> {
  let untilMs = query.untilMs;
  let [oldest, atOldest] = [Number.POSITIVE_INFINITY, new Set<string>()];
  for (;;) {
    const { tracks, isCut } = await coreTracks.find({ ...query, untilMs });
    const isNew = (uid: string, atMs: number): boolean => atMs < oldest || (atMs === oldest && !atOldest.has(uid));
    const fresh = tracks.map((track) => ({
      ...track,
      points: track.points.filter(([atMs]) => isNew(track.uid, atMs)),
    }));
    yield fresh;
    if (!isCut) return;
    const firsts = fresh.flatMap(({ points }) => points[0]?.[0] ?? []);
    // More than a page at one moment: what is left of it can't be told apart.
    const next = firsts.length === 0 ? oldest - 1 : firsts.reduce((one, other) => Math.min(one, other));
    const same = new Set(tracks.flatMap(({ uid, points }) => (points.some(([atMs]) => atMs === next) ? [uid] : [])));
    [oldest, atOldest] = [next, next === oldest ? new Set([...same, ...atOldest]) : same];
    untilMs = next + 1;
    if (next < query.sinceMs) return;
  }
}

function hasHeight([, , , height]: TrackPoint): boolean {
  return height !== null;
}

function iso(atMs: number): string {
  return new Date(atMs).toISOString();
}

// oxlint-disable-next-line no-control-regex -- what XML has no character for
const NO_XML = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g;

function xmlText(text: string): string {
  return escapeHtml(text.toWellFormed().replaceAll(NO_XML, ''));
}
