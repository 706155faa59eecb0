// Writes the events of an exercise, and finds them in what the server sends.

export type Kind = 'position' | 'chat' | 'mark';

/** Meters a second, and how far from the center they move. */
const SPEED = 1.5;
const RADIUS_METERS = 1_500;
const METERS_PER_DEGREE = 111_320;
const STALE_MS = 120_000;
const NUMBER = /<exercise n="(\d+)" at="(\d+)"\/>/g;
/** Longer than what NUMBER finds. */
const MAX_FOUND = 80;

export interface Center {
  lat: number;
  lon: number;
}

export const uidOf = (client: number): string => `EXERCISE-${String(client + 1).padStart(5, '0')}`;
export const markOf = (client: number): string => `${uidOf(client)}-MARK`;

/** Walks in a circle of its own around the center. */
export function placeOf(client: number, atMs: number, { lat, lon }: Center): Center {
  const radius = (RADIUS_METERS * (1 + (client % 50))) / 50;
  const angle = client * 2.4 + (SPEED * (atMs / 1000)) / radius;
  const north = (radius * Math.cos(angle)) / METERS_PER_DEGREE;
  const east = (radius * Math.sin(angle)) / (METERS_PER_DEGREE * Math.cos((lat * Math.PI) / 180));
  return { lat: lat + north, lon: lon + east };
}

/** One event; `number` is its own in the exercise. */
export function eventOf(kind: Kind, client: number, number: number, atMs: number, center: Center): string {
  const { lat, lon } = placeOf(client, atMs, center);
  const uid = uidOf(client);
  const tag = `<exercise n="${number}" at="${atMs}"/>`;
  const sender = `<contact callsign="${uid}" endpoint="*:-1:stcp"/><__group name="Cyan" role="Team Member"/>`;
  if (kind === 'position') return event(uid, 'a-f-G-U-C', 'm-g', lat, lon, atMs, `${sender}${tag}`);
  if (kind === 'mark') {
    const detail = `<contact callsign="Mark of ${uid}"/><link uid="${uid}" type="a-f-G-U-C" relation="p-p"/>${tag}`;
    return event(markOf(client), 'a-u-G', 'h-g-i-g-o', lat, lon, atMs, detail);
  }
  const chat = `<__chat chatroom="All Chat Rooms" id="All Chat Rooms" senderCallsign="${uid}"><chatgrp uid0="${uid}" uid1="All Chat Rooms" id="All Chat Rooms"/></__chat>`;
  const id = `GeoChat.${uid}.All Chat Rooms.${number}`;
  return event(id, 'b-t-f', 'h-g-i-g-o', lat, lon, atMs, `${chat}<remarks>Exercise, message ${number}</remarks>${tag}`);
}

/** Takes the mark of a client off every map. */
export function removalOf(client: number, atMs: number): string {
  const detail = `<link uid="${markOf(client)}" relation="none" type="none"/><__forcedelete/>`;
  return event(`${markOf(client)}-REMOVAL`, 't-x-d-d', 'h-g-i-g-o', 0, 0, atMs, detail);
}

function event(uid: string, type: string, how: string, lat: number, lon: number, atMs: number, detail: string): string {
  const [time, stale] = [new Date(atMs).toISOString(), new Date(atMs + STALE_MS).toISOString()];
  const point = `<point lat="${lat.toFixed(6)}" lon="${lon.toFixed(6)}" hae="9999999" ce="10" le="9999999"/>`;
  return `<event version="2.0" uid="${uid}" type="${type}" how="${how}" time="${time}" start="${time}" stale="${stale}">${point}<detail>${detail}</detail></event>`;
}

/** Calls `found` with number and time of each event; chunks may cut them anywhere. */
export function eventReader(found: (number: number, atMs: number) => void): (chunk: Buffer) => void {
  let rest = '';
  return (chunk) => {
    const text = rest + chunk.toString('latin1');
    let end = 0;
    for (const match of text.matchAll(NUMBER)) {
      found(Number(match[1]), Number(match[2]));
      end = match.index + match[0].length;
    }
    rest = text.slice(Math.max(end, text.length - MAX_FOUND));
  };
}
