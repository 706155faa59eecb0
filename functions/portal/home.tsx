// GET / of the portal: one's own devices.

import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { framed } from '../pages/frame.tsx';
import { pagesOf } from '../pages/page-routes.ts';

/** Adds the routes of this file. */
export function homePage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['portal']).get('/', { access: 'own' }, function showHome(c) {
    return framed(c, deps, { title: 'My devices', current: 'home', body: <p>Devices are added here.</p> });
  });
}
