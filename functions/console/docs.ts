// GET /docs/...: serves the documents, which ship with Holdfast, to viewers and administrators.

import { AppError } from '@holdfast/kit/app-error';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo, PAGE_POLICY } from '../../shared/http/page.tsx';
import { pagesOf } from '../pages/page-routes.ts';

const START = '/docs/index.html';

/** Adds the routes of this file. */
export function docsPages(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  // The links of the documents are relative to their directory.
  pages.get('/docs', { access: 'viewer' }, (c) => goTo(c, START));
  pages.get('/docs/:file', { access: 'viewer' }, async function showDocument(c) {
    const asset = await deps.assets.read(`docs/${c.req.param('file') ?? ''}`);
    if (asset === undefined) throw new AppError('not_found', `No such document. The first one is ${START}.`);
    return c.body(asset.body, 200, {
      'Content-Type': asset.contentType,
      'Content-Security-Policy': PAGE_POLICY,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'same-origin',
      'Cache-Control': 'private, max-age=300',
    });
  });
}
