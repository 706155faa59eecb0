// /api/me: whoever is signed in, and how. POST /api/me/password changes one's own password.

import { z } from '@hono/zod-openapi';
import type { Principal } from '../shared/domain/principal.ts';
import { SCOPES } from '../shared/domain/principal.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { bodyOf, newPassword, userSchema } from '../shared/http/people-schemas.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { shownUser } from '../shared/verbs/people.ts';
import { accountOf, changeOwnPassword } from './own-password.ts';

const tags = ['me'];
const meSchema = userSchema
  .extend({
    signed_in_by: z.object({
      kind: z.enum(['password', 'session', 'token']),
      scope: z.enum(SCOPES).optional().openapi({ description: 'Of a token' }),
    }),
  })
  .openapi('Me');

const readRoute = apiRoute(
  {
    method: 'get',
    path: '/api/me',
    summary: 'Whoever is signed in, and how',
    tags,
    responses: { 200: jsonAnswer('The user', meSchema) },
  },
  { access: 'own', fails: ['not_found', 'upstream', 'unavailable'] },
);

const passwordRoute = apiRoute(
  {
    method: 'post',
    path: '/api/me/password',
    summary: "Changes one's own password; every session ends, this one too",
    tags,
    request: bodyOf({
      current_password: z.string().max(4096).openapi({ description: 'A wrong one counts for the lock-out' }),
      password: newPassword,
    }),
    responses: { 204: { description: 'It is set' } },
  },
  { access: 'own', fails: ['not_found', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function meFunction(app: App, deps: Deps): void {
  app.openapi(readRoute, async function readMe(c) {
    const principal = c.get('principal');
    const account = await accountOf(deps, principal);
    c.header('Cache-Control', 'no-store');
    return c.json({ ...shownUser(account, deps), signed_in_by: signedInBy(principal) }, 200);
  });
  app.openapi(passwordRoute, async function changePassword(c) {
    const { current_password: current, password } = c.req.valid('json');
    await changeOwnPassword(c, deps, { current, password });
    return c.body(null, 204);
  });
}

function signedInBy({ by }: Principal): z.infer<typeof meSchema>['signed_in_by'] {
  if (by.kind === 'token') return { kind: 'token', scope: by.scope };
  return { kind: by.kind === 'session' ? 'session' : 'password' };
}
