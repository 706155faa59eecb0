// GET, DELETE /api/sessions, DELETE /api/sessions/{id}: where the calling person is signed in, and the end of that.

import { z } from '@hono/zod-openapi';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { pageOf, pagingQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { clearSessionCookie } from '../shared/http/session-cookie.ts';
import { actorOf } from '../shared/http/sign-in.ts';
import { endSession, endSessions } from '../shared/sign-in/tokens.ts';

const sessionSchema = z
  .object({
    id: z.string(),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    address: z.string().openapi({ description: 'Of the client that signed in' }),
    user_agent: z.string(),
    current: z.boolean().openapi({ description: 'True for the session that this request came by' }),
  })
  .openapi('Session');

const pageSchema = pageOf(sessionSchema, 'SessionPage');

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/sessions',
    summary: 'Your own sessions, newest first',
    tags: ['sign-in'],
    request: { query: z.object(pagingQuery()) },
    responses: { 200: jsonAnswer('A page of sessions', pageSchema) },
  },
  { access: 'own', fails: ['invalid'] },
);

const endAllRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/sessions',
    summary: 'Ends all of your sessions, this one too',
    tags: ['sign-in'],
    responses: { 204: { description: 'They have ended' } },
  },
  { access: 'own' },
);

const endRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/sessions/{id}',
    summary: 'Ends one of your sessions',
    tags: ['sign-in'],
    request: { params: z.object({ id: z.string().max(100) }) },
    responses: { 204: { description: 'It has ended' } },
  },
  { access: 'own', fails: ['not_found', 'invalid'] },
);

/** Adds the routes of this file. */
export function sessionsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listSessions(c) {
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

  app.openapi(endAllRoute, async function endAllSessions(c) {
    await endSessions(deps, actorOf(c), c.get('principal').username);
    clearSessionCookie(c);
    return c.body(null, 204);
  });

  app.openapi(endRoute, async function endOneSession(c) {
    const { username, by } = c.get('principal');
    const { id } = c.req.valid('param');
    await endSession(deps, actorOf(c), { username, id });
    if (by.kind === 'session' && by.id === id.toLowerCase()) clearSessionCookie(c);
    return c.body(null, 204);
  });
}
