// The API of sessions, API tokens and lockouts.

import { z } from '@hono/zod-openapi';
import { type App, clearSessionCookie } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { pageOf, pagingQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { wantedTokenSchema } from '../shared/http/schemas/people.ts';
import { actorOf } from '../shared/http/sign-in.ts';
import type { ApiToken } from '../shared/sign-in/port.ts';
import { SCOPES } from '../shared/sign-in/rules.ts';
import { createToken, endSession, endSessions, releaseLockout, revokeToken } from '../shared/sign-in/tokens.ts';

const sessionSchema = z
  .object({
    id: z.string(),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    address: z.string().openapi({ description: "The client's address at sign-in" }),
    user_agent: z.string(),
    current: z.boolean().openapi({ description: 'True for the session of this request' }),
  })
  .openapi('Session');

const sessionPageSchema = pageOf(sessionSchema, 'SessionPage');

const listSessionsRoute = apiRoute(
  {
    method: 'get',
    path: '/api/sessions',
    summary: 'Lists your sessions, newest first',
    tags: ['sign-in'],
    request: { query: z.object(pagingQuery()) },
    responses: { 200: jsonAnswer('A page of sessions', sessionPageSchema) },
  },
  { access: 'own', fails: ['invalid'] },
);

const endSessionsRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/sessions',
    summary: 'Ends all of your sessions, including this one',
    tags: ['sign-in'],
    responses: { 204: { description: 'The sessions have ended' } },
  },
  { access: 'own' },
);

const endSessionRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/sessions/{id}',
    summary: 'Ends one of your sessions',
    tags: ['sign-in'],
    request: { params: z.object({ id: z.string().max(100) }) },
    responses: { 204: { description: 'The session has ended' } },
  },
  { access: 'own', fails: ['not_found', 'invalid'] },
);

/** Adds the routes below /api/sessions. */
export function sessionsFunction(app: App, deps: Deps): void {
  app.openapi(listSessionsRoute, async function listSessions(c) {
    const { page, page_size } = c.req.valid('query');
    const { username, by } = c.get('principal');
    const { results, count } = await deps.signIns.sessions(username, { page, pageSize: page_size });
    const shown = results.map((session) => ({
      id: session.id,
      created_at: session.createdAt,
      expires_at: session.expiresAt,
      address: session.address,
      user_agent: session.userAgent,
      current: by.kind === 'session' && by.id === session.id,
    }));
    c.header('Cache-Control', 'no-store');
    return c.json({ results: shown, count, page, page_size }, 200);
  });

  app.openapi(endSessionsRoute, async function endAllSessions(c) {
    await endSessions(deps, actorOf(c), c.get('principal').username);
    clearSessionCookie(c);
    return c.body(null, 204);
  });

  app.openapi(endSessionRoute, async function endOneSession(c) {
    const { username, by } = c.get('principal');
    const { id } = c.req.valid('param');
    await endSession(deps, actorOf(c), { username, id });
    if (by.kind === 'session' && by.id === id.toLowerCase()) clearSessionCookie(c);
    return c.body(null, 204);
  });
}

const tokenSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    scope: z.enum(SCOPES),
    owner: z.string(),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
  })
  .openapi('Token');

const newTokenSchema = tokenSchema
  .extend({ token: z.string().openapi({ description: 'The token itself; it is never shown again' }) })
  .openapi('NewToken');

const tokenPageSchema = pageOf(tokenSchema, 'TokenPage');

const listTokensRoute = apiRoute(
  {
    method: 'get',
    path: '/api/tokens',
    summary: 'Lists valid API tokens, newest first, without their texts',
    tags: ['sign-in'],
    request: { query: z.object(pagingQuery()) },
    responses: { 200: jsonAnswer('A page of tokens', tokenPageSchema) },
  },
  { access: 'admin', fails: ['invalid'] },
);

const createTokenRoute = apiRoute(
  {
    method: 'post',
    path: '/api/tokens',
    summary: 'Creates an API token of your own; only this response shows it',
    tags: ['sign-in'],
    request: { body: { content: { 'application/json': { schema: wantedTokenSchema } }, required: true } },
    responses: { 201: jsonAnswer('The token', newTokenSchema) },
  },
  { access: 'admin' },
);

const revokeTokenRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/tokens/{id}',
    summary: 'Revokes an API token, no matter who created it',
    tags: ['sign-in'],
    request: { params: z.object({ id: z.string().max(100) }) },
    responses: { 204: { description: 'The token is revoked' } },
  },
  { access: 'admin', fails: ['not_found', 'invalid'] },
);

/**
 * Adds the routes below /api/tokens. A token acts for the person who made it, and ends with that
 * person's right to sign in.
 */
export function tokensFunction(app: App, deps: Deps): void {
  app.openapi(listTokensRoute, async function listTokens(c) {
    const { page, page_size } = c.req.valid('query');
    const { results, count } = await deps.signIns.tokens({ page, pageSize: page_size });
    c.header('Cache-Control', 'no-store');
    return c.json({ results: results.map(toTokenView), count, page, page_size }, 200);
  });

  app.openapi(createTokenRoute, async function makeToken(c) {
    const { name, scope, expires_at: expiresAt } = c.req.valid('json');
    const { username: owner } = c.get('principal');
    const made = await createToken({ deps, actor: actorOf(c) }, { owner, name, scope, expiresAt });
    c.header('Cache-Control', 'no-store');
    return c.json({ ...toTokenView(made), token: made.text }, 201);
  });

  app.openapi(revokeTokenRoute, async function endToken(c) {
    await revokeToken({ deps, actor: actorOf(c) }, c.req.valid('param'));
    return c.body(null, 204);
  });
}

function toTokenView({ id, name, scope, owner, createdAt, expiresAt }: ApiToken): z.infer<typeof tokenSchema> {
  return { id, name, scope, owner, created_at: createdAt, expires_at: expiresAt };
}

const lockoutSchema = z
  .object({
    address: z.string().openapi({ description: 'The counted address: IPv6 by its /64', example: '2001:db8:0:1::/64' }),
    door: z.string().openapi({ description: 'The endpoints that share the count' }),
    failures: z.int(),
    locked_until: z.iso.datetime(),
  })
  .openapi('Lockout');

const listLockoutsRoute = apiRoute(
  {
    method: 'get',
    path: '/api/lockouts',
    summary: 'Lists addresses that are locked out after too many wrong passwords, soonest free first',
    tags: ['sign-in'],
    responses: { 200: jsonAnswer('Addresses that are locked out now', z.object({ results: z.array(lockoutSchema) })) },
  },
  { access: 'admin' },
);

const releaseLockoutRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/lockouts/{address}',
    summary: 'Unlocks an address; percent-encode it (2001:db8:0:1::%2F64)',
    tags: ['sign-in'],
    request: {
      params: z.object({
        address: z
          .string()
          .regex(
            /^[\dA-Fa-f.:]{2,45}(?:%[\w.-]{1,16})?(?:\/64)?$/,
            'must be an address as listed by GET /api/lockouts',
          ),
      }),
    },
    responses: { 204: { description: 'The address can try again' } },
  },
  { access: 'admin', fails: ['not_found', 'invalid'] },
);

/** Adds the routes of this file. */
export function lockoutsFunction(app: App, deps: Deps): void {
  app.openapi(listLockoutsRoute, async function listLockouts(c) {
    c.header('Cache-Control', 'no-store');
    return c.json({ results: await deps.authenticator.lockouts() }, 200);
  });
  app.openapi(releaseLockoutRoute, async function release(c) {
    await releaseLockout(deps, actorOf(c), c.req.valid('param').address);
    return c.body(null, 204);
  });
}
