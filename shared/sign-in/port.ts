// Authenticates every HTTP request, with one lockout for everything that accepts a password.

import type { DirectoryBase } from '@holdfast/kit/directory';
import type { Page, Paging } from '@holdfast/kit/json';
import type { Principal, Scope } from './rules.ts';

type Maybe<T> = T | Promise<T>;

export interface PasswordAttempt {
  username: string;
  password: string;
  /** The client's address, as the host knows it. */
  address: string;
  base: DirectoryBase;
  requestId: string;
}

export type Entrance =
  | { kind: 'in'; principal: Principal }
  | { kind: 'refused' }
  | { kind: 'locked'; retryAfterSeconds: number };

export interface LockedAddress {
  /** The key of the count: IPv6 by its /64. */
  address: string;
  /** The endpoints that share the count. */
  door: string;
  failures: number;
  /** ISO 8601. */
  locked_until: string;
}

/**
 * Rejects with an AppError `unavailable` when the directory or our own database is needed and does
 * not answer.
 */
export interface Authenticator {
  /**
   * Checks a name and a password. The attempt counts once, for the address, before any other check;
   * only a refusal is a failure. While the directory does not answer, `webadmin` can sign in
   * read-only with the password of the settings.
   */
  password(attempt: PasswordAttempt): Promise<Entrance>;
  /**
   * The person whose session this cookie belongs to; undefined when there is none, or it has ended.
   */
  session(cookie: string): Promise<Principal | undefined>;
  /** The owner of a bearer token: METRICS_TOKEN or an API token. */
  bearer(token: string): Promise<Principal | undefined>;
  /** Drops the cache for an account: its groups, password or access have changed. */
  forget(username: string): Maybe<void>;
  /** Addresses that are locked out now, soonest free first. */
  lockouts(): Maybe<LockedAddress[]>;
  /** Clears the failures of an address; false when there were none. */
  release(address: string): Maybe<boolean>;
}

/**
 * Cached results that a host with its own memory can return without waiting; undefined: use the
 * slow path.
 */
export interface FastAuthenticator extends Authenticator {
  /**
   * The person behind an Authorization header that was accepted a moment ago, METRICS_TOKEN
   * included, no API token. Returns the same object while the same entry is cached.
   */
  known(authorization: string, address: string): Principal | undefined;
  /** The same for the cookie of a session. */
  knownSession(cookie: string): Principal | undefined;
  /** Seconds until the address is free; undefined when it is not locked. */
  lockedFor(address: string): number | undefined;
  /** Notes, for the audit log, a password that came from a locked address and was not checked. */
  noteLocked(attempt: PasswordAttempt): void;
}

/**
 * Sessions and API tokens: signed texts that represent a person, stored in our own database by
 * digest only. They end at their expiry, on revocation, and when the epoch of their owner changes.
 */
export interface Session {
  /** A uuid. */
  id: string;
  username: string;
  /** ISO 8601, as all times here. */
  createdAt: string;
  expiresAt: string;
  /** Where it began: client address and the user agent of the browser. */
  address: string;
  userAgent: string;
}

export interface ApiToken {
  /** A uuid. */
  id: string;
  name: string;
  scope: Scope;
  owner: string;
  createdAt: string;
  expiresAt: string;
}

/** Options of a new session or token. */
export interface Given {
  /** A uuid, for callers that must know it in advance; default: random. */
  id?: string;
  /**
   * The epoch as read before the person was checked: if it has changed since, the text is void from
   * the start. Default: the current one.
   */
  epoch?: number;
}

/** The owner of a signed text. */
export interface SignedText {
  kind: 'session' | 'token';
  id: string;
  username: string;
  /** Tokens only. */
  scope?: Scope;
  expiresAt: string;
}

/** Maximum number of sessions of one person; the oldest ends when another begins. */
export const MAX_SESSIONS = 50;

/**
 * Usernames ignore case; an id that isn't a uuid matches nothing. Rejects with `unavailable` when
 * our own database does not answer and, when signing or checking, when there is no SESSION_KEY.
 */
export interface SignIns {
  /** `text` is the value of the cookie; it is never shown again. */
  openSession(session: Omit<Session, 'id' | 'createdAt'> & Given): Promise<Session & { text: string }>;
  /** `text` is the token; it is never shown again. */
  createToken(token: Omit<ApiToken, 'id' | 'createdAt'> & Given): Promise<ApiToken & { text: string }>;
  /** Undefined for a text that was not signed here, has expired or was revoked. */
  recognize(kind: SignedText['kind'], text: string): Promise<SignedText | undefined>;
  /** Changes whenever every session and token of this person must end; 0 at first. */
  epoch(username: string): Promise<number>;
  /** Those that are valid, newest first. */
  sessions(username: string, paging: Paging): Promise<Page<Session>>;
  /** False when the person has no such session. */
  endSession(username: string, id: string): Promise<boolean>;
  /** Ends all of them; resolves with their number. */
  endSessions(username: string): Promise<number>;
  /** Valid ones of everyone, newest first. */
  tokens(paging: Paging): Promise<Page<ApiToken>>;
  token(id: string): Promise<ApiToken | undefined>;
  endToken(id: string): Promise<boolean>;
  /**
   * Removes those that expired before this time (ISO 8601) or are void; resolves with the number.
   */
  prune(before: string): Promise<number>;
}

/** What this feature needs from outside, by the names in Deps. */
export interface SignInPorts {
  authenticator: Authenticator;
  signIns: SignIns;
}
