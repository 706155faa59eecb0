// Who may come in: the web-admin by Basic with the password of the settings (role admin), METRICS_TOKEN as Bearer
// (role viewer). Identity headers of any other kind are not read.

import type { Context, MiddlewareHandler } from 'hono';
import { AppError } from '../domain/app-error.ts';
import { base64 } from '../domain/base64.ts';
import { WEBADMIN } from '../domain/names.ts';
import { Secret } from '../domain/secret.ts';
import { constantTimeEqual, sameText } from '../domain/constant-time.ts';
import type { AppEnv } from './env.ts';
import type { Access, Principal } from './principal.ts';

export interface Credentials {
  CORE_WEBADMIN_PASSWORD: Secret | undefined;
  METRICS_TOKEN: Secret | undefined;
}

/** Refuses with 401 unless the request carries an accepted credential; else sets `principal`. */
export function signIn(credentials: Credentials): MiddlewareHandler<AppEnv> {
  const recognise = knownHeaders(credentials);

  return async function requireSignIn(c, next) {
    const principal = recognise(c.req.header('authorization') ?? '') ?? (await authenticate(c, credentials));
    if (principal === undefined) throw new AppError('unauthenticated', 'Sign in to use this address.');
    c.set('principal', principal);
    await next();
  };
}

/** Refuses with 403 unless the signed-in person has at least the role that the route demands. */
export function requireAccess(access: Access): MiddlewareHandler<AppEnv> {
  return async function checkAccess(c, next) {
    if (access === 'admin' && c.get('principal').role !== 'admin') {
      throw new AppError('forbidden', 'This needs the role admin.');
    }
    await next();
  };
}

const ADMINISTRATOR: Principal = { username: WEBADMIN, role: 'admin' };
const METRICS: Principal = { username: 'metrics', role: 'viewer' };

/**
 * Recognises, in constant time and without waiting, the Authorization headers that these credentials are usually sent as.
 * Undefined says nothing: other spellings of the same credential exist.
 */
export function knownHeaders(credentials: Credentials): (header: string) => Principal | undefined {
  const { CORE_WEBADMIN_PASSWORD: password, METRICS_TOKEN: token } = credentials;
  const admin = password && new Secret(`Basic ${base64(`${WEBADMIN}:${password.reveal()}`)}`);
  const metrics = token && new Secret(`Bearer ${token.reveal()}`);
  return function recognise(header) {
    const isAdmin = admin !== undefined && sameText(header, admin.reveal());
    const isMetrics = metrics !== undefined && sameText(header, metrics.reveal());
    if (isAdmin) return ADMINISTRATOR;
    return isMetrics ? METRICS : undefined;
  };
}

async function authenticate(c: Context<AppEnv>, credentials: Credentials): Promise<Principal | undefined> {
  const header = c.req.header('authorization') ?? '';
  const [, scheme = '', rest = ''] = /^(\S+) +(\S+)$/.exec(header.trim()) ?? [];
  if (scheme.toLowerCase() === 'basic') return basic(rest, credentials.CORE_WEBADMIN_PASSWORD);
  if (scheme.toLowerCase() === 'bearer') return bearer(rest, credentials.METRICS_TOKEN);
  return undefined;
}

async function basic(encoded: string, password: Secret | undefined): Promise<Principal | undefined> {
  if (password === undefined) return undefined;
  const decoded = decodeBasic(encoded);
  const separator = decoded.indexOf(':');
  const given = decoded.slice(separator + 1);
  const [rightName, rightPassword] = await Promise.all([
    constantTimeEqual(decoded.slice(0, Math.max(separator, 0)), WEBADMIN),
    constantTimeEqual(given, password.reveal()),
  ]);
  return rightName && rightPassword ? ADMINISTRATOR : undefined;
}

async function bearer(token: string, expected: Secret | undefined): Promise<Principal | undefined> {
  if (expected === undefined) return undefined;
  return (await constantTimeEqual(token, expected.reveal())) ? METRICS : undefined;
}

function decodeBasic(encoded: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)));
  } catch {
    throw new AppError('malformed', 'The Authorization header is not valid Base64.');
  }
}
