// Who asks: whoever a password or a token of this process belongs to, asked of the directory each time.

import type { DirectoryBase, DirectoryEntry } from '../../../../shared/ports/directory.ts';
import type { CoreCaller, CoreDirectory } from '../parts.ts';
import { credentialsOf } from './credentials.ts';
import type { Entrance, PasswordAttempt, PasswordDoor } from './password-door.ts';
import { Refusal, unauthorized } from './refusal.ts';
import type { Tokens } from './tokens.ts';

export interface SignedIn {
  /** From the core base. */
  entry: DirectoryEntry;
  by: Extract<CoreCaller['by'], 'password' | 'token'>;
  /** Whether the same credentials open that base right now. Rejects with an AppError when the directory does not answer. */
  opens: (base: DirectoryBase) => Promise<boolean>;
}

/**
 * What can be said before the body is read: throws a Refusal for a request without credentials (401), and for a password
 * from a locked address (429). The function that comes back asks the directory, and throws a Refusal (401, 429, 503) when
 * it does not let them in.
 */
export type SignIn = (headers: Headers, address: string) => () => Promise<SignedIn>;

export function createSignIn(directory: Pick<CoreDirectory, 'signIn'>, door: PasswordDoor, tokens: Tokens): SignIn {
  async function byPassword(attempt: PasswordAttempt): Promise<SignedIn> {
    const { username, password } = attempt;
    const entry = admitted(await door.enter(attempt));
    return {
      entry,
      by: 'password',
      opens: async (base) => (await directory.signIn(base, username, password)) !== undefined,
    };
  }

  async function byToken(token: string): Promise<SignedIn> {
    const kept = await tokens.recognise(token);
    if (kept === undefined) throw unauthorized('The token is not known here, or its hour is over. Ask for a new one.');
    const { id, username, password } = kept;
    const entry = await directory.signIn('core', username, password.reveal());
    if (entry === undefined) {
      tokens.end(id);
      throw unauthorized('The token has ended: its password does not open the account any more.');
    }
    const opens = async (base: DirectoryBase): Promise<boolean> =>
      (await directory.signIn(base, username, password.reveal())) !== undefined;
    return { entry, by: 'token', opens };
  }

  return function prepare(headers, address) {
    const credentials = credentialsOf(headers);
    if (credentials.kind === 'none') throw unauthorized();
    if (credentials.kind === 'token') return () => byToken(credentials.token);
    const { username, password } = credentials;
    const attempt = { username, password, address };
    const locked = door.locked(attempt);
    if (locked !== undefined) throw lockedOut(locked.retryAfterSeconds);
    return () => byPassword(attempt);
  };
}

function admitted(entrance: Entrance): DirectoryEntry {
  if (entrance.kind === 'in') return entrance.entry;
  if (entrance.kind === 'locked') throw lockedOut(entrance.retryAfterSeconds);
  if (entrance.kind === 'busy') throw new Refusal(503, TOO_MANY_AT_ONCE);
  throw unauthorized('The name or the password is wrong.');
}

export const TOO_MANY_AT_ONCE = 'Too many sign-ins at once. Try again in a moment.';

function lockedOut(retryAfterSeconds: number): Refusal {
  return new Refusal(429, lockedOutText(retryAfterSeconds), { 'retry-after': String(retryAfterSeconds) });
}

export function lockedOutText(retryAfterSeconds: number): string {
  const minutes = Math.ceil(retryAfterSeconds / 60);
  return `Too many wrong passwords came from this address. Try again in ${minutes} minute${minutes === 1 ? '' : 's'}.`;
}
