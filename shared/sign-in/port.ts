// Authenticates every HTTP request, with one lockout for everything that takes a password.

import type { DirectoryBase } from '@holdfast/kit/directory';
import type { Page, Paging } from '@holdfast/kit/json';
import type { Principal, Scope } from './rules.ts';

type Maybe<T> = T | Promise<T>;

export interface PasswordAttempt {
  username: string;
  password: string;
  /** Of the client, as the host knows it. */
  address: string;
  base: DirectoryBase;
  requestId: string;
}

export type Entrance =
  | { kind: 'in'; principal: Principal }
  | { kind: 'refused' }
  | { kind: 'locked'; retryAfterSeconds: number };

export interface LockedAddress {
  /** As it is counted: IPv6 by its /64. */
  address: string;
  /** The doors that share the state. */
  door: string;
  failures: number;
  /** ISO 8601. */
  locked_until: string;
}

/** Rejects with an AppError `unavailable` when the directory or our own database would have to be asked and does not answer. */
export interface Authenticator {
  /**
   * Judges a name and a password. The attempt counts once, for the address, before anything else is asked; only a refusal
   * is a failure. While the directory does not answer, `webadmin` comes in with the password of the settings, to look only.
   */
  password(attempt: PasswordAttempt): Promise<Entrance>;
  /** The person whose session this cookie stands for; undefined when it stands for none, or no longer. */
  session(cookie: string): Promise<Principal | undefined>;
  /** Whom a bearer token stands for: METRICS_TOKEN, or an API token. */
  bearer(token: string): Promise<Principal | undefined>;
  /** Forgets what is remembered of an account: its groups, its password or its right to come in have changed. */
  forget(username: string): Maybe<void>;
  /** Those that are locked now, soonest free first. */
  lockouts(): Maybe<LockedAddress[]>;
  /** Forgets the failures of an address; false when there were none. */
  release(address: string): Maybe<boolean>;
}

/** What a host that authenticates in its own memory can tell without waiting; undefined: ask the slow way. */
export interface FastAuthenticator extends Authenticator {
  /**
   * The person behind an Authorization header that was accepted a moment ago, METRICS_TOKEN included, no API token. The same
   * object while the same is remembered.
   */
  known(authorization: string, address: string): Principal | undefined;
  /** The same for the cookie of a session. */
  knownSession(cookie: string): Principal | undefined;
  /** Seconds until the address is free; undefined when it is not locked. */
  lockedFor(address: string): number | undefined;
  /** Keeps in mind, for the audit log, a password that came from a locked address and was not judged. */
  noteLocked(attempt: PasswordAttempt): void;
}

/**
 * Sessions and API tokens: signed texts that stand for a person, remembered in our own database by their digest only. They
 * end with their time, when they are revoked, and when the epoch of their owner changes.
 */
export interface Session {
  /** A uuid. */
  id: string;
  username: string;
  /** ISO 8601, as all times here. */
  createdAt: string;
  expiresAt: string;
  /** Where it was begun: client address and the name that the browser gave itself. */
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

/** What may be given to something new that is signed. */
export interface Given {
  /** A uuid, for who must know it before; default: any. */
  id?: string;
  /**
   * The epoch as it was before the person was judged: when it has changed since, the text is void from the beginning.
   * Default: that of now.
   */
  epoch?: number;
}

/** Whom a signed text stands for. */
export interface SignedText {
  kind: 'session' | 'token';
  id: string;
  username: string;
  /** Of a token. */
  scope?: Scope;
  expiresAt: string;
}

/** How many sessions of one person are kept; the oldest ends when there is one more. */
export const MAX_SESSIONS = 50;

/**
 * Usernames count without regard to case; an id that is no uuid belongs to nothing. Rejects with `unavailable` when our own
 * database does not answer, and, where something is signed or recognised, when there is no SESSION_KEY.
 */
export interface SignIns {
  /** `text` is the value of the cookie; it is shown nowhere again. */
  openSession(session: Omit<Session, 'id' | 'createdAt'> & Given): Promise<Session & { text: string }>;
  /** `text` is the token; it is shown nowhere again. */
  createToken(token: Omit<ApiToken, 'id' | 'createdAt'> & Given): Promise<ApiToken & { text: string }>;
  /** Undefined for a text that was not signed here, has ended or was revoked. */
  recognise(kind: SignedText['kind'], text: string): Promise<SignedText | undefined>;
  /** Changes whenever everything that was signed for this person is to end; 0 at first. */
  epoch(username: string): Promise<number>;
  /** Those that are valid, newest first. */
  sessions(username: string, paging: Paging): Promise<Page<Session>>;
  /** False when the person has no such session. */
  endSession(username: string, id: string): Promise<boolean>;
  /** Ends all of them; resolves with their number. */
  endSessions(username: string): Promise<number>;
  /** Everybody's that are valid, newest first. */
  tokens(paging: Paging): Promise<Page<ApiToken>>;
  token(id: string): Promise<ApiToken | undefined>;
  endToken(id: string): Promise<boolean>;
  /** Removes what expired before this time (ISO 8601) or is void; resolves with the number. */
  prune(before: string): Promise<number>;
}

/** What this feature asks of the outside, by the names in Deps. */
export interface SignInPorts {
  authenticator: Authenticator;
  signIns: SignIns;
}
