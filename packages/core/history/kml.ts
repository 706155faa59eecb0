// Writes tracks as KML, and reads the points of tracks that devices upload.

import { strToU8, zipSync } from 'fflate';
import { escapeXml, readCotTime, unescapeXml } from '../model/wire-text.ts';
import type { TrackPoint } from '../store/history.ts';

export interface KmlOptions {
  name: string;
  /** A pause of more than that begins another track; undefined: each uid has one. */
  gapMs: number | undefined;
  /** What is missing, in words. */
  note: string | undefined;
}

/** `points` by uid and then by time. Each track is a placemark that ATAK imports as a track. */
export function kmlDocument(points: readonly TrackPoint[], { name, gapMs, note }: KmlOptions): string {
  const tracks = splitTracks(points, gapMs).map(placemark);
  const description = note === undefined ? '' : `<description>${escapeXml(note)}</description>`;
  return (
    '<?xml version="1.0" encoding="UTF-8"?>\n<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">' +
    `<Document><name>${escapeXml(name)}</name>${description}${tracks.join('')}</Document></kml>`
  );
}

export function kmz(kml: string): Uint8Array<ArrayBuffer> {
  return zipSync({ 'doc.kml': strToU8(kml) });
}

function splitTracks(points: readonly TrackPoint[], gapMs = Number.POSITIVE_INFINITY): TrackPoint[][] {
  const tracks: TrackPoint[][] = [];
  let last: TrackPoint | undefined;
  for (const point of points) {
    const goesOn = last?.uid === point.uid && point.at.getTime() - last.at.getTime() <= gapMs;
    if (goesOn) tracks.at(-1)?.push(point);
    else tracks.push([point]);
    last = point;
  }
  return tracks;
}

function placemark(points: readonly TrackPoint[]): string {
  const last = points.at(-1);
  const callsign = unescapeXml(points.findLast((point) => point.callsign !== null)?.callsign ?? last?.uid ?? '');
  const whens = points.map(({ at }) => `<when>${at.toISOString()}</when>`);
  const coords = points.map(({ lon, lat, hae }) => `<gx:coord>${lon} ${lat} ${hae ?? 0}</gx:coord>`);
  const uid = `<Data name="uid"><value>${escapeXml(last?.uid ?? '')}</value></Data>`;
  return (
    `<Placemark><name>${escapeXml(callsign)}</name><ExtendedData>${uid}</ExtendedData>` +
    `<gx:Track><altitudeMode>absolute</altitudeMode>${whens.join('')}${coords.join('')}</gx:Track></Placemark>`
  );
}

export interface KmlPoint {
  atMs: number;
  lat: number;
  lon: number;
  hae: number;
}

const TRACK = /<(?:\w+:)?Track\b[^>]*>([^]*?)<\/(?:\w+:)?Track>/g;
const WHEN = /<when>\s*([^<]{1,40}?)\s*<\/when>/g;
const COORD = /<(?:\w+:)?coord>\s*([^<]{1,120}?)\s*<\/(?:\w+:)?coord>/g;

/** Points of every track in it, each with a time and a place; others are left out. */
export function pointsOfKml(text: string): KmlPoint[] {
  return [...text.matchAll(TRACK)].flatMap(([, inside = '']) => {
    const times = [...inside.matchAll(WHEN)].map(([, when]) => readCotTime(when));
    const coords = [...inside.matchAll(COORD)].map(([, coord = '']) => coord.split(/[\s,]+/).map(Number));
    return times.flatMap((atMs, at) => {
      const [lon = Number.NaN, lat = Number.NaN, hae = 0] = coords[at] ?? [];
      const isPlace = Math.abs(lat) <= 90 && Math.abs(lon) <= 180;
      return atMs === undefined || !isPlace ? [] : [{ atMs, lat, lon, hae: Number.isFinite(hae) ? hae : 0 }];
    });
  });
}
