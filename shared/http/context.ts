// What the host hands to every request, and what the middleware adds to it.

import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import type { Principal, RouteDemand } from '../sign-in/rules.ts';

/** Whose pages are served: those of whoever runs the stack, or those of everybody. */
export const FACES = ['console', 'portal'] as const;
export type Face = (typeof FACES)[number];

/**
 * From the host: the address and scheme of the client; of a header only where a trusted proxy has
 * set it.
 */
export interface Bindings {
  requestId: string;
  clientAddress: string;
  secure: boolean;
  /** By the listener that took the connection, never by a header; default `console`. */
  face?: Face;
}

export interface Variables {
  principal: Principal;
  /** Of the route that was let through. */
  demand: RouteDemand;
  /** Of a page: only the cookie of a session says who asks. */
  byCookieOnly?: true;
}

export interface AppEnv {
  Bindings: Bindings;
  Variables: Variables;
}

/** The app that functions add their routes to. */
export type App = OpenAPIHono<AppEnv>;

/**
 * The cookie of a session, for this host alone and out of reach of scripts, and where a person goes
 * after signing in.
 */
export const SESSION_HOURS = 12;
const MAX_RETURN_CHARACTERS = 2000;
/** Anything: only the path is kept. */
const HERE = 'http://here.invalid';

/**
 * `__Host-` makes browsers refuse it without TLS, so plain HTTP (loopback) has a name without it.
 */
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

/**
 * The path, with query and fragment, that this text stands for; `/` for everything that a browser
 * might take for another site, and for the two addresses that would lead in a circle.
 */
export function returnPath(text: string | undefined): string {
  if (text === undefined || text.length > MAX_RETURN_CHARACTERS) return '/';
  if (!/^\/(?![/\\])/.test(text) || /[\p{Cc}\\]/u.test(text) || !URL.canParse(text, HERE)) return '/';
  const { origin, pathname, search, hash } = new URL(text, HERE);
  if (origin !== HERE || pathname.startsWith('//') || /^\/sign-(in|out)\/*$/i.test(pathname)) return '/';
  return pathname + search + hash;
}
