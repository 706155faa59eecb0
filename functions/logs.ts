// GET /api/logs: the names of the logs, or with `name` the last lines of one.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { integerQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';

const namesSchema = z.array(z.string());
const tailSchema = z.object({ name: z.string(), lines: z.array(z.string()) });

const route = apiRoute(
  {
    method: 'get',
    path: '/api/logs',
    summary: 'Names of the logs, or the last lines of one',
    tags: ['operations'],
    request: {
      query: z.object({
        name: z.string().min(1).max(100).optional(),
        tail: integerQuery(1, 5000, 200),
      }),
    },
    responses: { 200: jsonAnswer('Names, or lines oldest first', z.union([namesSchema, tailSchema])) },
  },
  { access: 'admin', fails: ['not_found', 'invalid', 'not_supported'] },
);

/** Adds the route of this file. */
export function logsFunction(app: App, deps: Deps): void {
  app.openapi(route, async function showLogs(c) {
    const { name, tail } = c.req.valid('query');
    c.header('Cache-Control', 'no-store');
    if (name === undefined) return c.json(await deps.logFiles.names(), 200);
    const lines = await deps.logFiles.tail(name, tail);
    if (lines === undefined)
      throw new AppError('not_found', `There is no log of the name "${name}"; ask without a name for the list.`);
    return c.json({ name, lines }, 200);
  });
}
