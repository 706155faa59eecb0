// /api/users: the people who may sign in. Programs and accounts of the provider are hidden unless they are asked for.

import { z } from '@hono/zod-openapi';
import { actingIn } from '../shared/http/acting.ts';
import { certsError } from '../shared/http/certificate-requests.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import {
  bodyOf,
  emailAddress,
  expiry,
  groupNames,
  includeQuery,
  searchQuery,
  shownName,
  userId,
  userSchema,
} from '../shared/http/people-schemas.ts';
import { pageOf, pagingQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { ROLES } from '../shared/domain/principal.ts';
import { certificatesOfUser } from '../shared/verbs/certificates-of-user.ts';
import { createUser } from '../shared/verbs/create-user.ts';
import { deactivateUser } from '../shared/verbs/deactivate-user.ts';
import { shownUser, userOf } from '../shared/verbs/people.ts';
import { updateUser } from '../shared/verbs/update-user.ts';
import { certificatesOf } from '../shared/verbs/user-certificates.ts';
import { orAsWritten, withProblem } from '../shared/verbs/while-core-is-away.ts';

const WORDS = ['certs', 'hidden'] as const;
const tags = ['users'];
const params = z.object({ id: z.string().openapi({ type: 'integer' }) });

const pageSchema = pageOf(userSchema, 'UserPage').extend({ certs_error: certsError });

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/users',
    summary: 'Users by username',
    tags,
    request: {
      query: z.object({
        search: searchQuery.openapi({ description: 'Part of the username, name or e-mail address' }),
        ...pagingQuery(9_999_999),
        include: includeQuery(WORDS),
      }),
    },
    responses: { 200: jsonAnswer('A page', pageSchema) },
  },
  { access: 'viewer', area: 'people', fails: ['invalid', 'upstream', 'unavailable'] },
);

const createRoute = apiRoute(
  {
    method: 'post',
    path: '/api/users',
    summary: 'Makes a user, who has no password yet',
    tags,
    request: bodyOf({
      username: z.string().max(1000).openapi({ pattern: '^[A-Za-z0-9._-]{1,64}$' }),
      name: shownName,
      email: emailAddress.optional(),
      groups: groupNames.optional(),
      expires_at: expiry.optional(),
    }),
    responses: { 201: jsonAnswer('The user', userSchema) },
  },
  { access: 'admin', area: 'people', fails: ['conflict', 'upstream', 'unavailable'] },
);

const readRoute = apiRoute(
  {
    method: 'get',
    path: '/api/users/{id}',
    summary: 'One user',
    tags,
    request: { params, query: z.object({ include: includeQuery(WORDS) }) },
    responses: { 200: jsonAnswer('The user', userSchema) },
  },
  { access: 'viewer', area: 'people', fails: ['not_found', 'invalid', 'upstream', 'unavailable'] },
);

const updateRoute = apiRoute(
  {
    method: 'patch',
    path: '/api/users/{id}',
    summary: 'Changes what is named; everything is checked before anything is changed',
    tags,
    request: {
      params,
      ...bodyOf({
        name: shownName.optional(),
        email: emailAddress.optional(),
        is_active: z.boolean().optional(),
        expires_at: expiry.optional(),
        role: z.enum(ROLES).optional(),
      }),
    },
    responses: { 200: jsonAnswer('The user', userSchema) },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'conflict', 'upstream', 'unavailable'] },
);

const deactivateRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/users/{id}',
    summary: 'Deactivates a user: nothing lets the person in any more; the record is kept',
    tags,
    request: { params },
    responses: { 200: jsonAnswer('The user', userSchema) },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'conflict', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function usersFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listUsers(c) {
    const { search = '', page, page_size: pageSize, include } = c.req.valid('query');
    const visible = { kinds: ['person'], without: deps.settings.USERS_HIDDEN_PREFIXES } as const;
    const { results, count } = await deps.identity.accounts.list({
      page,
      pageSize,
      search,
      ...(include?.has('hidden') === true ? {} : visible),
    });
    const { deps: readable, problem } = orAsWritten(deps);
    const certificates = include?.has('certs') === true ? await certificatesOf(readable, results) : undefined;
    const users = results.map((each) => ({
      ...shownUser(each, deps),
      ...(certificates === undefined ? {} : { certs: certificates.get(each.username) ?? [] }),
    }));
    c.header('Cache-Control', 'no-store');
    return c.json(withProblem({ results: users, count, page, page_size: pageSize }, problem()), 200);
  });
  app.openapi(createRoute, async function makeUser(c) {
    const account = await createUser(actingIn(c, deps), c.req.valid('json'));
    c.header('Cache-Control', 'no-store');
    return c.json(shownUser(account, deps), 201);
  });
  app.openapi(readRoute, async function readUser(c) {
    const withHidden = c.req.valid('query').include?.has('hidden') === true;
    const account = await userOf(deps, userId(c.req.valid('param').id), { withHidden });
    const certificates = await certificatesOfUser(deps, account);
    c.header('Cache-Control', 'no-store');
    return c.json({ ...shownUser(account, deps), ...certificates }, 200);
  });
  app.openapi(updateRoute, async function changeUser(c) {
    const id = userId(c.req.valid('param').id);
    const account = await updateUser(actingIn(c, deps), { id, ...c.req.valid('json') });
    c.header('Cache-Control', 'no-store');
    return c.json(shownUser(account, deps), 200);
  });
  app.openapi(deactivateRoute, async function endUser(c) {
    const account = await deactivateUser(actingIn(c, deps), { id: userId(c.req.valid('param').id) });
    c.header('Cache-Control', 'no-store');
    return c.json(shownUser(account, deps), 200);
  });
}
