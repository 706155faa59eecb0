// /api/users: the people who can sign in. Program and provider accounts are hidden unless
// requested.

import { z } from '@hono/zod-openapi';
import { toUserView, userOf } from '../shared/devices/accounts.ts';
import { certificatesOf, certificatesOfUser } from '../shared/devices/certificates/of-user.ts';
import { orAsWritten, withProblem } from '../shared/devices/certificates/while-core-is-unavailable.ts';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { bodyOf, includeQuery, pageOf, pagingQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { certsError } from '../shared/http/schemas/certificates.ts';
import {
  emailAddress,
  expiry,
  groupNames,
  newPassword,
  searchQuery,
  displayName,
  userId,
  userSchema,
} from '../shared/http/schemas/people.ts';
import { actingIn } from '../shared/http/sign-in.ts';
import { setUserGroups } from '../shared/people/channel-membership.ts';
import { createUser, setUserPassword } from '../shared/people/create-user.ts';
import { deactivateUser, updateUser } from '../shared/people/deactivate-user.ts';
import { ROLES } from '../shared/sign-in/rules.ts';

const WORDS = ['certs', 'hidden'] as const;
const tags = ['users'];
const params = z.object({ id: z.string().openapi({ type: 'integer' }) });

const pageSchema = pageOf(userSchema, 'UserPage').extend({ certs_error: certsError });

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/users',
    summary: 'Lists users by username',
    tags,
    request: {
      query: z.object({
        search: searchQuery.openapi({ description: 'Part of the username, name or email address' }),
        ...pagingQuery(9_999_999),
        include: includeQuery(WORDS),
      }),
    },
    responses: { 200: jsonAnswer('A page of users', pageSchema) },
  },
  { access: 'viewer', area: 'people', fails: ['invalid', 'upstream', 'unavailable'] },
);

const createRoute = apiRoute(
  {
    method: 'post',
    path: '/api/users',
    summary: 'Creates a user, without a password yet',
    tags,
    request: bodyOf({
      username: z.string().max(1000).openapi({ pattern: '^[A-Za-z0-9._-]{1,64}$' }),
      name: displayName,
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
    summary: 'Returns a user',
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
    summary: 'Changes the given fields, after checking all of them',
    tags,
    request: {
      params,
      ...bodyOf({
        name: displayName.optional(),
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
    summary: 'Deactivates a user: all access ends; the record is kept',
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
      ...toUserView(each, deps),
      ...(certificates === undefined ? {} : { certs: certificates.get(each.username) ?? [] }),
    }));
    c.header('Cache-Control', 'no-store');
    return c.json(withProblem({ results: users, count, page, page_size: pageSize }, problem()), 200);
  });
  app.openapi(createRoute, async function makeUser(c) {
    const account = await createUser(actingIn(c, deps), c.req.valid('json'));
    c.header('Cache-Control', 'no-store');
    return c.json(toUserView(account, deps), 201);
  });
  app.openapi(readRoute, async function readUser(c) {
    const withHidden = c.req.valid('query').include?.has('hidden') === true;
    const account = await userOf(deps, userId(c.req.valid('param').id), { withHidden });
    const certificates = await certificatesOfUser(deps, account);
    c.header('Cache-Control', 'no-store');
    return c.json({ ...toUserView(account, deps), ...certificates }, 200);
  });
  app.openapi(updateRoute, async function changeUser(c) {
    const id = userId(c.req.valid('param').id);
    const account = await updateUser(actingIn(c, deps), { id, ...c.req.valid('json') });
    c.header('Cache-Control', 'no-store');
    return c.json(toUserView(account, deps), 200);
  });
  app.openapi(deactivateRoute, async function endUser(c) {
    const account = await deactivateUser(actingIn(c, deps), { id: userId(c.req.valid('param').id) });
    c.header('Cache-Control', 'no-store');
    return c.json(toUserView(account, deps), 200);
  });
}

const route = apiRoute(
  {
    method: 'put',
    path: '/api/users/{id}/groups',
    summary: "Sets a user's channels to exactly these; other groups stay",
    tags: ['users'],
    request: {
      params: z.object({ id: z.string().openapi({ type: 'integer' }) }),
      ...bodyOf({ groups: groupNames }),
    },
    responses: { 200: jsonAnswer('The user', userSchema) },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'upstream', 'unavailable'] },
);

/**
 * PUT /api/users/{id}/groups: the channels of a user, all at once.
 * Adds the route of this file.
 */
export function userGroupsFunction(app: App, deps: Deps): void {
  app.openapi(route, async function putGroups(c) {
    const { groups } = c.req.valid('json');
    const account = await setUserGroups(actingIn(c, deps), { id: userId(c.req.valid('param').id), groups });
    c.header('Cache-Control', 'no-store');
    return c.json(toUserView(account, deps), 200);
  });
}

const passwordRoute = apiRoute(
  {
    method: 'post',
    path: '/api/users/{id}/password',
    summary: "Sets a user's password and signs the user out everywhere",
    tags: ['users'],
    request: {
      params: z.object({ id: z.string().openapi({ type: 'integer' }) }),
      ...bodyOf({ password: newPassword }),
    },
    responses: { 204: { description: 'The password is set' } },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'upstream', 'unavailable'] },
);

/**
 * POST /api/users/{id}/password: a new password for a user, who is signed out everywhere.
 * Adds the route of this file.
 */
export function userPasswordFunction(app: App, deps: Deps): void {
  app.openapi(passwordRoute, async function setPassword(c) {
    const { password } = c.req.valid('json');
    await setUserPassword(actingIn(c, deps), { id: userId(c.req.valid('param').id), password });
    return c.body(null, 204);
  });
}
