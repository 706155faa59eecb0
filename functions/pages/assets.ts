// The style and the script of all pages. The page to sign in has them too, so they are open.

import { AppError } from '../../shared/domain/app-error.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { PAGES_VERSION, SCRIPT_PATH, STYLE_PATH } from '../../shared/http/page.tsx';

const YEAR_SECONDS = 31_536_000;

/** Adds the routes of this file. */
export function pageAssets(app: App, deps: Deps): void {
  for (const [path, name] of [
    [STYLE_PATH, 'pages.css'],
    [SCRIPT_PATH, 'pages.js'],
  ] as const)
    app.get(path, async function sendPageAsset(c) {
      const asset = await deps.assets.read(name);
      if (asset === undefined) throw new AppError('not_found', 'There is nothing at this address.');
      const current = c.req.query('v') === PAGES_VERSION;
      return c.body(asset.body, 200, {
        'Content-Type': asset.contentType,
        'Cache-Control': current ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
        'X-Content-Type-Options': 'nosniff',
      });
    });
}
