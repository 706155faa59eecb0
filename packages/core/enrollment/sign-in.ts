// Authenticates requests by password or by a token of this process. Asks the directory each time.

import { parse, serialize } from 'hono/utils/cookie';
import { limitAttempts } from '@holdfast/kit/concurrency';
import type { DirectoryBase, DirectoryEntry } from '@holdfast/kit/directory';
import { createLockout, type Lockout, lockoutAddress } from '@holdfast/kit/lockout';
import { PasswordQueue } from '@holdfast/kit/password-queue';
import type { CoreCaller, CoreDirectory } from '../model/parts.ts';
import type { EnrollmentEvents } from './events.ts';
import { Refusal, unauthorized } from './refusal.ts';
import type { Tokens } from './tokens.ts';

export type Credentials =
  /** None, or none that can be read. */
  { kind: 'none' } | { kind: 'password'; username: string; password: string } | { kind: 'token'; token: string };

/**
 * A browser keeps cookies of 4 KB: a release cuts the token into `access_token_0`, `access_token_1`
 * … of this length.
 */
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

/**
 * Reads who asks from a request: the header Authorization, else the cookies that /oauth/token has
 * set.
 */
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

export interface SignedIn {
  /** From the core base. */
  entry: DirectoryEntry;
  by: Extract<CoreCaller['by'], 'password' | 'token'>;
  /**
   * Whether the same credentials open that base right now. Rejects with an AppError when the
   * directory does not answer.
   */
  opens: (base: DirectoryBase) => Promise<boolean>;
}

/**
 * What can be said before the body is read: throws a Refusal for a request without credentials
 * (401), and for a password from a locked address (429). The function that comes back asks the
 * directory, and throws a Refusal (401, 429, 503) when it does not let them in.
 */
export type SignIn = (headers: Headers, address: string) => () => Promise<SignedIn>;

export function createSignIn(
  directory: Pick<CoreDirectory, 'signIn'>,
  endpoint: PasswordCheck,
  tokens: Tokens,
): SignIn {
  async function byPassword(attempt: PasswordAttempt): Promise<SignedIn> {
    const { username, password } = attempt;
    const entry = admitted(await endpoint.enter(attempt));
    return {
      entry,
      by: 'password',
      opens: async (base) => (await directory.signIn(base, username, password)) !== undefined,
    };
  }

  async function byToken(token: string): Promise<SignedIn> {
    const kept = await tokens.recognize(token);
    if (kept === undefined) throw unauthorized('The token is unknown or has expired. Request a new one.');
    const { id, username, password } = kept;
    const entry = await directory.signIn('core', username, password.reveal());
    if (entry === undefined) {
      tokens.end(id);
      throw unauthorized('The token has expired: its password is no longer valid. Request a new one.');
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
    const locked = endpoint.locked(attempt);
    if (locked !== undefined) throw lockedOut(locked.retryAfterSeconds);
    return () => byPassword(attempt);
  };
}

function admitted(entrance: Entrance): DirectoryEntry {
  if (entrance.kind === 'in') return entrance.entry;
  if (entrance.kind === 'locked') throw lockedOut(entrance.retryAfterSeconds);
  if (entrance.kind === 'busy') throw new Refusal(503, TOO_MANY_AT_ONCE);
  throw unauthorized('Wrong username or password.');
}

export const TOO_MANY_AT_ONCE = 'Too many sign-ins at once. Try again in a moment.';

function lockedOut(retryAfterSeconds: number): Refusal {
  return new Refusal(429, lockedOutText(retryAfterSeconds), { 'retry-after': String(retryAfterSeconds) });
}

export function lockedOutText(retryAfterSeconds: number): string {
  const minutes = Math.ceil(retryAfterSeconds / 60);
  return `Too many wrong passwords from this address. Try again in ${minutes} minute${minutes === 1 ? '' : 's'}.`;
}

export interface PasswordAttempt {
  username: string;
  password: string;
  /** Of the client. */
  address: string;
}

export interface Locked {
  kind: 'locked';
  retryAfterSeconds: number;
}

export type Entrance =
  | { kind: 'in'; entry: DirectoryEntry }
  | { kind: 'refused' }
  | Locked
  /** Too many attempts wait already. */
  | { kind: 'busy' };

/**
 * The door of 8446 for passwords and app passwords: a bind at the directory's core base behind a
 * lock-out of its own. Nothing is remembered of who came in.
 */
export interface PasswordCheck {
  /** What a locked address hears without asking; undefined while it may try. */
  locked(attempt: PasswordAttempt): Locked | undefined;
  /** Rejects with an AppError when the directory does not answer; that is no failure. */
  enter(attempt: PasswordAttempt): Promise<Entrance>;
}

/**
 * No directory has a longer name; what is longer, or has control characters, is wrong without
 * asking.
 */
const MAX_USERNAME_LENGTH = 255;
const CONTROL = /\p{Cc}/u;

export function createPasswordCheck(
  directory: Pick<CoreDirectory, 'signIn'>,
  steadyMs: () => number,
  events: EnrollmentEvents,
  lockout: Lockout = createLockout(),
): PasswordCheck {
  const queue = new PasswordQueue({ steadyMs });
  const inTurn = limitAttempts((address) => lockout.left(address, steadyMs()));

  function locked({ address, username }: PasswordAttempt): Locked | undefined {
    if (lockout.isFree()) return undefined;
    const until = lockout.check(lockoutAddress(address), steadyMs()).lockedUntilMs;
    if (until === undefined) return undefined;
    const retryAfterSeconds = Math.max(1, Math.ceil((until - steadyMs()) / 1000));
    events.failed('locked', { address, user: username, reason: 'too many wrong passwords came from this address' });
    return { kind: 'locked', retryAfterSeconds };
  }

  async function judge(attempt: PasswordAttempt): Promise<Entrance> {
    const { username, password, address } = attempt;
    const source = lockoutAddress(address);
    const requested = mayExist(username)
      ? await queue.ask({ address: source, username }, () => directory.signIn('core', username, password))
      : { found: undefined };
    if (requested === 'busy') return { kind: 'busy' };
    if (requested.found !== undefined) return { kind: 'in', entry: requested.found };
    lockout.failed(source, steadyMs());
    events.failed('password', { address, user: username, reason: 'the directory refused the username or password' });
    return { kind: 'refused' };
  }

  return {
    locked,

    async enter(attempt) {
      const turn = async (): Promise<Entrance> => locked(attempt) ?? judge(attempt);
      return locked(attempt) ?? (await inTurn(lockoutAddress(attempt.address), turn)) ?? { kind: 'busy' };
    },
  };
}

function mayExist(username: string): boolean {
  return username.length <= MAX_USERNAME_LENGTH && !CONTROL.test(username);
}
