// What a request carries to say who asks, and the two questions that every closed route puts to it:
// who is it, and may it. Identity headers of any other kind are not read.

import type { Context, MiddlewareHandler } from 'hono';
import { getCookie } from 'hono/cookie';
import { AppError } from '@holdfast/kit/app-error';
import type { DirectoryBase } from '@holdfast/kit/directory';
import type { Actor } from '../audit/port.ts';
import type { Authenticator } from '../sign-in/port.ts';
import { type Principal, type RouteDemand, whyNot } from '../sign-in/rules.ts';
import { type AppEnv, sessionCookieName } from './context.ts';
import type { Deps } from './deps.ts';
import type { Problem } from './problem.ts';

export type Credentials =
  | { kind: 'none' }
  | { kind: 'basic'; username: string; password: string }
  | { kind: 'bearer'; token: string }
  | { kind: 'session'; cookie: string }
  /** A scheme that is not spoken here. */
  | { kind: 'foreign' }
  /** Basic without a name and a password. */
  | { kind: 'unreadable' };

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * The Authorization header, else the session cookie. Throws `malformed` for Basic that is not
 * Base64 of UTF-8 text.
 */
export function credentialsOf(c: Context<AppEnv>): Credentials {
  const header = c.get('byCookieOnly') === true ? undefined : c.req.header('authorization');
  if (header === undefined) {
    const cookie = getCookie(c, sessionCookieName(c.env.secure));
    return cookie === undefined || cookie === '' ? { kind: 'none' } : { kind: 'session', cookie };
  }
  const [, scheme = '', rest = ''] = /^(\S+)(?: +(\S+))?$/.exec(header.trim()) ?? [];
  if (scheme.toLowerCase() === 'basic') return readBasic(rest);
  if (rest === '') return { kind: 'foreign' };
  return scheme.toLowerCase() === 'bearer' ? { kind: 'bearer', token: rest } : { kind: 'foreign' };
}

const PLAIN_ASCII = /^[ -~]*$/;

/**
 * Throws for bytes that are no UTF-8. A byte order mark stays: the core reads it as part of the
 * name.
 */
function utf8Of(binary: string): string {
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
}

/** Name and password of a Basic header's second word. */
export function readBasic(encoded: string): Credentials {
  let decoded: string;
  try {
    const binary = atob(encoded);
    decoded = PLAIN_ASCII.test(binary) ? binary : utf8Of(binary);
  } catch {
    throw new AppError('malformed', 'The Authorization header is not Base64 of UTF-8 text.');
  }
  const separator = decoded.indexOf(':');
  if (separator === -1) return { kind: 'unreadable' };
  return { kind: 'basic', username: decoded.slice(0, separator), password: decoded.slice(separator + 1) };
}

/**
 * Who comes in with these; throws `unauthenticated`, or `locked_out` for a password from a locked
 * address.
 */
export async function enter(
  c: Context<AppEnv>,
  authenticator: Authenticator,
  credentials: Credentials,
  base: DirectoryBase = 'web',
): Promise<Principal> {
  const principal = await principalOf(c, authenticator, credentials, base);
  if (principal === undefined) throw new AppError('unauthenticated', 'Sign in to use this address.');
  return principal;
}

async function principalOf(
  { env }: Context<AppEnv>,
  authenticator: Authenticator,
  credentials: Credentials,
  base: DirectoryBase,
): Promise<Principal | undefined> {
  switch (credentials.kind) {
    case 'basic': {
      const { username, password } = credentials;
      const { clientAddress: address, requestId } = env;
      const entrance = await authenticator.password({ username, password, address, base, requestId });
      if (entrance.kind === 'locked') throw lockedOut(entrance.retryAfterSeconds);
      return entrance.kind === 'in' ? entrance.principal : undefined;
    }
    case 'bearer':
      return authenticator.bearer(credentials.token);
    case 'session':
      return authenticator.session(credentials.cookie);
    case 'none':
    case 'foreign':
    case 'unreadable':
      break;
  }
  return undefined;
}

/** The refusal of a password from a locked address. */
export function lockedOut(retryAfterSeconds: number): AppError {
  const { code, message } = lockedOutProblem(retryAfterSeconds);
  return new AppError(code, message, { retryAfterSeconds });
}

/** The same as it is answered, for a way that throws nothing. */
export function lockedOutProblem(retryAfterSeconds: number): Problem {
  const minutes = Math.ceil(retryAfterSeconds / 60);
  const text = `Too many wrong passwords from this address. Try again in ${minutes} minute${minutes === 1 ? '' : 's'}.`;
  return { code: 'locked_out', message: text, fields: [], retryAfterSeconds };
}

/** Refuses with 401 unless the request carries an accepted credential; else sets `principal`. */
export function signIn(authenticator: Authenticator): MiddlewareHandler<AppEnv> {
  return async function requireSignIn(c, next) {
    await identify(c, authenticator);
    await next();
  };
}

/**
 * The same question, asked when the request asks for it: who was let in a while ago may not be any
 * more.
 */
export async function identify(c: Context<AppEnv>, authenticator: Authenticator): Promise<void> {
  c.set('principal', await enter(c, authenticator, credentialsOf(c)));
}

/** Refuses with 403 unless the signed-in person may do what the route does. */
export function requireAccess(demand: RouteDemand): MiddlewareHandler<AppEnv> {
  return async function checkAccess(c, next) {
    allow(c, demand);
    c.set('demand', demand);
    await next();
  };
}

/** Refuses with 403 unless the signed-in person may do this. */
export function allow(c: Context<AppEnv>, demand: RouteDemand): void {
  const reason = whyNot(c.get('principal'), { ...demand, safe: SAFE.has(c.req.method) });
  if (reason !== undefined) throw new AppError('forbidden', reason);
}

/** Who acts in this request, for the audit log. */
export function actorOf(c: Context<AppEnv>): Actor {
  return {
    username: c.get('principal').username,
    address: c.env.clientAddress,
    requestId: c.env.requestId,
  };
}

/** Who acts in this request, as verbs take it. */
export interface Acting {
  deps: Deps;
  actor: Actor;
  principal: Principal;
  mustStillBeIn: () => Promise<void>;
}

/** The right of the route is asked for again with `mustStillBeIn`. */
export function actingIn(c: Context<AppEnv>, deps: Deps): Acting {
  const mustStillBeIn = async (): Promise<void> => {
    await identify(c, deps.authenticator);
    allow(c, c.get('demand'));
  };
  return { deps, actor: actorOf(c), principal: c.get('principal'), mustStillBeIn };
}
