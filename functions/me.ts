// /api/me: whoever is signed in, and how. POST /api/me/password changes one's own password.

import { z } from '@hono/zod-openapi';
import { AppError } from '../shared/domain/app-error.ts';
import type { Principal } from '../shared/domain/principal.ts';
import { SCOPES } from '../shared/domain/principal.ts';
import { actingIn } from '../shared/http/acting.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { bodyOf, newPassword, userSchema } from '../shared/http/people-schemas.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { clearSessionCookie } from '../shared/http/session-cookie.ts';
import { lockedOut } from '../shared/http/sign-in.ts';
import type { Account } from '../shared/ports/identity.ts';
import type { Entrance } from '../shared/ports/doors.ts';
import { shownUser } from '../shared/verbs/people.ts';
import { setUserPassword } from '../shared/verbs/set-user-password.ts';

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
    const account = await ownAccount(deps, principal);
    c.header('Cache-Control', 'no-store');
    return c.json({ ...shownUser(account, deps), signed_in_by: signedInBy(principal) }, 200);
  });
  app.openapi(passwordRoute, async function changeOwnPassword(c) {
    const { current_password: current, password } = c.req.valid('json');
    const { username, by } = c.get('principal');
    const { clientAddress: address, requestId } = c.env;
    mustBeIn(await deps.doors.password({ username, password: current, address, base: 'web', requestId }));
    const { id } = await ownAccount(deps, c.get('principal'));
    await setUserPassword(actingIn(c, deps, 'own', 'rest'), { id, password, withHidden: true });
    if (by.kind === 'session') clearSessionCookie(c);
    return c.body(null, 204);
  });
}

async function ownAccount({ identity }: Deps, { username }: Principal): Promise<Account> {
  const account = await identity.accounts.named(username);
  if (account !== undefined) return account;
  throw new AppError('not_found', `The identity provider knows no account ${username}.`);
}

function signedInBy({ by }: Principal): z.infer<typeof meSchema>['signed_in_by'] {
  if (by.kind === 'token') return { kind: 'token', scope: by.scope };
  return { kind: by.kind === 'session' ? 'session' : 'password' };
}

/** The password itself must have been judged: the emergency sign-in knows only that of the settings. */
function mustBeIn(entrance: Entrance): void {
  if (entrance.kind === 'locked') throw lockedOut(entrance.retryAfterSeconds);
  if (entrance.kind === 'refused') throw new AppError('unauthenticated', 'current_password is wrong.');
  if (entrance.principal.by.kind === 'break-glass')
    throw new AppError('unavailable', 'The directory does not answer, so no password can be changed. Try again later.');
}
