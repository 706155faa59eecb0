// PUT /api/users/{id}/groups: the channels of a user, all at once.

import { z } from '@hono/zod-openapi';
import { actingIn } from '../shared/http/acting.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { bodyOf, groupNames, userId, userSchema } from '../shared/http/people-schemas.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { shownUser } from '../shared/verbs/people.ts';
import { setUserGroups } from '../shared/verbs/set-user-groups.ts';

const route = apiRoute(
  {
    method: 'put',
    path: '/api/users/{id}/groups',
    summary: 'Puts a user into exactly these channels; other groups stay',
    tags: ['users'],
    request: {
      params: z.object({ id: z.string().openapi({ type: 'integer' }) }),
      ...bodyOf({ groups: groupNames }),
    },
    responses: { 200: jsonAnswer('The user', userSchema) },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'upstream', 'unavailable'] },
);

/** Adds the route of this file. */
export function userGroupsFunction(app: App, deps: Deps): void {
  app.openapi(route, async function putGroups(c) {
    const { groups } = c.req.valid('json');
    const account = await setUserGroups(actingIn(c, deps), { id: userId(c.req.valid('param').id), groups });
    c.header('Cache-Control', 'no-store');
    return c.json(shownUser(account, deps), 200);
  });
}
