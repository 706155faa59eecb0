// Changing one's own password, for the API and the page: the one that is now comes first, at the same door as a sign-in.

import { AppError } from '../shared/domain/app-error.ts';
import type { Principal } from '../shared/domain/principal.ts';
import { actingIn } from '../shared/http/acting.ts';
import type { Deps } from '../shared/http/deps.ts';
import { clearSessionCookie } from '../shared/http/session-cookie.ts';
import { lockedOut } from '../shared/http/sign-in.ts';
import type { AppEnv } from '../shared/http/env.ts';
import type { Context } from 'hono';
import type { Account } from '../shared/ports/identity.ts';
import type { Entrance } from '../shared/ports/doors.ts';
import { setUserPassword } from '../shared/verbs/set-user-password.ts';

interface Passwords {
  current: string;
  password: string;
}

/** Every session of the person ends, also that of the request. `unauthenticated` for a wrong `current`, which counts. */
export async function changeOwnPassword(
  c: Context<AppEnv>,
  deps: Deps,
  { current, password }: Passwords,
): Promise<void> {
  const principal = c.get('principal');
  const { username, by } = principal;
  const { clientAddress: address, requestId } = c.env;
  mustBeIn(await deps.doors.password({ username, password: current, address, base: 'web', requestId }));
  const { id } = await accountOf(deps, principal);
  await setUserPassword(actingIn(c, deps, 'own', 'rest'), { id, password, withHidden: true });
  if (by.kind === 'session') clearSessionCookie(c);
}

/** The account of whoever is signed in, hidden or not. */
export async function accountOf({ identity }: Deps, { username }: Principal): Promise<Account> {
  const account = await identity.accounts.named(username);
  if (account !== undefined) return account;
  throw new AppError('not_found', `The identity provider knows no account ${username}.`);
}

/** The password itself must have been judged: the emergency sign-in knows only that of the settings. */
function mustBeIn(entrance: Entrance): void {
  if (entrance.kind === 'locked') throw lockedOut(entrance.retryAfterSeconds);
  if (entrance.kind === 'refused') throw new AppError('unauthenticated', 'current_password is wrong.');
  if (entrance.principal.by.kind === 'break-glass')
    throw new AppError('unavailable', 'The directory does not answer, so no password can be changed. Try again later.');
}
