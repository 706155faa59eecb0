// /api/clients: lists connected clients and disconnects them. The stack's own connections are
// hidden.

import { z } from '@hono/zod-openapi';
import { type ConnectedClient, connectedClients, disconnectClient } from '../shared/devices/connections/clients.ts';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { pageOf, pagingQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { actorOf } from '../shared/http/sign-in.ts';

const tags = ['clients'];
const time = z.iso.datetime();

const clientSchema = z
  .object({
    uid: z.string().openapi({ description: 'Reported by the device; the name of the connection until then' }),
    callsign: z.string(),
    username: z.string(),
    groups: z
      .array(z.string())
      .openapi({ description: 'With the prefix core_; __ANON__ is the group of clients without any' }),
    team: z.string(),
    role: z.string(),
    device: z.string().openapi({ description: 'Program and version' }),
    address: z.string(),
    framing: z.enum(['xml', 'protobuf']).nullable().openapi({ description: 'How it gets events; null: unknown' }),
    node: z.string().optional().openapi({ description: 'The core node, if there are several' }),
    since: time.nullable(),
    last_report: time.nullable(),
  })
  .openapi('Client');

const pageSchema = pageOf(clientSchema, 'ClientPage');

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/clients',
    summary: 'Lists connected clients by callsign',
    tags,
    request: { query: z.object(pagingQuery()) },
    responses: { 200: jsonAnswer('A page of clients', pageSchema) },
  },
  { access: 'viewer', fails: ['invalid', 'upstream', 'unavailable'] },
);

const disconnectRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/clients/{uid}',
    summary: 'Disconnects a client; it can reconnect while its certificate is valid',
    tags,
    request: { params: z.object({ uid: z.string().max(256, 'must have at most 256 characters') }) },
    responses: { 204: { description: 'The client is disconnected' } },
  },
  { access: 'admin', fails: ['not_found', 'invalid', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function clientsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listClients(c) {
    const { page, page_size: pageSize } = c.req.valid('query');
    const found = (await connectedClients(deps)).map(shown);
    const results = found.slice((page - 1) * pageSize, page * pageSize);
    c.header('Cache-Control', 'no-store');
    return c.json({ results, count: found.length, page, page_size: pageSize }, 200);
  });
  app.openapi(disconnectRoute, async function disconnect(c) {
    await disconnectClient(deps, actorOf(c), c.req.valid('param').uid);
    return c.body(null, 204);
  });
}

function shown(client: ConnectedClient): z.infer<typeof clientSchema> {
  const { uid, callsign, username, groups, team, role, device, address, framing, node, since, lastReport } = client;
  const place = { address, framing, ...(node === undefined ? {} : { node }) };
  return { uid, callsign, username, groups, team, role, device, ...place, since, last_report: lastReport };
}
