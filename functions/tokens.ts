// GET, POST /api/tokens, DELETE /api/tokens/{id}: API tokens for programs. A token acts for the person who made it, and dies
// with that person's right to come in. Its text is shown once.

import { z } from '@hono/zod-openapi';
import { AppError } from '../shared/domain/app-error.ts';
import { SCOPES } from '../shared/domain/principal.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { pageOf, pagingQuery } from '../shared/http/listing.ts';
import { timeText } from '../shared/http/query.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { actorOf } from '../shared/http/sign-in.ts';
import type { ApiToken } from '../shared/ports/sign-ins.ts';
import { audited } from '../shared/verbs/audited.ts';

const MOST_YEARS = 5;

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

const wantedSchema = z
  .object({
    name: z
      .string()
      .trim()
      .min(1, 'must have 1 to 64 characters')
      .refine((name) => Array.from(name).length <= 64, 'must have 1 to 64 characters')
      .refine((name) => !/[\p{C}\p{Zl}\p{Zp}]/u.test(name), 'must have printable characters only')
      .openapi({ minLength: 1, maxLength: 64 }),
    scope: z.enum(SCOPES).openapi({
      description:
        'read: what a viewer may read. users: users, groups, enrollment and certificates. admin: what its owner may do',
    }),
    expires_at: timeText(),
  })
  .openapi('WantedToken');

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
    request: { body: { content: { 'application/json': { schema: wantedSchema } }, required: true } },
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

  app.openapi(createRoute, async function createToken(c) {
    const { name, scope, expires_at: expiresAt } = c.req.valid('json');
    requireLifetime(expiresAt, deps.now());
    const { username: owner } = c.get('principal');
    const epoch = await deps.signIns.epoch(owner);
    const id = crypto.randomUUID();
    const detail = { id, scope, owner, expires_at: expiresAt };
    const made = await audited(deps, { actor: actorOf(c), action: 'token.create', target: name, detail }, () =>
      deps.signIns.createToken({ id, epoch, name, scope, owner, expiresAt }),
    );
    c.header('Cache-Control', 'no-store');
    return c.json({ ...shown(made), token: made.text }, 201);
  });

  app.openapi(revokeRoute, async function revokeToken(c) {
    const { id } = c.req.valid('param');
    const token = await deps.signIns.token(id);
    if (token === undefined) throw unknown(id);
    const { name, scope, owner, expiresAt } = token;
    const detail = { id: token.id, scope, owner, expires_at: expiresAt };
    await audited(deps, { actor: actorOf(c), action: 'token.revoke', target: name, detail }, async () => {
      const ended = await deps.signIns.endToken(token.id);
      await deps.doors.forget(owner);
      if (!ended) throw unknown(id);
    });
    return c.body(null, 204);
  });
}

function shown({ id, name, scope, owner, createdAt, expiresAt }: ApiToken): z.infer<typeof tokenSchema> {
  return { id, name, scope, owner, created_at: createdAt, expires_at: expiresAt };
}

function requireLifetime(expiresAt: string, now: Date): void {
  const last = new Date(now);
  last.setUTCFullYear(last.getUTCFullYear() + MOST_YEARS);
  const expires = Date.parse(expiresAt);
  if (expires > now.getTime() && expires <= last.getTime()) return;
  const message = `must be in the future and at most ${MOST_YEARS} years ahead, not ${expiresAt}`;
  throw new AppError('invalid', `expires_at: ${message}`, { fields: [{ path: 'expires_at', message }] });
}

function unknown(id: string): AppError {
  return new AppError('not_found', `There is no API token with the id "${id}"; GET /api/tokens lists them.`);
}
