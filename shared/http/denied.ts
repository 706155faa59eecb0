// Writes denied attempts to the audit log.

import type { Context } from 'hono';
import { getCookie } from 'hono/cookie';
import type { AppError } from '@holdfast/kit/app-error';
import type { Audit } from '../audit/port.ts';
import type { Principal } from '../sign-in/principal.ts';
import type { AppEnv } from './context.ts';
import { sessionCookieName } from './session-cookie.ts';

// Denied attempts go into the audit log: what somebody was not allowed to do (403), and a session or a token that is not
// good (401). Wrong passwords are entered by the door that judged them; a request without credentials is no attempt.

/** Resolves at once on Node; in workerd when the host has taken it, because nothing runs on after the request there. */
export async function noteDenied(
  audit: Pick<Audit, 'note'>,
  { code, message }: AppError,
  c: Context<AppEnv>,
): Promise<void> {
  const { clientAddress: address, requestId } = c.env;
  // Not set where the request was refused before anybody was asked who it is.
  const principal = c.get('principal') as Principal | undefined;
  const actor = { username: principal?.username ?? '', address, requestId };
  const target = `${c.req.method} ${c.req.path}`;
  if (code === 'forbidden')
    return audit.note({ actor, action: 'request.denied', target }, 'denied', { reason: message });
  const by = code === 'unauthenticated' ? signedText(c) : undefined;
  if (by !== undefined) await audit.note({ actor, action: 'sign-in', target }, 'denied', { by });
}

export function signedText(c: Context<AppEnv>): 'token' | 'session' | undefined {
  const header = c.req.header('authorization');
  if (header !== undefined) return /^\s*bearer\s/i.test(header) ? 'token' : undefined;
  return (getCookie(c, sessionCookieName(c.env.secure)) ?? '') === '' ? undefined : 'session';
}
