// /api/service-accounts: programs' accounts, each with exactly one certificate.

import { z } from '@hono/zod-openapi';
import { SERVICE_KINDS } from '@holdfast/kit/names';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { bodyOf, pageOf, pagingQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { certificateSchema, certsError } from '../shared/http/schemas/certificates.ts';
import { groupNames, userId } from '../shared/http/schemas/people.ts';
import { actingIn } from '../shared/http/sign-in.ts';
import { addServiceAccount } from '../shared/people/service-accounts/create.ts';
import {
  deleteServiceAccount,
  listServiceAccounts,
  readServiceAccount,
} from '../shared/people/service-accounts/service-accounts.ts';

const tags = ['service accounts'];
const params = z.object({ id: z.string().openapi({ type: 'integer' }) });

const accountSchema = z
  .object({
    id: z.int(),
    username: z.string().openapi({ description: 'With the prefix svc_' }),
    kind: z.enum(SERVICE_KINDS).openapi({ description: "admin: its certificate may use the core's admin API" }),
    groups: z.array(z.string()).openapi({ description: 'Channels, with the prefix core_' }),
    is_active: z.boolean(),
    certificate: certificateSchema
      .nullable()
      .openapi({ description: 'For a deleted account the revoked one; null: there is none' }),
  })
  .openapi('ServiceAccount');

const readAccountSchema = accountSchema.extend({ certs_error: certsError }).openapi('ReadServiceAccount');

const newAccountSchema = accountSchema
  .extend({
    p12_base64: z.string().optional().openapi({
      description: 'PKCS#12 with the key, when keys are not kept (KEEP_CLIENT_KEYS=false); never shown again',
    }),
    admin_right: z.enum(['given', 'pending']).optional().openapi({
      description: 'Kind admin only. pending: the core has not confirmed the right yet; Holdfast finishes it',
    }),
  })
  .openapi('NewServiceAccount');

const pageSchema = pageOf(accountSchema, 'ServiceAccountPage').extend({ certs_error: certsError });

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/service-accounts',
    summary: 'Lists service accounts by username, including deleted ones',
    tags,
    request: { query: z.object(pagingQuery(9_999_999)) },
    responses: { 200: jsonAnswer('A page of service accounts', pageSchema) },
  },
  { access: 'viewer', area: 'people', fails: ['invalid', 'upstream', 'unavailable'] },
);

const createRoute = apiRoute(
  {
    method: 'post',
    path: '/api/service-accounts',
    summary: 'Creates a service account with its certificate; restores a deleted one with a new certificate',
    tags,
    request: bodyOf({
      name: z.string().max(1000).openapi({
        description: 'With or without the prefix svc_; followed by 1 to 60 letters, digits and . _ -; not svc_feed_',
      }),
      kind: z.enum(SERVICE_KINDS),
      groups: groupNames.optional(),
    }),
    responses: { 201: jsonAnswer('The account', newAccountSchema) },
  },
  { access: 'admin', area: 'people', fails: ['conflict', 'upstream', 'unavailable'] },
);

const readRoute = apiRoute(
  {
    method: 'get',
    path: '/api/service-accounts/{id}',
    summary: 'Returns a service account',
    tags,
    request: { params },
    responses: { 200: jsonAnswer('The account', readAccountSchema) },
  },
  { access: 'viewer', area: 'people', fails: ['not_found', 'upstream', 'unavailable'] },
);

const deleteRoute = apiRoute(
  {
    method: 'delete',
    path: '/api/service-accounts/{id}',
    summary: 'Deletes a service account: deactivates it and revokes its certificate; the record is kept',
    tags,
    request: { params },
    responses: { 200: jsonAnswer('The account, deactivated', accountSchema) },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'conflict', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function serviceAccountsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listAccounts(c) {
    const { page, page_size: pageSize } = c.req.valid('query');
    const found = await listServiceAccounts(deps, { page, pageSize });
    c.header('Cache-Control', 'no-store');
    return c.json({ ...found, page, page_size: pageSize }, 200);
  });
  app.openapi(createRoute, async function makeAccount(c) {
    const acting = actingIn(c, deps);
    const { p12, ...account } = await addServiceAccount(acting, c.req.valid('json'));
    c.header('Cache-Control', 'no-store');
    return c.json({ ...account, ...(p12 === undefined ? {} : { p12_base64: p12 }) }, 201);
  });
  app.openapi(readRoute, async function readAccount(c) {
    const account = await readServiceAccount(deps, { id: userId(c.req.valid('param').id) });
    c.header('Cache-Control', 'no-store');
    return c.json(account, 200);
  });
  app.openapi(deleteRoute, async function endAccount(c) {
    const account = await deleteServiceAccount(actingIn(c, deps), { id: userId(c.req.valid('param').id) });
    c.header('Cache-Control', 'no-store');
    return c.json(account, 200);
  });
}
