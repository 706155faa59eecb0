// What a proxy says of the request that it asks about at /auth/verify. Behind the proxy may stand a service that takes
// whatever a signed-in browser sends: a page of another site must not use that.

import { foreignCause } from './unsafe-guard.ts';

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
