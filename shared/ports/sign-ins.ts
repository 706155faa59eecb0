// Sessions and API tokens: signed texts that stand for a person, remembered in our own database by their digest only. They
// end with their time, when they are revoked, and when the epoch of their owner changes.

import type { Scope } from '../domain/principal.ts';
import type { Page, Paging } from './identity.ts';

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
export const MOST_SESSIONS = 50;

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
