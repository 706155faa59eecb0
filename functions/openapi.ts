// GET /api/openapi.json, GET /api/docs: serves the API description, made from the schemas that
// validate requests.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import { type App, sessionCookieName } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { requireAccess } from '../shared/http/sign-in.ts';

const route = apiRoute(
  {
    method: 'get',
    path: '/api/openapi.json',
    summary: 'OpenAPI document',
    tags: ['documentation'],
    responses: { 200: jsonAnswer('OpenAPI 3.1 document', z.record(z.string(), z.unknown())) },
  },
  { access: 'viewer' },
);

const SESSION_COOKIE = {
  type: 'apiKey',
  in: 'cookie',
  name: sessionCookieName(true),
  description: `Set by the sign-in page. Without TLS its name is ${sessionCookieName(false)}.`,
} as const;

/** Adds the document and its security schemes. */
export function openapiFunction(app: App, deps: Deps): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'basic', { type: 'http', scheme: 'basic' });
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' });
  app.openAPIRegistry.registerComponent('securitySchemes', 'session', SESSION_COOKIE);
  let prepared: string | undefined;
  app.openAPIRegistry.registerPath(route);
  app.get(route.path, requireAccess(route.demand), function describeApi(c) {
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
      description: 'Management API for a stack around a CoT server. Errors are RFC 9457 problem documents.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: '/' }],
  });
}

interface Operation {
  summary?: string;
  tags?: string[];
  'x-access'?: string;
}

/** The tables of docs/api.md: one for each tag, in the order of the app. */
export function renderApiTables(app: App): string {
  const byTag = new Map<string, string[]>();
  for (const [path, methods] of Object.entries(documentOf(app, '').paths ?? {}))
    for (const [method, operation] of Object.entries(methods as Record<string, Operation>)) {
      const { summary = '', tags = [], 'x-access': access = '' } = operation;
      const rows = byTag.get(tags[0] ?? '') ?? [];
      byTag.set(tags[0] ?? '', [...rows, `| \`${method.toUpperCase()} ${path}\` | ${access} | ${summary} |`]);
    }
  const tables = [...byTag].map(([tag, rows]) =>
    [`## ${tag.charAt(0).toUpperCase()}${tag.slice(1)}\n`, '| Call | Access | Effect |', '|---|---|---|', ...rows].join(
      '\n',
    ),
  );
  return tables.join('\n\n');
}

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Holdfast API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/api/docs/swagger-ui.css">
</head>
<body>
<div id="api"></div>
<script src="/api/docs/swagger-ui-bundle.js"></script>
<script src="/api/docs/start.js"></script>
</body>
</html>
`;

const START = `window.ui = SwaggerUIBundle({ url: location.origin + '/api/openapi.json', dom_id: '#api', deepLinking: true, validatorUrl: null });
`;

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SHIPPED = ['swagger-ui.css', 'swagger-ui-bundle.js'];

const docsRoute = apiRoute(
  {
    method: 'get',
    path: '/api/docs',
    summary: 'API documentation page',
    tags: ['documentation'],
    responses: { 200: { description: 'HTML page', content: { 'text/html': { schema: z.string() } } } },
  },
  { access: 'viewer' },
);

/**
 * GET /api/docs: the API document as a page. Everything it loads ships with Holdfast. The page
 * holds no inline script.
 */
export function docsFunction(app: App, deps: Deps): void {
  const reader = requireAccess(docsRoute.demand);
  app.openapi(docsRoute, function showDocs(c) {
    return c.newResponse(PAGE, 200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': POLICY });
  });
  app.get('/api/docs/start.js', reader, function startDocs(c) {
    return c.body(START, 200, { 'Content-Type': 'text/javascript; charset=utf-8' });
  });
  app.get('/api/docs/:asset', reader, async function sendAsset(c) {
    const name = c.req.param('asset');
    const asset = SHIPPED.includes(name) ? await deps.assets.read(name) : undefined;
    if (asset === undefined) throw new AppError('not_found', 'No file at this address.');
    return c.body(asset.body, 200, { 'Content-Type': asset.contentType, 'Cache-Control': 'private, max-age=3600' });
  });
}
