// Reads the geospatial filter of a client (`t-x-c-f`), and says which events it hides.

import type { CotElement, CotEvent } from '../model/stream.ts';
import { numberOf } from './wire/xml-event.ts';

interface Box {
  south: number;
  west: number;
  north: number;
  /** Less than west: across the 180th meridian. */
  east: number;
}

export interface GeoFilter {
  boxes: readonly Box[];
  /** Hides other clients too. */
  hidesClients: boolean;
}

/** What stands beyond that is passed over. */
const MAX_BOXES = 32;
/** Emergencies and chat reach everybody, as in a release. */
const NEVER_HIDDEN = new Set([
  'b-a-o-tbl',
  'b-a-o-can',
  'b-a-g',
  'b-a-o-pan',
  'b-a-o-opn',
  'b-t-f',
  'b-t-f-d',
  'b-t-f-r',
  'b-t-f-p',
  'b-t-f-s',
]);

/**
 * What the client asks for; undefined: everything. `unreadable` when a box has no four numbers: the
 * filter of before stays.
 */
export function geoFilterOf(event: CotEvent): GeoFilter | 'unreadable' | undefined {
  const filter = event.detail('subscription')?.child('geospatialFilter');
  const given = (filter?.children(MAX_BOXES) ?? []).filter(({ name }) => name === 'boundingBox');
  if (filter === undefined || given.length === 0) return undefined;
  const boxes = given.map(boxOf);
  if (boxes.some((box) => Object.values(box).some(Number.isNaN))) return 'unreadable';
  return { boxes, hidesClients: filter.attribute('filterTAKClients')?.toLowerCase() === 'true' };
}

function boxOf(element: CotElement): Box {
  const number = (name: string): number => numberOf(element.attribute(name) ?? '');
  return {
    south: number('minLatitude'),
    west: number('minLongitude'),
    north: number('maxLatitude'),
    east: number('maxLongitude'),
  };
}

/** What a filter looks at; outlives the event. */
export interface Placed {
  type: string;
  lat: number;
  lon: number;
  isClient: boolean;
}

export function placed(event: CotEvent): Placed {
  const { lat, lon } = event.point;
  return { type: event.type, lat, lon, isClient: isClient(event) };
}

/** True for an event with a place outside of every box. */
export function isHidden({ boxes, hidesClients }: GeoFilter, { type, lat, lon, isClient: ofClient }: Placed): boolean {
  if (NEVER_HIDDEN.has(type) || (lat === 0 && lon === 0)) return false;
  if (!hidesClients && ofClient) return false;
  return !boxes.some((box) => isInside(box, lat, lon));
}

function isClient(event: CotEvent): boolean {
  const group = event.detail('__group');
  return group?.attribute('name') !== undefined && group.attribute('role') !== undefined;
}

function isInside({ south, west, north, east }: Box, lat: number, lon: number): boolean {
  const isBetween = east > west ? lon >= west && lon <= east : lon >= west || lon <= east;
  return isBetween && lat >= south && lat <= north;
}
