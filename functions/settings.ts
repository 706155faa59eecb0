// GET /api/settings: effective settings and thresholds, each with its source; secrets only as set
// or unset.

import { z } from '@hono/zod-openapi';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';

const settingSchema = z.object({
  name: z.string(),
  section: z.string(),
  about: z.string(),
  value: z.union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()]),
  source: z.enum(['command line', 'environment', 'env file', 'generated', 'stack', 'default', 'unset']),
  secret: z.boolean(),
});

const settingsSchema = z
  .object({
    release: z.string(),
    started_at: z.iso.datetime(),
    settings: z.array(settingSchema),
    thresholds: z.record(z.string(), z.unknown()),
  })
  .openapi('Settings');

const route = apiRoute(
  {
    method: 'get',
    path: '/api/settings',
    summary: 'Returns effective settings and thresholds, each with its source',
    tags: ['operations'],
    responses: { 200: jsonAnswer('The settings', settingsSchema) },
  },
  { access: 'admin' },
);

/** Adds the route of this file. */
export function settingsFunction(app: App, deps: Deps): void {
  app.openapi(route, function showSettings(c) {
    const { set_by: _, ...thresholds } = deps.thresholds;
    const body = {
      release: deps.release,
      started_at: deps.startedAt.toISOString(),
      settings: deps.settingsShown,
      thresholds,
    };
    return c.json(body, 200, { 'Cache-Control': 'no-store' });
  });
}
