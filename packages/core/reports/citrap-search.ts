// Reads which reports a search of /Marti/api/citrap asks for.

import { request, requestedDate } from '../files/query-parameters.ts';
import { type AdminContext, invalid } from '../http/route.ts';
import type { ReportFacts } from '../store/reports.ts';

const MAX_TEXT = 2_000;

/**
 * Keywords, types and callsigns with commas between; times; a box. Throws 400 for what can't be
 * read.
 */
export function reportFilter(c: AdminContext): (facts: ReportFacts) => boolean {
  const list = (name: string): string[] | undefined => request(c, name, MAX_TEXT)?.split(',');
  const [keywords, types, callsigns] = ['keywords', 'type', 'callsign'].map(list);
  const box = boxOf(request(c, 'bbox'));
  const [since, until] = ['startTime', 'endTime'].map((name) => requestedDate(c, name)?.getTime());
  return (facts) => {
    const atMs = Date.parse(facts.dateTime ?? '');
    const texts = Object.values(facts).map((text) => String(text ?? '').toLowerCase());
    return (
      (keywords === undefined || keywords.some((word) => texts.some((text) => text.includes(word.toLowerCase())))) &&
      (types === undefined || types.includes(facts.type ?? '')) &&
      (callsigns === undefined || callsigns.includes(facts.userCallsign ?? '')) &&
      (since === undefined || atMs >= since) &&
      (until === undefined || atMs <= until) &&
      (box === undefined || touches(box, facts.location ?? ''))
    );
  };
}

type Box = [left: number, bottom: number, right: number, top: number];

function boxOf(text: string | undefined): Box | undefined {
  if (text === undefined) return undefined;
  const sides = text.split(',').map((side) => (side.trim() === '' ? Number.NaN : Number(side)));
  if (sides.length === 4 && sides.every(Number.isFinite)) return sides as Box;
  throw invalid('bbox must be left,bottom,right,top in degrees');
}

const PLACE = /(-?\d{1,3}(?:\.\d+)?)\s+(-?\d{1,2}(?:\.\d+)?)/g;

/**
 * By the box around a place in WKT. A box over the date line has its right side left of its left
 * one.
 */
function touches([left, bottom, right, top]: Box, location: string): boolean {
  const places = [...location.matchAll(PLACE)].map(([, lon, lat]) => ({ lon: Number(lon), lat: Number(lat) }));
  if (places.length === 0) return false;
  const [lons, lats] = [places.map(({ lon }) => lon), places.map(({ lat }) => lat)];
  const [west, east] = [Math.min(...lons), Math.max(...lons)];
  const isBeside = left <= right ? east < left || west > right : east < left && west > right;
  return !isBeside && Math.max(...lats) >= bottom && Math.min(...lats) <= top;
}
