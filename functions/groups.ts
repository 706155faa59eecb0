// /api/groups: the channels that people are in and devices talk on. Role groups are excluded.

import { z } from '@hono/zod-openapi';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { bodyOf } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { groupSchema } from '../shared/http/schemas/people.ts';
import { actingIn } from '../shared/http/sign-in.ts';
import { isHiddenName } from '../shared/identity/rules.ts';
import { channelOf, createGroup, deleteGroup, listChannels } from '../shared/people/groups.ts';

const tags = ['groups'];
const params = z.object({ id: z.string().openapi({ format: 'uuid' }) });

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/groups',
    summary: 'Lists channels by name',
    tags,
    responses: { 200: jsonAnswer('Names with the prefix core_', z.array(groupSchema)) },
  },
  { access: 'viewer', area: 'people', fails: ['upstream', 'unavailable'] },
);

const createRoute = apiRoute(
  {
    method: 'post',
    path: '/api/groups',
    summary: 'Creates a channel',
    tags,
    request: bodyOf({
      name: z.string().max(1000).openapi({
        description: 'With or without the prefix core_; followed by 1 to 64 letters, digits, spaces and . _ -',
      }),
    }),
    responses: { 201: jsonAnswer('The channel', groupSchema) },
  },
  { access: 'admin', area: 'people', fails: ['conflict', 'upstream', 'unavailable'] },
);

const readRoute = apiRoute(
  {
    method: 'get',
    path: '/api/groups/{id}',
    summary: 'Returns a channel with its members',
    tags,
    request: { params },
    responses: {
      200: jsonAnswer(
        'Members by username, without hidden accounts',
        groupSchema
          .extend({
            members: z.array(z.object({ id: z.int(), username: z.string() })),
            hidden_members: z.int().openapi({ description: 'How many hidden accounts are members, too' }),
          })
          .openapi('GroupMembers'),
      ),
    },
  },
  { access: 'viewer', area: 'people', fails: ['not_found', 'upstream', 'unavailable'] },
);

const deleteRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/groups/{id}',
    summary: 'Deletes a channel; its members only lose this channel',
    tags,
    request: { params },
    responses: { 204: { description: 'The channel is deleted' } },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function groupsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listGroups(c) {
    const found = await listChannels(deps);
    c.header('Cache-Control', 'no-store');
    return c.json(found, 200);
  });
  app.openapi(createRoute, async function makeGroup(c) {
    const { id, name } = await createGroup(actingIn(c, deps), c.req.valid('json'));
    return c.json({ id, name }, 201);
  });
  app.openapi(readRoute, async function readGroup(c) {
    const { id, name, members } = await channelOf(deps, c.req.valid('param').id);
    const shown = members
      .filter(({ username }) => !isHiddenName(username, deps.settings.USERS_HIDDEN_PREFIXES))
      .map((member) => ({ id: member.id, username: member.username }))
      .toSorted((one, other) => (one.username < other.username ? -1 : 1));
    c.header('Cache-Control', 'no-store');
    return c.json({ id, name, members: shown, hidden_members: members.length - shown.length }, 200);
  });
  app.openapi(deleteRoute, async function removeGroup(c) {
    await deleteGroup(actingIn(c, deps), c.req.valid('param'));
    return c.body(null, 204);
  });
}
