// Everything by which somebody comes in over HTTP, with the one lock-out that guards every door that takes a password.

import type { Principal } from '../domain/principal.ts';
import type { DirectoryBase } from './directory.ts';

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
export interface Doors {
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

/** What a host that keeps the doors in its own memory can tell without waiting; undefined: ask the slow way. */
export interface QuickDoors extends Doors {
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
