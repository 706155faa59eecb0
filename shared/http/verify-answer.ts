// What /auth/verify answers when it is known who asks: why the proxy is to refuse, or the headers that say who it is.

import { ADMIN_ROLE_GROUP, PROVIDER_ADMINS } from '../domain/names.ts';
import { type Principal, roleInForce } from '../domain/principal.ts';

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
