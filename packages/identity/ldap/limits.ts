// Defines the limits for each client of the LDAP server.

import { MINUTE_MS } from '@holdfast/kit/time';

export interface LdapLimits {
  connections: number;
  /** Requests of one connection that are worked on at once; then nothing more is read from it. */
  requestsInFlight: number;
  /** Requests of one account that are worked on at once, over all its connections; others wait. */
  requestsOfAccount: number;
  messageBytes: number;
  /** Before a successful bind. */
  anonymousMessageBytes: number;
  /** How long a connection without a bind may stay without completing a message. */
  anonymousIdleMs: number;
  idleMs: number;
  /** How long one message may take to arrive. */
  partialMessageMs: number;
  /** How long a client may leave its answers unread. */
  unreadMs: number;
  /** Most entries of one search (or of one page). */
  entries: number;
  searchMs: number;
  /** How long a verdict on a password may take. */
  bindMs: number;
  /**
   * How long the answer waits to a bind that is refused without a check: to whom is locked out, or
   * suspect and one too many.
   */
  heldBackMs: number;
  /** How long a refusal takes at least, so that its time does not tell which names exist. */
  minRefusalMs: number;
  filterDepth: number;
  filterParts: number;
}

export const DEFAULT_LIMITS: LdapLimits = {
  connections: 512,
  requestsInFlight: 32,
  requestsOfAccount: 8,
  messageBytes: 1024 * 1024,
  anonymousMessageBytes: 64 * 1024,
  anonymousIdleMs: 10_000,
  idleMs: 15 * MINUTE_MS,
  partialMessageMs: 30_000,
  unreadMs: 30_000,
  entries: 20_000,
  searchMs: 120_000,
  bindMs: 60_000,
  heldBackMs: 250,
  minRefusalMs: 60,
  filterDepth: 32,
  filterParts: 1_000,
};

/** Longest distinguished name that is read. */
export const NAME_CHARACTERS = 8 * 1024;

/** Longest name of a user or group that can exist; longer ones are not looked up. */
export const LABEL_CHARACTERS = 256;
