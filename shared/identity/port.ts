// The identity provider: accounts, groups and app passwords.

import type { Directory } from '@holdfast/kit/directory';
import type { Attributes, Page, Paging } from '@holdfast/kit/json';

export interface GroupName {
  /** The provider's uuid. */
  id: string;
  name: string;
}

/** Somebody who can sign in: a person, or a program (`service`). `system` accounts belong to the provider itself. */
export interface Account {
  /** The provider's integer key. */
  id: number;
  username: string;
  /** Shown to people; may be empty. */
  name: string;
  /** May be empty. */
  email: string;
  isActive: boolean;
  kind: 'person' | 'service' | 'system';
  groups: GroupName[];
  attributes: Attributes;
  /** ISO 8601; null when the provider does not say (old releases). */
  createdAt: string | null;
  /** ISO 8601. */
  lastLogin: string | null;
}

export interface Group extends GroupName {
  members: { id: number; username: string }[];
}

export interface AccountQuery extends Paging {
  /** Part of the username, name or e-mail address, without case. */
  search?: string;
  /** Default: every kind. None at all finds nobody. */
  kinds?: readonly Account['kind'][];
  isActive?: boolean;
  /** Only members of a group of exactly this name, in its case; nobody when there is no such group. */
  group?: string;
  /**
   * Conditions on attributes, all of which must hold, as the provider reads them: `{ app_expires__lt: 1700000000 }`;
   * also `__gt`, `__lte`, `__gte`, `__isnull`. An account without the attribute matches only `__isnull: true`. Keep
   * numbers as numbers: text matches none, but may count as less than all of them.
   */
  attributes?: Attributes;
  /** Leaves out those whose username begins so, without regard to case; asks for as many more as there are of them. */
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
  /** One of the provider's own accounts stays what it is: `invalid`. */
  kind?: 'person' | 'service';
}

/** A password that a program shows once: it ends by itself, and works until then as often as it is used. */
export interface AppPassword {
  /** ASCII letters, digits, `-` and `_`, up to 255; unique in the provider, also among tokens of other kinds. */
  identifier: string;
  accountId: number;
  description: string;
  /** ISO 8601; null when it never ends. */
  expiresAt: string | null;
}

export interface NewAppPassword {
  identifier: string;
  accountId: number;
  description: string;
  /** Beyond the provider's ceiling, that of the account is raised; null: it never ends. */
  expiresAt: Date | null;
}

/** What changes an account has one writer per account at a time: the provider writes accounts as a whole. */
export interface Accounts {
  /** By username. */
  list(query: AccountQuery): Promise<Page<Account>>;
  get(id: number): Promise<Account | undefined>;
  /** Exactly this name, without regard to case. */
  named(username: string): Promise<Account | undefined>;
  /** Without a password: nobody can sign in until one is set. `conflict` when the name is taken, in any case. */
  create(account: NewAccount): Promise<Account>;
  /** `not_found` when there is no such account; `invalid` with the provider's own words for a bad value. */
  change(id: number, change: AccountChange): Promise<Account>;
  /**
   * Changes single top-level attributes; null removes one. The provider replaces attributes as a whole, so this reads,
   * merges and writes; what changes nothing is not written. `not_found` and `invalid` as for `change`.
   */
  changeAttributes(id: number, changes: Attributes): Promise<Account>;
  /** `invalid` when the provider refuses it, as it does an empty one; `not_found` when there is no such account. */
  setPassword(id: number, password: string): Promise<void>;
  /** With memberships, sessions and app passwords; one that is gone already is no error. */
  delete(id: number): Promise<void>;
}

export interface Groups {
  /** Every group whose name contains `search`, without its members, by name. */
  list(search?: string): Promise<GroupName[]>;
  get(id: string): Promise<Group | undefined>;
  /** Exactly this name, without regard to case. */
  named(name: string): Promise<Group | undefined>;
  /** `conflict` when the name is taken, in any case. */
  create(name: string): Promise<GroupName>;
  /** One that is gone already is no error. */
  delete(id: string): Promise<void>;
  /** `not_found` for an unknown group or account; a member already is no error. */
  addMember(id: string, accountId: number): Promise<void>;
  /** As `addMember`; no member is no error. */
  removeMember(id: string, accountId: number): Promise<void>;
}

/** Tokens of other kinds, such as our own API token, are nothing to these methods but taken identifiers. */
export interface AppPasswords {
  /**
   * Makes one and reveals its key. `conflict` when the identifier is taken, `not_found` when there is no such account,
   * `invalid` for an identifier or an end that the provider refuses. An end in the past is accepted.
   */
  create(password: NewAppPassword): Promise<AppPassword & { key: string }>;
  /** Those of an account (its exact username), also expired ones that the provider has not removed yet. */
  list(username: string): Promise<AppPassword[]>;
  get(identifier: string): Promise<AppPassword | undefined>;
  /** The key itself; the provider writes down that it was looked at. */
  reveal(identifier: string): Promise<string | undefined>;
  /** One that is gone already is no error. */
  delete(identifier: string): Promise<void>;
}

/**
 * Every call ends within a few seconds. Rejects with an AppError: `unavailable` when the provider does not answer,
 * `upstream` when its answer makes no sense or it refuses our token, else as the methods say.
 * After `unavailable` it is open whether a change was made: look before it is repeated.
 */
export interface Identity {
  /** The account that our API token belongs to: proves that the token works. */
  me(): Promise<{ username: string; isSuperuser: boolean }>;
  /** The provider's release, `2026.8.3`. */
  version(): Promise<string>;
  accounts: Accounts;
  groups: Groups;
  appPasswords: AppPasswords;
}

/**
 * Which passwords of the settings were given to accounts already, so that a start does not undo what a person has changed
 * since.
 */
export interface AppliedPasswords {
  /** True when this very password was the last one of the settings that the account was given. */
  isApplied(username: string, password: string): Promise<boolean>;
  remember(username: string, password: string): Promise<void>;
  /** Nothing is known of the account any more. */
  forget(username: string): Promise<void>;
}

/**
 * One writer at a time, where the system that is written to has neither locks nor versions.
 * Does `work` while nobody else who uses this key does theirs, in any process of this Holdfast. Settles as `work` does;
 * rejects with an AppError `unavailable`, with `work` never begun, when its turn does not come in time. Never nest it:
 * work that waits for another key may wait for itself.
 */
export type Exclusive = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/** What this feature asks of the outside, by the names in Deps. */
export interface IdentityPorts {
  identity: Identity;
  directory: Directory;
  /** For what must not happen twice at once among several people (the last administrator). Its keys are nobody else's. */
  peopleLock: Exclusive;
  /** For certificates, enrollments and service accounts, which wait for the core. Never taken inside `peopleLock`, nor that inside it. */
  deviceLock: Exclusive;
  /** One revocation at a time per core. Its keys are nobody else's, so it may be taken inside the two others. */
  coreLock: Exclusive;
}
