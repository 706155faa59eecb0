// GET /metrics: everything that can be counted, as OpenMetrics text, from memory alone.

import { z } from '@hono/zod-openapi';
import { OPEN_METRICS_TYPE, renderOpenMetrics } from '../shared/domain/open-metrics.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { apiRoute } from '../shared/http/route.ts';
import { requireAccess } from '../shared/http/sign-in.ts';
import { collectMetrics } from '../shared/verbs/collect-metrics.ts';

const route = apiRoute(
  {
    method: 'get',
    path: '/metrics',
    summary: 'Health, jobs, requests and the process as OpenMetrics text; never touches an outside system',
    tags: ['health'],
    responses: {
      200: { description: 'OpenMetrics text 1.0', content: { [OPEN_METRICS_TYPE]: { schema: z.string() } } },
    },
  },
  { access: 'viewer', area: 'monitoring' },
);

/** Adds the route of this file. */
export function metricsFunction(app: App, deps: Deps): void {
  app.openAPIRegistry.registerPath(route);
  app.get(route.path, requireAccess('viewer', 'monitoring'), async function showMetrics(c) {
    const text = renderOpenMetrics(await collectMetrics(deps));
    return c.body(text, 200, { 'Content-Type': OPEN_METRICS_TYPE, 'Cache-Control': 'no-store' });
  });
}
