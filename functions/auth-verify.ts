// GET /auth/verify: tells a reverse proxy who asks, before it lets a request through. Open, for it is itself the door.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { apiRoute } from '../shared/http/route.ts';
import { credentialsOf, enter } from '../shared/http/sign-in.ts';
import {
  foreignForwarded,
  passed,
  REMOTE_NOBODY,
  remoteOf,
  verifyDemandOf,
  whyNotThrough,
} from '../shared/http/verify.ts';

const remoteHeader = (description: string) => ({ description, schema: { type: 'string' as const } });

const route = apiRoute(
  {
    method: 'get',
    path: '/auth/verify',
    summary: 'Who asks, for a reverse proxy: Basic, session cookie or Bearer',
    tags: ['sign-in'],
    request: {
      query: z.object({
        role: z.enum(['viewer', 'admin']).optional().openapi({ description: 'Demands this role; 403 without it' }),
        base: z.literal('core').optional().openapi({
          description: 'Checks Basic as the core does (app passwords too); a Bearer is left to the core. Not with role',
        }),
      }),
    },
    responses: {
      200: {
        description: 'Let the request through. With base=core both headers are empty',
        headers: {
          'Remote-User': remoteHeader('The username; percent-encoded where it is not plain ASCII'),
          'Remote-Groups': remoteHeader('Names of groups, each percent-encoded, separated by commas'),
        },
      },
    },
  },
  { access: 'open', fails: ['malformed', 'unauthenticated', 'forbidden', 'locked_out', 'upstream', 'unavailable'] },
);

/** Adds the route of this file. */
export function authVerifyFunction(app: App, { doors, settings }: Pick<Deps, 'doors' | 'settings'>): void {
  app.openAPIRegistry.registerPath(route);
  app.get(route.path, async function verify(c) {
    const demand = verifyDemandOf(new URL(c.req.url).searchParams);
    const foreign = foreignForwarded(c.req.raw, c.env.secure);
    if (foreign !== undefined) throw new AppError('forbidden', foreign);
    const credentials = credentialsOf(c);
    // Not 401, which would be taken for a wrong password: a proxy that garbles the header is to be noticed.
    if (credentials.kind === 'unreadable')
      throw new AppError('malformed', 'The Authorization header has no name and password, separated by a colon.');
    if (demand.base === 'core') {
      if (credentials.kind === 'bearer') return passed(c.env.requestId, REMOTE_NOBODY);
      await enter(c, doors, credentials.kind === 'basic' ? credentials : { kind: 'none' }, 'core');
      return passed(c.env.requestId, REMOTE_NOBODY);
    }
    const principal = await enter(c, doors, credentials);
    const reason = whyNotThrough(principal, demand.role);
    if (reason !== undefined) throw new AppError('forbidden', reason);
    return passed(c.env.requestId, remoteOf(principal, settings.ADMIN_GROUP));
  });
}
