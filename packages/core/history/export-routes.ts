// Serves /Marti/ExportMissionKML: the tracks of stored events as KML.

import { limitPerCaller } from '@holdfast/kit/concurrency';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '@holdfast/kit/time';
import { type GroupParts, visiblePlacesNamed } from '../groups/own-groups.ts';
import { PageFault } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, invalid, readText } from '../http/route.ts';
import type { History } from '../store/history.ts';
import { kmlDocument, kmz } from './kml.ts';

export interface ExportOptions extends GroupParts {
  history: Pick<History, 'track'>;
  now: () => Date;
}

const MAX_POINTS = 50_000;
const MAX_BODY_BYTES = 64 * 1024;
const MAX_GROUPS = 200;
const MAX_TEXT = 1024;
/** Each takes some 20 MB while it is written. */
const MAX_AT_ONCE = { most: 4, maxPerOne: 1 };

export function exportRoutes(options: ExportOptions): AdminRoute[] {
  const running = limitPerCaller(MAX_AT_ONCE);

  async function exportTracks(c: AdminContext): Promise<Response> {
    const given = new URLSearchParams(new URL(c.req.url).search);
    if (c.req.method === 'POST')
      for (const [name, value] of new URLSearchParams(await readText(c, MAX_BODY_BYTES))) given.append(name, value);
    const query = readQuery(given, options.now());
    const sees = await visiblePlacesNamed(c.env.caller, query.groups, options);
    const leave = running.enter(c.env.caller.username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many exports at once. Try again in a moment.', {
        headers: { 'retry-after': '10' },
      });
    try {
      const { uid, start, end } = query;
      const wanted = { ...(uid === undefined ? {} : { uid }), start, end, sees, limit: MAX_POINTS };
      const points = await options.history.track(wanted);
      const note = points.length < MAX_POINTS ? undefined : `Only the newest ${MAX_POINTS} positions.`;
      const name = start.toISOString();
      const kml = kmlDocument(points, { name, gapMs: query.gapMs, note });
      return query.isZipped ? answer(kmz(kml), 'kmz', name) : answer(kml, 'kml', name);
    } finally {
      leave();
    }
  }

  return [{ path: '/Marti/ExportMissionKML', handlers: { GET: exportTracks, POST: exportTracks } }];
}

function answer(body: string | Uint8Array<ArrayBuffer>, kind: 'kml' | 'kmz', name: string): Response {
  const type = kind === 'kmz' ? 'vnd.google-earth.kmz' : 'vnd.google-earth.kml+xml';
  return new Response(body, {
    headers: {
      'content-type': `application/${type}`,
      'content-disposition': `attachment; filename="${name.replaceAll(':', '-')}.${kind}"`,
      'x-content-type-options': 'nosniff',
    },
  });
}

function readQuery(given: URLSearchParams, now: Date) {
  const text = (name: string): string | undefined => {
    const value = given.get(name) ?? '';
    if (value.length > MAX_TEXT || value.includes('\0'))
      throw invalid(`${name} must have at most ${MAX_TEXT} characters`);
    return value === '' ? undefined : value;
  };
  const number = (name: string): number | undefined => {
    const value = text(name);
    if (value === undefined) return undefined;
    if (!/^\d{1,9}(\.\d{1,9})?$/.test(value)) throw invalid(`${name} must be a number, not "${value}"`);
    return Number(value);
  };
  const end = dateOf('endTime', text('endTime')) ?? now;
  const hours = number('interval');
  const length = hours === undefined ? DAY_MS : hours * HOUR_MS;
  const start = dateOf('startTime', text('startTime')) ?? new Date(Math.max(0, end.getTime() - length));
  if (start > end) throw invalid('startTime must be before endTime');
  const minutes = number('multiTrackThreshold') ?? 0;
  const format = text('format')?.toLowerCase() ?? 'kml';
  if (format !== 'kml' && format !== 'kmz') throw invalid(`format must be kml or kmz, not "${format}"`);
  const groups = given
    .getAll('groups')
    .flatMap((names) => names.split(','))
    .filter((name) => name !== '');
  if (groups.length > MAX_GROUPS) throw invalid(`at most ${MAX_GROUPS} groups`);
  const gapMs = minutes > 0 ? minutes * MINUTE_MS : undefined;
  return { uid: text('uid'), start, end, gapMs, isZipped: format === 'kmz', groups };
}

function dateOf(name: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const date = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(date.getTime())) return date;
  throw invalid(`${name} must be a date such as 2026-11-22T05:30:00Z, not "${text}"`);
}
