// GET /api/openapi.json: the document of exactly this surface, from the schemas that validate.

import { z } from '@hono/zod-openapi';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { sessionCookieName } from '../shared/http/session-cookie.ts';
import { requireAccess } from '../shared/http/sign-in.ts';

const route = apiRoute(
  {
    method: 'get',
    path: '/api/openapi.json',
    summary: 'This document',
    tags: ['documentation'],
    responses: { 200: jsonAnswer('OpenAPI 3.1', z.record(z.string(), z.unknown())) },
  },
  { access: 'viewer' },
);

const SESSION_COOKIE = {
  type: 'apiKey',
  in: 'cookie',
  name: sessionCookieName(true),
  description: `From the sign-in page; without TLS its name is ${sessionCookieName(false)}`,
} as const;

/** Adds the route of this file. */
export function openapiFunction(app: App, deps: Deps): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'basic', { type: 'http', scheme: 'basic' });
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' });
  app.openAPIRegistry.registerComponent('securitySchemes', 'session', SESSION_COOKIE);
  let prepared: string | undefined;
  app.openAPIRegistry.registerPath(route);
  app.get(route.path, requireAccess('viewer', 'rest'), function describeApi(c) {
    prepared ??= JSON.stringify(documentOf(app, deps.release));
    return c.body(prepared, 200, { 'Content-Type': 'application/json' });
  });
}

/** The OpenAPI 3.1 document of an app; `release` becomes `info.version`. */
export function documentOf(app: App, release: string) {
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Holdfast',
      version: release,
      description: 'Management API of a managed stack around a CoT server. Errors are RFC 9457 problem documents.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: '/' }],
  });
}
