// /api/feeds: sources of events that the flow engine brings to a group.

import { z } from '@hono/zod-openapi';
import type { ErrorCode } from '@holdfast/kit/app-error';
import { deleteFeed, listFeeds, setFeed, switchFeedOff, switchFeedOn } from '../../shared/feeds/change.ts';
import { feedInput, feedName, feedSchema } from '../../shared/feeds/rules.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { bodyOf } from '../../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../../shared/http/route.ts';
import { actingIn } from '../../shared/http/sign-in.ts';

const tags = ['feeds'];
const params = z.object({ name: feedName });
const FAILS: ErrorCode[] = ['invalid', 'not_found', 'conflict', 'upstream', 'unavailable'];

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/feeds',
    summary: 'Lists feeds by name, with what the flow engine reports of them',
    tags,
    responses: { 200: jsonAnswer('All feeds', z.array(feedSchema)) },
  },
  { access: 'viewer', fails: ['unavailable'] },
);

const setRoute = apiRoute(
  {
    method: 'put',
    path: '/api/feeds/{name}',
    summary: 'Creates or replaces a feed; a new one is off',
    tags,
    request: { params, ...bodyOf(feedInput.shape) },
    responses: { 200: jsonAnswer('The feed', feedSchema) },
  },
  { access: 'admin', fails: ['conflict', 'upstream', 'unavailable'] },
);

const deleteRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/feeds/{name}',
    summary: 'Deletes a feed with its service account',
    tags,
    request: { params },
    responses: { 204: { description: 'Deleted' } },
  },
  { access: 'admin', fails: FAILS },
);

const SWITCHES = [
  ['on', 'Switches a feed on: makes its service account and certificate', switchFeedOn],
  ['off', 'Switches a feed off: deactivates its service account and revokes its certificate', switchFeedOff],
] as const;

/** Adds the routes of this file. */
export function feedsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function showFeeds(c) {
    const feeds = await listFeeds(deps);
    c.header('Cache-Control', 'no-store');
    return c.json(feeds, 200);
  });
  app.openapi(setRoute, async function writeFeed(c) {
    const { name } = c.req.valid('param');
    return c.json(await setFeed(actingIn(c, deps), name, c.req.valid('json')), 200);
  });
  app.openapi(deleteRoute, async function removeFeed(c) {
    await deleteFeed(actingIn(c, deps), c.req.valid('param').name);
    return c.body(null, 204);
  });
  for (const [word, summary, work] of SWITCHES) {
    const route = apiRoute(
      {
        method: 'post',
        path: `/api/feeds/{name}/${word}`,
        summary,
        tags,
        request: { params },
        responses: { 200: jsonAnswer('The feed', feedSchema) },
      },
      { access: 'admin', fails: FAILS },
    );
    app.openapi(route, async function switchFeed(c) {
      return c.json(await work(actingIn(c, deps), c.req.valid('param').name), 200);
    });
  }
}
