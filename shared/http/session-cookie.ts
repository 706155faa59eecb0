// The cookie of a session: for this host alone where the connection is encrypted, out of reach of scripts always.

import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import type { AppEnv } from './env.ts';

export const SESSION_HOURS = 12;

/** `__Host-` makes browsers refuse it without TLS, so plain HTTP (loopback) has a name without it. */
export function sessionCookieName(secure: boolean): string {
  return secure ? '__Host-holdfast' : 'holdfast';
}

/** What the request carries as the cookie of a session, whatever that is worth. */
export function givenSessionCookie(c: Context<AppEnv>): string | undefined {
  const cookie = getCookie(c, sessionCookieName(c.env.secure));
  return cookie === '' ? undefined : cookie;
}

export function setSessionCookie(c: Context<AppEnv>, text: string): void {
  const { secure } = c.env;
  const maxAge = SESSION_HOURS * 3600;
  setCookie(c, sessionCookieName(secure), text, { path: '/', httpOnly: true, sameSite: 'Lax', secure, maxAge });
}

export function clearSessionCookie(c: Context<AppEnv>): void {
  const { secure } = c.env;
  deleteCookie(c, sessionCookieName(secure), { path: '/', httpOnly: true, sameSite: 'Lax', secure });
}
