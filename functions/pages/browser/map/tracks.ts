// Loads stored tracks a part at a time, and finds where each device was at a moment.

import { project, type Spot } from './projection.ts';

export interface LoadedTrack {
  uid: string;
  name: string;
  /** By time, in milliseconds since 1970. */
  times: number[];
  spots: Spot[];
}

export interface Loaded {
  sinceMs: number;
  untilMs: number;
  tracks: LoadedTrack[];
  points: number;
  /** Older positions were left out: there are too many. */
  isCut: boolean;
}

interface Answer {
  since: string;
  until: string;
  tracks: { uid: string; callsign: string; points: [number, number, number, number | null][] }[];
  is_cut: boolean;
}

const MAX_POINTS = 400_000;
/** A device that was silent for longer is not shown. */
const SILENT_MS = 15 * 60_000;
const TRAIL_MS = 10 * 60_000;

/** The first minutes, which come at once; the time ends with them. Rejects as `loadTracks`. */
export async function loadBeginning(address: string): Promise<Loaded> {
  const answer = await ask(`${address}&part=begin`);
  const byUid = new Map<string, LoadedTrack>();
  const points = add(byUid, answer, Number.POSITIVE_INFINITY);
  const [sinceMs, untilMs] = [Date.parse(answer.since), Date.parse(answer.until)];
  return { sinceMs, untilMs, tracks: [...byUid.values()], points, isCut: false };
}

/** Newest part first, until the beginning or the limit. Rejects with the words of the server. */
export async function loadTracks(address: string, onPart: (points: number) => void): Promise<Loaded> {
  const first = await ask(address);
  const { group } = Object.fromEntries(new URL(address, 'http://here.invalid').searchParams);
  const byUid = new Map<string, LoadedTrack>();
  let points = add(byUid, first, Number.POSITIVE_INFINITY);
  let { is_cut: isCut } = first;
  let oldest = oldestOf(first);
  while (isCut && points < MAX_POINTS) {
    onPart(points);
    const query = new URLSearchParams({ since: first.since, until: new Date(oldest).toISOString() });
    if (group !== undefined && group !== '') query.set('group', group);
    const older = await ask(`/api/tracks?${query.toString()}`);
    const added = add(byUid, older, oldest);
    const next = oldestOf(older);
    ({ is_cut: isCut } = older);
    if (added === 0 && next >= oldest) oldest -= 1;
    else oldest = Math.min(next, oldest);
    points += added;
  }
  const sinceMs = isCut ? oldest : Date.parse(first.since);
  return { sinceMs, untilMs: Date.parse(first.until), tracks: [...byUid.values()], points, isCut };
}

async function ask(address: string): Promise<Answer> {
  const answer = await fetch(address, { headers: { Accept: 'application/json', 'X-Holdfast-Page': '1' } });
  const body = (await answer.json().catch(() => ({}))) as Answer & { detail?: string };
  if (!answer.ok) throw new Error(body.detail ?? `The server answered ${answer.status}.`);
  return body;
}

function oldestOf({ tracks }: Answer): number {
  return tracks.reduce((oldest, { points }) => Math.min(oldest, points[0]?.[0] ?? oldest), Number.POSITIVE_INFINITY);
}

/** Puts older points in front. Returns how many there were. */
function add(byUid: Map<string, LoadedTrack>, { tracks }: Answer, beforeMs: number): number {
  let count = 0;
  for (const { uid, callsign, points } of tracks) {
    const fresh = points.filter(([atMs]) => atMs < beforeMs);
    const known = byUid.get(uid) ?? { uid, name: callsign, times: [], spots: [] };
    known.times = [...fresh.map(([atMs]) => atMs), ...known.times];
    known.spots = [...fresh.map(([, lat, lon]) => project(lat, lon)), ...known.spots];
    byUid.set(uid, known);
    count += fresh.length;
  }
  return count;
}

/** The place then, and the way there; undefined while the device was silent. */
export function trackAt({ times, spots }: LoadedTrack, atMs: number): { spot: Spot; trail: Spot[] } | undefined {
  const last = lastUntil(times, atMs);
  const spot = spots[last];
  if (spot === undefined || atMs - (times[last] ?? 0) > SILENT_MS) return undefined;
  return { spot, trail: spots.slice(lastUntil(times, atMs - TRAIL_MS) + 1, last + 1) };
}

/** -1: all are later. */
function lastUntil(times: readonly number[], atMs: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) <= atMs) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
