// /api/lockouts: lists addresses that are locked out, and unlocks them.

import { z } from '@hono/zod-openapi';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { actorOf } from '../shared/http/sign-in.ts';
import { releaseLockout } from '../shared/sign-in/tokens.ts';

const lockoutSchema = z
  .object({
    address: z.string().openapi({ description: 'The counted address: IPv6 by its /64', example: '2001:db8:0:1::/64' }),
    door: z.string().openapi({ description: 'The endpoints that share the count' }),
    failures: z.int(),
    locked_until: z.iso.datetime(),
  })
  .openapi('Lockout');

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/lockouts',
    summary: 'Lists addresses that are locked out after too many wrong passwords, soonest free first',
    tags: ['sign-in'],
    responses: { 200: jsonAnswer('Addresses that are locked out now', z.object({ results: z.array(lockoutSchema) })) },
  },
  { access: 'admin' },
);

const releaseRoute = apiRoute(
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
  app.openapi(listRoute, async function listLockouts(c) {
    c.header('Cache-Control', 'no-store');
    return c.json({ results: await deps.authenticator.lockouts() }, 200);
  });
  app.openapi(releaseRoute, async function release(c) {
    await releaseLockout(deps, actorOf(c), c.req.valid('param').address);
    return c.body(null, 204);
  });
}
