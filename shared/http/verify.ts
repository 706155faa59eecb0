// What a proxy says of the request that it asks about at /auth/verify. Behind the proxy may stand a service that takes
// whatever a signed-in browser sends: a page of another site must not use that.

import { AppError } from '@holdfast/kit/app-error';
import { ADMIN_ROLE_GROUP, PROVIDER_ADMINS } from '@holdfast/kit/names';
import { type Principal, roleInForce } from '../sign-in/principal.ts';
import { foreignCause } from './csrf-guard.ts';

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Why the request is refused before anybody is asked who it is: another site's page has caused it, and it may change
 * something, or opens a WebSocket, which no browser keeps to its own site. Undefined: it is not, or the proxy does not say
 * (X-Forwarded-Method). Whoever invents these headers refuses nobody but himself.
 */
export function foreignForwarded({ headers, url }: Request, secure: boolean): string | undefined {
  const method = headers.get('x-forwarded-method');
  if ((method === null || SAFE.has(method)) && headers.get('sec-websocket-key') === null) return undefined;
  const host = headers.get('x-forwarded-host') ?? headers.get('host') ?? new URL(url).host;
  return foreignCause(headers, `https://${host}`, secure);
}

// What /auth/verify answers when it is known who asks: why the proxy is to refuse, or the headers that say who it is.

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
  if (by.kind === 'metrics') return 'METRICS_TOKEN may read health, metrics and alerts, nothing else.';
  if (by.kind === 'break-glass')
    return 'The directory does not answer: until it does, webadmin may read health, metrics and alerts, nothing else.';
  if (by.kind === 'token' && by.scope === 'users')
    return 'This token has the scope users: it is good for users, groups, enrollment and certificates, nothing else.';
  const held = roleInForce(principal);
  if (role === 'admin' && held !== 'admin') return 'This needs the role admin.';
  if (role === 'viewer' && held === 'none') return 'This needs the role viewer or admin.';
  return undefined;
}

/**
 * Who it is, where ADMIN_GROUP has this name. A token that may only read must not be taken for an administrator by what
 * stands behind the proxy.
 */
export function remoteOf({ username, groups, by }: Principal, adminGroup: string): Remote {
  const limited = by.kind === 'token' && by.scope !== 'admin';
  const administrators = [ADMIN_ROLE_GROUP, adminGroup, PROVIDER_ADMINS].map((name) => name.toLowerCase());
  const shown = limited ? groups.filter((name) => !administrators.includes(name.toLowerCase())) : groups;
  return { user: PLAIN.test(username) ? username : encoded(username), groups: shown.map(encoded).join(',') };
}

/** Visible ASCII, spaces within; a percent sign is encoded, so that nobody's name reads as the encoded name of another. */
const PLAIN = /^(?:[!-$&-~](?:[ -$&-~]*[!-$&-~])?)?$/;

function encoded(name: string): string {
  return encodeURIComponent(name.toWellFormed());
}

// What /auth/verify is asked for, by its query: a role, or the core base. Anything that is not understood is refused: a
// demand with a slip of the pen would else let everybody in.

export type VerifyDemand = { base: 'core' } | { base: 'web'; role: 'viewer' | 'admin' | undefined };

/** Throws `malformed` for names and values that are unknown or given twice, and for a role together with the core base. */
export function verifyDemandOf(query: URLSearchParams): VerifyDemand {
  for (const name of query.keys()) {
    if (name !== 'role' && name !== 'base')
      throw new AppError('malformed', `There is no parameter "${shown(name)}" here. Use role, or base, or none.`);
    if (query.getAll(name).length > 1) throw new AppError('malformed', `Give the parameter ${name} once.`);
  }
  const role = query.get('role') ?? undefined;
  const base = query.get('base') ?? undefined;
  if (base !== undefined && base !== 'core')
    throw new AppError('malformed', `base is "${shown(base)}"; it can only be core, or be left out.`);
  if (role !== undefined && role !== 'viewer' && role !== 'admin')
    throw new AppError('malformed', `role is "${shown(role)}"; it can be viewer or admin, or be left out.`);
  if (base === undefined) return { base: 'web', role };
  if (role === undefined) return { base };
  throw new AppError('malformed', 'With base=core no role can be demanded: the core judges rights by itself.');
}

function shown(text: string): string {
  return text.slice(0, 50);
}
