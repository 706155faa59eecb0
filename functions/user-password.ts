// POST /api/users/{id}/password: a new password for a user, who is signed out everywhere.

import { z } from '@hono/zod-openapi';
import { actingIn } from '../shared/http/acting.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { bodyOf, newPassword, userId } from '../shared/http/people-schemas.ts';
import { apiRoute } from '../shared/http/route.ts';
import { setUserPassword } from '../shared/verbs/set-user-password.ts';

const route = apiRoute(
  {
    method: 'post',
    path: '/api/users/{id}/password',
    summary: 'Sets the password of a user, who is signed out everywhere',
    tags: ['users'],
    request: {
      params: z.object({ id: z.string().openapi({ type: 'integer' }) }),
      ...bodyOf({ password: newPassword }),
    },
    responses: { 204: { description: 'It is set' } },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'upstream', 'unavailable'] },
);

/** Adds the route of this file. */
export function userPasswordFunction(app: App, deps: Deps): void {
  app.openapi(route, async function setPassword(c) {
    const { password } = c.req.valid('json');
    await setUserPassword(actingIn(c, deps), { id: userId(c.req.valid('param').id), password });
    return c.body(null, 204);
  });
}
