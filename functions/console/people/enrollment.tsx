// /people/{id}/enrollment at both faces: an administrator lets devices of somebody in.

import { userOf } from '../../../shared/devices/accounts.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { userId } from '../../../shared/http/schemas/people.ts';
import { enrollmentPages } from '../../pages/enrollment/page.tsx';
import { pagesOf } from '../../pages/page-routes.ts';

/** Adds the routes of this file. */
export function enrollmentPage(app: App, deps: Deps): void {
  enrollmentPages(pagesOf(app, deps, ['console', 'portal']), deps, {
    route: '/people/:id/enrollment',
    access: 'admin',
    current: 'people',
    ownerOf: (c) => userOf(deps, userId(c.req.param('id') ?? '')),
    pathOf: ({ id }) => `/people/${id}/enrollment`,
    titleOf: ({ username }) => `Enroll a device of ${username}`,
    backOf: ({ id, username }) => ({ path: `/people/${id}`, label: `Back to ${username}` }),
  });
}
