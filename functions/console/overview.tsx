// GET / of the console: whether it works, and what to do next.

import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { framed } from '../pages/frame.tsx';
import { pagesOf } from '../pages/page-routes.ts';

/** Adds the routes of this file. */
export function overviewPage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get('/', { access: 'own' }, function showOverview(c) {
    return framed(c, deps, { title: 'Overview', current: 'overview', body: <p>Everything is on the other pages.</p> });
  });
}
