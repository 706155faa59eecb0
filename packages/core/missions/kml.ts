// Writes the newest events of a mission as KML: a place mark each, a line where the event draws
// one.

import { contentDisposition } from '../files/query-parameters.ts';
import { type AdminContext, flag } from '../http/route.ts';
import { escapeXml, unescapeXml } from '../model/wire-text.ts';
import type { StoredEvent } from '../model/stored-event.ts';
import type { MissionAccess, MissionApiOptions } from './access.ts';
import { batchedDocument } from './contents.ts';

const HEAD =
  '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<kml xmlns="http://www.opengis.net/kml/2.2"><Document>';
/** Of an event: links that are looked at. */
const MAX_CORNERS = 2_000;
/** Of a detail: what stands behind is not looked at. */
const MAX_CHARACTERS = 400_000;

export function kmlHandler(options: MissionApiOptions, access: MissionAccess) {
  const { events } = options.missions;

  return async function readKml(c: AdminContext): Promise<Response> {
    const { mission, sees } = await access.visitWith('MISSION_READ', c);
    const document = batchedDocument(events, await events.newest(mission.id, sees), {
      head: `${HEAD}<name>${escapeXml(mission.name)}</name>`,
      each: placemark,
      tail: '</Document></kml>',
      type: 'application/vnd.google-earth.kml+xml',
    });
    if (flag(c, 'download')) document.headers.set('content-disposition', contentDisposition(`${mission.name}.kml`));
    return document;
  };
}

/** Empty for an event without a place. */
export function placemark({ uid, type, time, lat, lon, hae, detail }: StoredEvent): string {
  if (lat === null || lon === null) return '';
  const text = (detail ?? '').slice(0, MAX_CHARACTERS);
  const name = attributeOf(text, 'contact', 'callsign') ?? uid;
  const described = `<name>${escapeXml(name)}</name><description>${escapeXml(type ?? '')}</description>`;
  const when = time === null ? '' : `<TimeStamp><when>${time.toISOString()}</when></TimeStamp>`;
  const corners = cornersOf(text);
  const point = `<Point><coordinates>${lon},${lat},${height(hae)}</coordinates></Point>`;
  const line = `<LineString><tessellate>1</tessellate><coordinates>${corners.join(' ')}</coordinates></LineString>`;
  const geometry = corners.length < 2 ? point : `<MultiGeometry>${point}${line}</MultiGeometry>`;
  return `<Placemark id="${escapeXml(uid)}">${described}${when}${geometry}</Placemark>\n`;
}

/** 9999999 is what devices write for a height that they do not know. */
function height(hae: number | null): number {
  return hae === null || Math.abs(hae) >= 9_999_999 ? 0 : hae;
}

function attributeOf(detail: string, element: string, name: string): string | undefined {
  const [, double, single] =
    new RegExp(`<${element}\\s[^>]*?\\b${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(detail) ?? [];
  const written = double ?? single;
  return written === undefined || written === '' ? undefined : unescapeXml(written);
}

/** `lon,lat` of the links of a drawing or a route, in their order. */
function cornersOf(detail: string): string[] {
  const corners: string[] = [];
  for (const [, lat, lon] of detail.matchAll(
    /<link\s[^>]*?\bpoint\s*=\s*["'](-?\d{1,3}(?:\.\d{1,20})?),(-?\d{1,3}(?:\.\d{1,20})?)[,"']/g,
  )) {
    if (corners.length >= MAX_CORNERS) break;
    corners.push(`${lon},${lat}`);
  }
  return corners;
}
