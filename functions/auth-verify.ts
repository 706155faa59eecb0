// GET /auth/verify: identifies the caller for a reverse proxy. Open, because it checks the sign-in
// itself.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import { ADMIN_ROLE_GROUP, PROVIDER_ADMINS } from '@holdfast/kit/names';
import type { App } from '../shared/http/context.ts';
import { foreignCause } from '../shared/http/csrf-guard.ts';
import type { Deps } from '../shared/http/deps.ts';
import { apiRoute } from '../shared/http/route.ts';
import { credentialsOf, enter } from '../shared/http/sign-in.ts';
import { type Principal, roleInForce } from '../shared/sign-in/rules.ts';

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Behind the proxy may stand a service that takes whatever a signed-in browser sends: a page of
 * another site must not use that. Says why the request is refused before anybody is asked who it
 * is: another site's page has caused it, and it may change something, or opens a WebSocket, which
 * no browser keeps to its own site. Undefined: it is not, or the proxy does not say
 * (X-Forwarded-Method). Whoever invents these headers refuses nobody but himself.
 */
export function foreignForwarded({ headers, url }: Request, secure: boolean): string | undefined {
  const method = headers.get('x-forwarded-method');
  if ((method === null || SAFE.has(method)) && headers.get('sec-websocket-key') === null) return undefined;
  const host = headers.get('x-forwarded-host') ?? headers.get('host') ?? new URL(url).host;
  return foreignCause(headers, `https://${host}`, secure);
}

/** Remote-User and Remote-Groups. */
export interface Remote {
  user: string;
  groups: string;
}

export const REMOTE_NOBODY: Remote = { user: '', groups: '' };

/** Lets the request through. */
export function passed(requestId: string, { user, groups }: Remote): Response {
  const headers = {
    'X-Request-Id': requestId,
    'Cache-Control': 'no-store',
    'Content-Length': '0',
    'Remote-User': user,
    'Remote-Groups': groups,
  };
  return new Response(null, { status: 200, headers });
}

/** Why the proxy is to refuse, in a sentence. */
export function whyNotThrough(principal: Principal, role: 'viewer' | 'admin' | undefined): string | undefined {
  const { by } = principal;
  if (by.kind === 'metrics')
    return 'METRICS_TOKEN can read only health, metrics and alerts. Sign in, or use an API token.';
  if (by.kind === 'break-glass')
    return 'The directory does not answer. Until it does, webadmin can read only health, metrics and alerts.';
  if (by.kind === 'token' && by.scope === 'users')
    return 'This token has the scope users: it can use only users, groups, enrollment and certificates.';
  const held = roleInForce(principal);
  if (role === 'admin' && held !== 'admin') return 'This requires the role admin.';
  if (role === 'viewer' && held === 'none') return 'This requires the role viewer or admin.';
  return undefined;
}

/**
 * Who it is, where ADMIN_GROUP has this name. A token that may only read must not be taken for an
 * administrator by what stands behind the proxy.
 */
export function remoteOf({ username, groups, by }: Principal, adminGroup: string): Remote {
  const limited = by.kind === 'token' && by.scope !== 'admin';
  const administrators = [ADMIN_ROLE_GROUP, adminGroup, PROVIDER_ADMINS].map((name) => name.toLowerCase());
  const shown = limited ? groups.filter((name) => !administrators.includes(name.toLowerCase())) : groups;
  return { user: PLAIN.test(username) ? username : encoded(username), groups: shown.map(encoded).join(',') };
}

/**
 * Visible ASCII, spaces within; a percent sign is encoded, so that nobody's name reads as the
 * encoded name of another.
 */
const PLAIN = /^(?:[!-$&-~](?:[ -$&-~]*[!-$&-~])?)?$/;

function encoded(name: string): string {
  return encodeURIComponent(name.toWellFormed());
}

/** What the query asks for: a role, or the core base. */
export type VerifyDemand = { base: 'core' } | { base: 'web'; role: 'viewer' | 'admin' | undefined };

/**
 * Throws `malformed` for names and values that are unknown or given twice, and for a role together
 * with the core base: a demand with a slip of the pen would else let everybody in.
 */
export function verifyDemandOf(query: URLSearchParams): VerifyDemand {
  for (const name of query.keys()) {
    if (name !== 'role' && name !== 'base')
      throw new AppError('malformed', `Unknown parameter "${shown(name)}". Use role or base.`);
    if (query.getAll(name).length > 1) throw new AppError('malformed', `Give the parameter ${name} only once.`);
  }
  const role = query.get('role') ?? undefined;
  const base = query.get('base') ?? undefined;
  if (base !== undefined && base !== 'core')
    throw new AppError('malformed', `base is "${shown(base)}"; use core, or omit it.`);
  if (role !== undefined && role !== 'viewer' && role !== 'admin')
    throw new AppError('malformed', `role is "${shown(role)}"; use viewer or admin, or omit it.`);
  if (base === undefined) return { base: 'web', role };
  if (role === undefined) return { base };
  throw new AppError('malformed', 'With base=core, omit role: the core checks permissions itself.');
}

function shown(text: string): string {
  return text.slice(0, 50);
}

const remoteHeader = (description: string) => ({ description, schema: { type: 'string' as const } });

export const verifyRoute = apiRoute(
  {
    method: 'get',
    path: '/auth/verify',
    summary: 'Identifies the caller for a reverse proxy: Basic, session cookie or Bearer',
    tags: ['sign-in'],
    request: {
      query: z.object({
        role: z.enum(['viewer', 'admin']).optional().openapi({ description: 'Requires this role; 403 without it' }),
        base: z.literal('core').optional().openapi({
          description:
            'Checks Basic as the core does (including app passwords); leaves a Bearer to the core. Not together with role',
        }),
      }),
    },
    responses: {
      200: {
        description: 'Let the request through. With base=core both headers are empty',
        headers: {
          'Remote-User': remoteHeader('The username; percent-encoded unless plain ASCII'),
          'Remote-Groups': remoteHeader('Group names, each percent-encoded, separated by commas'),
        },
      },
    },
  },
  { access: 'open', fails: ['malformed', 'unauthenticated', 'forbidden', 'locked_out', 'upstream', 'unavailable'] },
);

/** Adds the route of this file. */
export function authVerifyFunction(
  app: App,
  { authenticator, settings }: Pick<Deps, 'authenticator' | 'settings'>,
): void {
  app.openAPIRegistry.registerPath(verifyRoute);
  app.get(verifyRoute.path, async function verify(c) {
    const demand = verifyDemandOf(new URL(c.req.url).searchParams);
    const foreign = foreignForwarded(c.req.raw, c.env.secure);
    if (foreign !== undefined) throw new AppError('forbidden', foreign);
    const credentials = credentialsOf(c);
    // Not 401, which would be taken for a wrong password: a proxy that garbles the header is to be
    // noticed.
    if (credentials.kind === 'unreadable')
      throw new AppError('malformed', 'The Authorization header has no username and password separated by a colon.');
    if (demand.base === 'core') {
      if (credentials.kind === 'bearer') return passed(c.env.requestId, REMOTE_NOBODY);
      await enter(c, authenticator, credentials.kind === 'basic' ? credentials : { kind: 'none' }, 'core');
      return passed(c.env.requestId, REMOTE_NOBODY);
    }
    const principal = await enter(c, authenticator, credentials);
    const reason = whyNotThrough(principal, demand.role);
    if (reason !== undefined) throw new AppError('forbidden', reason);
    return passed(c.env.requestId, remoteOf(principal, settings.ADMIN_GROUP));
  });
}
