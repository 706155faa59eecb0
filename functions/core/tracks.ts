// /api/positions and /api/tracks: where connected devices are, and where devices were.

import { z } from '@hono/zod-openapi';
import { audited } from '../../shared/audit/audited.ts';
import { TRACK_FORMATS, TRACK_TYPES, writeTracks } from '../../shared/core/tracks/formats.ts';
import type { PositionedClient } from '../../shared/core/tracks/port.ts';
import { trackQuery } from '../../shared/core/tracks/rules.ts';
import { visibleClients } from '../../shared/devices/connections/clients.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { timeQuery } from '../../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../../shared/http/route.ts';
import { actorOf } from '../../shared/http/sign-in.ts';

const tags = ['map'];

const positionSchema = z
  .object({
    uid: z.string(),
    callsign: z.string(),
    username: z.string(),
    groups: z.array(z.string()),
    team: z.string(),
    role: z.string(),
    lat: z.number(),
    lon: z.number(),
    height: z.number().nullable().openapi({ description: 'Meters above the ellipsoid; null: unknown' }),
    at: z.iso.datetime().nullable(),
  })
  .openapi('Position');

const positionsRoute = apiRoute(
  {
    method: 'get',
    path: '/api/positions',
    summary: 'Last positions of connected devices by callsign',
    tags,
    responses: { 200: jsonAnswer('All that have reported one', z.array(positionSchema)) },
  },
  { access: 'viewer', fails: ['upstream', 'unavailable'] },
);

const tracksSchema = z
  .object({
    since: z.iso.datetime(),
    until: z.iso.datetime(),
    tracks: z.array(
      z.object({
        uid: z.string(),
        callsign: z.string(),
        points: z
          .array(z.array(z.number().nullable()))
          .openapi({ description: 'Each: milliseconds since 1970, latitude, longitude, height in meters or null' }),
      }),
    ),
    is_cut: z.boolean().openapi({ description: 'Only the newest 50,000 points: ask for a shorter time' }),
  })
  .openapi('Tracks');

const fileSchema = z.string();
const tracksRoute = apiRoute(
  {
    method: 'get',
    path: '/api/tracks',
    summary: 'Stored positions of a time: 50,000 as JSON, 500,000 as KML, GPX or CSV',
    tags,
    request: {
      query: z.object({
        since: timeQuery().openapi({ description: 'Default: an hour before until' }),
        until: timeQuery().openapi({ description: 'Default: now; at most 31 days after since' }),
        group: z.string().max(300, 'must have at most 300 characters').optional(),
        format: z.enum(['json', ...TRACK_FORMATS]).default('json'),
      }),
    },
    responses: {
      200: {
        description: 'The tracks',
        content: {
          'application/json': { schema: tracksSchema },
          [TRACK_TYPES.kml]: { schema: fileSchema },
          [TRACK_TYPES.gpx]: { schema: fileSchema },
          'text/csv': { schema: fileSchema },
        },
      },
    },
  },
  { access: 'viewer', fails: ['invalid', 'not_found', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function tracksFunction(app: App, deps: Deps): void {
  app.openapi(positionsRoute, async function listPositions(c) {
    const clients = visibleClients(await deps.coreTracks.positions());
    c.header('Cache-Control', 'no-store');
    return c.json(clients.flatMap(toPositionView), 200);
  });
  app.openapi(tracksRoute, async function sendTracks(c) {
    const { format, ...given } = c.req.valid('query');
    const query = trackQuery(given, deps.now());
    const [since, until] = [query.sinceMs, query.untilMs].map((ms) => new Date(ms).toISOString()) as [string, string];
    if (format === 'json') {
      const { tracks, isCut } = await deps.coreTracks.find(query);
      c.header('Cache-Control', 'no-store');
      const points = tracks.map((track) => ({ ...track, points: track.points.map((point) => [...point]) }));
      return c.json({ since, until, tracks: points, is_cut: isCut }, 200);
    }
    const detail = { since, until, format };
    const subject = { actor: actorOf(c), action: 'tracks.export', target: query.group ?? 'all groups', detail };
    const pieces = writeTracks(deps.coreTracks, query, format);
    const first = await audited(deps, subject, () => pieces.next());
    return c.newResponse(streamOf(first.value ?? '', pieces), 200, {
      'Content-Type': TRACK_TYPES[format],
      'Content-Disposition': `attachment; filename="tracks-${since.slice(0, 16).replace(':', '-')}.${format}"`,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    });
  });
}

function toPositionView(client: PositionedClient): z.infer<typeof positionSchema>[] {
  const { uid, callsign, username, groups, team, role, position } = client;
  return position === null ? [] : [{ uid, callsign, username, groups, team, role, ...position }];
}

/** As fast as it is read. */
function streamOf(first: string, rest: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next: string | undefined = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = next === undefined ? await rest.next() : { done: false, value: next };
        next = undefined;
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      async cancel() {
        await rest.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
