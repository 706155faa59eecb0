// Reads who asks from a request: the header Authorization, else the cookies that /oauth/token has set.

import { parse, serialize } from 'hono/utils/cookie';

export type Credentials =
  /** None, or none that can be read. */
  { kind: 'none' } | { kind: 'password'; username: string; password: string } | { kind: 'token'; token: string };

/** A browser keeps cookies of 4 KB: a release cuts the token into `access_token_0`, `access_token_1` … of this length. */
const COOKIE = 'access_token_';
const COOKIE_CHARACTERS = 4_000;

/** The headers that set the token. */
export function tokenCookies(token: string, lifetimeSeconds: number): string[] {
  const cookie = { path: '/', maxAge: lifetimeSeconds, httpOnly: true, secure: true, sameSite: 'Strict' } as const;
  const parts = Array.from({ length: Math.ceil(token.length / COOKIE_CHARACTERS) }, (_, at) =>
    token.slice(at * COOKIE_CHARACTERS, (at + 1) * COOKIE_CHARACTERS),
  );
  return parts.map((part, at) => serialize(`${COOKIE}${at}`, part, cookie));
}

function tokenInCookies(header: string): string {
  const cookies = parse(header);
  let token = '';
  for (let at = 0; cookies[`${COOKIE}${at}`] !== undefined; at += 1) token += cookies[`${COOKIE}${at}`];
  return token;
}

export function credentialsOf(headers: Headers): Credentials {
  const header = headers.get('authorization');
  if (header === null) return byToken(tokenInCookies(headers.get('cookie') ?? ''));
  const [, scheme = '', rest = ''] = /^(\S+) +(\S+)$/.exec(header.trim()) ?? [];
  if (scheme.toLowerCase() === 'basic') return readBasic(rest);
  return byToken(scheme.toLowerCase() === 'bearer' ? rest : undefined);
}

function byToken(token: string | undefined): Credentials {
  return token === undefined || token === '' ? { kind: 'none' } : { kind: 'token', token };
}

/** Name and password are UTF-8. */
function readBasic(encoded: string): Credentials {
  let text: string;
  try {
    const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { kind: 'none' };
  }
  const separator = text.indexOf(':');
  if (separator === -1) return { kind: 'none' };
  return { kind: 'password', username: text.slice(0, separator), password: text.slice(separator + 1) };
}
