// /api/clients: who is connected to the stream, and how a connection is ended. The stack's own connections are not shown.

import { z } from '@hono/zod-openapi';
import { AppError } from '../shared/domain/app-error.ts';
import { CANARY_ACCOUNT, CHANNEL_PREFIX, nameKey, PROBE_ACCOUNT } from '../shared/domain/names.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { pageOf, pagingQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { actorOf } from '../shared/http/sign-in.ts';
import type { CoreClient } from '../shared/ports/core.ts';
import { audited } from '../shared/verbs/audited.ts';

const tags = ['clients'];
const time = z.iso.datetime();

const clientSchema = z
  .object({
    uid: z.string().openapi({ description: 'Of the device; the name of the connection until it has reported' }),
    callsign: z.string(),
    username: z.string(),
    groups: z.array(z.string()).openapi({ description: 'With core_; __ANON__ is the group of those who are in none' }),
    team: z.string(),
    role: z.string(),
    device: z.string().openapi({ description: 'Program and version' }),
    address: z.string(),
    since: time.nullable(),
    last_report: time.nullable(),
  })
  .openapi('Client');

const pageSchema = pageOf(clientSchema, 'ClientPage');

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/clients',
    summary: 'Connected clients by callsign',
    tags,
    request: { query: z.object(pagingQuery()) },
    responses: { 200: jsonAnswer('A page', pageSchema) },
  },
  { access: 'viewer', fails: ['invalid', 'upstream', 'unavailable'] },
);

const disconnectRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/clients/{uid}',
    summary: 'Ends the connection of a client; it may come back as long as its certificate is good',
    tags,
    request: { params: z.object({ uid: z.string().max(256, 'must have at most 256 characters') }) },
    responses: { 204: { description: 'It is ended' } },
  },
  { access: 'admin', fails: ['not_found', 'invalid', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function clientsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listClients(c) {
    const { page, page_size: pageSize } = c.req.valid('query');
    const found = (await visibleClients(deps)).map(shown).toSorted(byCallsign);
    const results = found.slice((page - 1) * pageSize, page * pageSize);
    c.header('Cache-Control', 'no-store');
    return c.json({ results, count: found.length, page, page_size: pageSize }, 200);
  });
  app.openapi(disconnectRoute, async function disconnectClient(c) {
    const { uid } = c.req.valid('param');
    const client = (await visibleClients(deps)).find((each) => shown(each).uid === uid || each.connection === uid);
    if (client === undefined) throw notConnected(uid);
    const { username, callsign, address } = client;
    const detail = { username, callsign, address };
    await audited(deps, { actor: actorOf(c), action: 'client.disconnect', target: uid, detail }, async () => {
      if (!(await deps.core.disconnect(uid))) throw notConnected(uid);
    });
    return c.body(null, 204);
  });
}

const OWN = new Set([PROBE_ACCOUNT, CANARY_ACCOUNT]);

async function visibleClients({ core }: Deps): Promise<CoreClient[]> {
  return (await core.clients()).filter(({ username }) => !OWN.has(nameKey(username)));
}

const NOBODYS_GROUP = '__ANON__';

function shown(client: CoreClient): z.infer<typeof clientSchema> {
  const { uid, connection, callsign, username, groups, team, role, device, address, since, lastReport } = client;
  return {
    uid: uid === '' ? connection : uid,
    callsign,
    username,
    groups: groups.map((name) => (name === NOBODYS_GROUP ? name : CHANNEL_PREFIX + name)).toSorted(),
    team,
    role,
    device,
    address,
    since,
    last_report: lastReport,
  };
}

function byCallsign(one: z.infer<typeof clientSchema>, other: z.infer<typeof clientSchema>): number {
  const [a, b] = [one, other].map(({ callsign, uid }) => `${callsign.toLowerCase()}\0${uid}`) as [string, string];
  return a < b ? -1 : 1;
}

function notConnected(uid: string): AppError {
  return new AppError(
    'not_found',
    `There is no connected client with the uid ${JSON.stringify(uid)}; GET /api/clients lists them.`,
  );
}
