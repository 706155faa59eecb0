// GET /api/docs: the API document as a page. Everything it loads ships with Holdfast; no script stands in the page.

import { z } from '@hono/zod-openapi';
import { AppError } from '../shared/domain/app-error.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { apiRoute } from '../shared/http/route.ts';
import { requireAccess } from '../shared/http/sign-in.ts';

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

const route = apiRoute(
  {
    method: 'get',
    path: '/api/docs',
    summary: 'This document as a page',
    tags: ['documentation'],
    responses: { 200: { description: 'The page', content: { 'text/html': { schema: z.string() } } } },
  },
  { access: 'viewer' },
);

/** Adds the route of this file. */
export function docsFunction(app: App, deps: Deps): void {
  const reader = requireAccess('viewer', 'rest');
  app.openapi(route, function showDocs(c) {
    return c.newResponse(PAGE, 200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': POLICY });
  });
  app.get('/api/docs/start.js', reader, function startDocs(c) {
    return c.body(START, 200, { 'Content-Type': 'text/javascript; charset=utf-8' });
  });
  app.get('/api/docs/:asset', reader, async function sendAsset(c) {
    const name = c.req.param('asset');
    const asset = SHIPPED.includes(name) ? await deps.assets.read(name) : undefined;
    if (asset === undefined) throw new AppError('not_found', 'There is nothing at this address.');
    return c.body(asset.body, 200, { 'Content-Type': asset.contentType, 'Cache-Control': 'private, max-age=3600' });
  });
}
