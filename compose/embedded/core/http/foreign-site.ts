// No page of another site can make a browser change anything here. Whoever sends neither Origin nor Sec-Fetch-Site is no
// browser, and is let through.

import type { CoreConnection } from '../parts.ts';

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);
const OWN_FETCH_SITES = new Set(['same-origin', 'none']);

/** True for a request of an unsafe method that a page of another site has caused. */
export function isFromForeignSite(
  { method, headers, url }: Request,
  { secure }: Pick<CoreConnection, 'secure'>,
): boolean {
  if (SAFE.has(method)) return false;
  const site = headers.get('sec-fetch-site');
  if (site !== null && !OWN_FETCH_SITES.has(site)) return true;
  const origin = headers.get('origin');
  return origin !== null && !isOurs(origin, `${secure ? 'https' : 'http'}://${new URL(url).host}`);
}

function isOurs(origin: string, own: string): boolean {
  return (
    /^https?:\/\/[^/?#@\\\s]+$/i.test(origin) && URL.canParse(origin) && new URL(origin).origin === new URL(own).origin
  );
}
