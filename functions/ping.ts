// GET /api/ping: the process answers. Open, and it touches nothing.

import { z } from '@hono/zod-openapi';
import type { App } from '../shared/http/env.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';

const route = apiRoute(
  {
    method: 'get',
    path: '/api/ping',
    summary: 'Whether the management process answers',
    tags: ['health'],
    responses: { 200: jsonAnswer('It answers', z.object({ status: z.literal('ok') })) },
  },
  { access: 'open' },
);

/** Adds the route of this file. */
export function pingFunction(app: App): void {
  app.openapi(route, function ping(c) {
    return c.json({ status: 'ok' as const }, 200);
  });
}
