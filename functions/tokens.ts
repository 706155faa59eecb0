// GET, POST /api/tokens, DELETE /api/tokens/{id}: API tokens for programs. A token acts for the person who made it, and dies
// with that person's right to come in. Its text is shown once.

import { z } from '@hono/zod-openapi';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { pageOf, pagingQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { wantedTokenSchema } from '../shared/http/schemas/people.ts';
import { actorOf } from '../shared/http/sign-in.ts';
import type { ApiToken } from '../shared/sign-in/port.ts';
import { SCOPES } from '../shared/sign-in/principal.ts';
import { createToken, revokeToken } from '../shared/sign-in/tokens.ts';

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
  .extend({ token: z.string().openapi({ description: 'The text itself; it is shown nowhere again' }) })
  .openapi('NewToken');

const pageSchema = pageOf(tokenSchema, 'TokenPage');

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/tokens',
    summary: 'API tokens that are valid, newest first, without their texts',
    tags: ['sign-in'],
    request: { query: z.object(pagingQuery()) },
    responses: { 200: jsonAnswer('A page of tokens', pageSchema) },
  },
  { access: 'admin', fails: ['invalid'] },
);

const createRoute = apiRoute(
  {
    method: 'post',
    path: '/api/tokens',
    summary: 'Makes an API token of your own; only this answer shows it',
    tags: ['sign-in'],
    request: { body: { content: { 'application/json': { schema: wantedTokenSchema } }, required: true } },
    responses: { 201: jsonAnswer('The token', newTokenSchema) },
  },
  { access: 'admin' },
);

const revokeRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/tokens/{id}',
    summary: 'Revokes an API token, whoever made it',
    tags: ['sign-in'],
    request: { params: z.object({ id: z.string().max(100) }) },
    responses: { 204: { description: 'It is revoked' } },
  },
  { access: 'admin', fails: ['not_found', 'invalid'] },
);

/** Adds the routes of this file. */
export function tokensFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listTokens(c) {
    const { page, page_size } = c.req.valid('query');
    const { results, count } = await deps.signIns.tokens({ page, pageSize: page_size });
    c.header('Cache-Control', 'no-store');
    return c.json({ results: results.map(shown), count, page, page_size }, 200);
  });

  app.openapi(createRoute, async function makeToken(c) {
    const { name, scope, expires_at: expiresAt } = c.req.valid('json');
    const { username: owner } = c.get('principal');
    const made = await createToken({ deps, actor: actorOf(c) }, { owner, name, scope, expiresAt });
    c.header('Cache-Control', 'no-store');
    return c.json({ ...shown(made), token: made.text }, 201);
  });

  app.openapi(revokeRoute, async function endToken(c) {
    await revokeToken({ deps, actor: actorOf(c) }, c.req.valid('param'));
    return c.body(null, 204);
  });
}

function shown({ id, name, scope, owner, createdAt, expiresAt }: ApiToken): z.infer<typeof tokenSchema> {
  return { id, name, scope, owner, created_at: createdAt, expires_at: expiresAt };
}
