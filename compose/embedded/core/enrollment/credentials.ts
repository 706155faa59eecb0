// What a request carries to say who asks: the header Authorization, else the cookie that /oauth/token has set.

import { parse } from 'hono/utils/cookie';

export type Credentials =
  /** None, or none that can be read. */
  { kind: 'none' } | { kind: 'password'; username: string; password: string } | { kind: 'token'; token: string };

export const TOKEN_COOKIE = 'access_token';

export function credentialsOf(headers: Headers): Credentials {
  const header = headers.get('authorization');
  if (header === null) return byToken(parse(headers.get('cookie') ?? '', TOKEN_COOKIE)[TOKEN_COOKIE]);
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
