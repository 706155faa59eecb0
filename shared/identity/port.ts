// Defines the identity provider: accounts, groups and app passwords.

import type { Directory } from '@holdfast/kit/directory';
import type { Attributes, Page, Paging } from '@holdfast/kit/json';

export interface GroupName {
  /** The provider's uuid. */
  id: string;
  name: string;
}

/**
 * An account that can sign in: a person, or a program (`service`). `system` accounts belong to the
 * provider itself.
 */
export interface Account {
  /** The provider's integer key. */
  id: number;
  username: string;
  /** Displayed to people; may be empty. */
  name: string;
  /** May be empty. */
  email: string;
  isActive: boolean;
  kind: 'person' | 'service' | 'system';
  groups: GroupName[];
  attributes: Attributes;
  /** ISO 8601; null when the provider does not report it (old releases). */
  createdAt: string | null;
  /** ISO 8601. */
  lastLogin: string | null;
}

export interface Group extends GroupName {
  members: { id: number; username: string }[];
}

export interface AccountQuery extends Paging {
  /** Part of the username, name or email address, in any case. */
  search?: string;
  /** Default: every kind. An empty list matches none. */
  kinds?: readonly Account['kind'][];
  isActive?: boolean;
  /**
   * Only members of a group of exactly this name, in its case; none when there is no such group.
   */
  group?: string;
  /**
   * Conditions on attributes, all of which must hold, in the provider's syntax: `{ app_expires__lt:
   * 1700000000 }`; also `__gt`, `__lte`, `__gte`, `__isnull`. An account without the attribute
   * matches only `__isnull: true`. Keep numbers as numbers: text matches none, but may compare as
   * less than all of them.
   */
  attributes?: Attributes;
  /**
   * Excludes usernames with these prefixes, ignoring case; costs one more result per excluded
   * account.
   */
  without?: readonly string[];
}

export interface NewAccount {
  username: string;
  name: string;
  email?: string;
  kind?: 'person' | 'service';
  attributes?: Attributes;
}

export interface AccountChange {
  name?: string;
  email?: string;
  isActive?: boolean;
  /** One of the provider's own accounts keeps its kind: `invalid`. */
  kind?: 'person' | 'service';
}

/** A password that is shown once. It works, any number of times, until it expires. */
export interface AppPassword {
  /**
   * ASCII letters, digits, `-` and `_`, up to 255; unique in the provider, also among tokens of
   * other kinds.
   */
  identifier: string;
  accountId: number;
  description: string;
  /** ISO 8601; null when it never expires. */
  expiresAt: string | null;
}

export interface NewAppPassword {
  identifier: string;
  accountId: number;
  description: string;
  /**
   * Beyond the provider's ceiling, the ceiling of the account is raised; null: it never expires.
   */
  expiresAt: Date | null;
}

/**
 * Account changes have one writer per account at a time: the provider writes accounts as a whole.
 */
export interface Accounts {
  /** By username. */
  list(query: AccountQuery): Promise<Page<Account>>;
  get(id: number): Promise<Account | undefined>;
  /** Exactly this name, ignoring case. */
  named(username: string): Promise<Account | undefined>;
  /**
   * Without a password: sign-in is impossible until one is set. `conflict` when the name is taken,
   * in any case.
   */
  create(account: NewAccount): Promise<Account>;
  /**
   * `not_found` when there is no such account; `invalid` with the provider's own words for a bad
   * value.
   */
  change(id: number, change: AccountChange): Promise<Account>;
  /**
   * Changes single top-level attributes; null removes one. The provider replaces attributes as a
   * whole, so this reads, merges and writes; an unchanged result is not written. `not_found` and
   * `invalid` as for `change`.
   */
  changeAttributes(id: number, changes: Attributes): Promise<Account>;
  /**
   * `invalid` when the provider refuses it, as it does an empty one; `not_found` when there is no
   * such account.
   */
  setPassword(id: number, password: string): Promise<void>;
  /** With memberships, sessions and app passwords; a missing account is no error. */
  delete(id: number): Promise<void>;
}

export interface Groups {
  /** Every group whose name contains `search`, without its members, by name. */
  list(search?: string): Promise<GroupName[]>;
  get(id: string): Promise<Group | undefined>;
  /** Exactly this name, ignoring case. */
  named(name: string): Promise<Group | undefined>;
  /** `conflict` when the name is taken, in any case. */
  create(name: string): Promise<GroupName>;
  /** A missing group is no error. */
  delete(id: string): Promise<void>;
  /** `not_found` for an unknown group or account; an existing member is no error. */
  addMember(id: string, accountId: number): Promise<void>;
  /** As `addMember`; removing a non-member is no error. */
  removeMember(id: string, accountId: number): Promise<void>;
}

/**
 * These methods ignore tokens of other kinds, such as our own API token, except that their
 * identifiers are taken.
 */
export interface AppPasswords {
  /**
   * Creates one and reveals its key. `conflict` when the identifier is taken, `not_found` when
   * there is no such account, `invalid` for an identifier or expiry that the provider refuses. An
   * expiry in the past is accepted.
   */
  create(password: NewAppPassword): Promise<AppPassword & { key: string }>;
  /**
   * Those of an account (its exact username), including expired ones that the provider has not
   * removed yet.
   */
  list(username: string): Promise<AppPassword[]>;
  get(identifier: string): Promise<AppPassword | undefined>;
  /** The key itself; the provider records that it was viewed. */
  reveal(identifier: string): Promise<string | undefined>;
  /** A missing one is no error. */
  delete(identifier: string): Promise<void>;
}

/**
 * Every call ends within a few seconds. Rejects with an AppError: `unavailable` when the provider
 * does not answer, `upstream` when its response is invalid or it refuses our token, else as the
 * methods define. After `unavailable` a change may or may not have been made: check before
 * repeating it.
 */
export interface Identity {
  /** The account that our API token belongs to: proves that the token works. */
  me(): Promise<{ username: string; isSuperuser: boolean }>;
  /**
   * The provider's release: `2026.8.3` for authentik, else
   * `Holdfast identity provider 0.1.0, authentik API 2026.8`.
   */
  version(): Promise<string>;
  accounts: Accounts;
  groups: Groups;
  appPasswords: AppPasswords;
}

/**
 * Which passwords of the settings accounts already received, so that a start does not undo a
 * person's later change.
 */
export interface AppliedPasswords {
  /** True when this very password was the last one of the settings that the account received. */
  isApplied(username: string, password: string): Promise<boolean>;
  remember(username: string, password: string): Promise<void>;
  /** Forgets the account. */
  forget(username: string): Promise<void>;
}

/**
 * One writer at a time, when the outside system has neither locks nor versions. Runs `work` while
 * no other holder of this key runs, in any process of this Holdfast. Settles as `work` does;
 * rejects with an AppError `unavailable`, with `work` never started, when its turn does not come in
 * time. Never nest it: work that waits for another key may wait for itself.
 */
export type Exclusive = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/** What this feature needs from outside, by the names in Deps. */
export interface IdentityPorts {
  identity: Identity;
  directory: Directory;
  /**
   * For rules about several people that must not race (the last administrator). No other code uses
   * its keys.
   */
  peopleLock: Exclusive;
  /**
   * For certificates, enrollments and service accounts, which wait for the core. Never taken inside
   * `peopleLock`, nor that inside it.
   */
  deviceLock: Exclusive;
  /**
   * One revocation at a time per core. No other code uses its keys, so it may be taken inside the
   * two others.
   */
  coreLock: Exclusive;
}
