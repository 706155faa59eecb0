// Defines what the store provides for the LDAP tree. Names compare without case everywhere.

import type { Place } from '@holdfast/kit/fair-queue';
import type { Json } from '@holdfast/kit/json';

export interface Person {
  pk: number;
  /** 64 hexadecimal digits; not the login name. */
  uid: string;
  username: string;
  name: string;
  email: string;
  isActive: boolean;
  isSuperuser: boolean;
  attributes: Record<string, Json>;
  /** Sorted by name. */
  groups: { name: string }[];
  createdAt: Date;
  changedAt: Date;
  passwordChangedAt: Date | undefined;
}

export interface TreeGroup {
  uuid: string;
  numPk: number;
  name: string;
  isSuperuser: boolean;
  attributes: Record<string, Json>;
  /** Sorted by username. */
  members: { username: string }[];
  createdAt: Date;
  changedAt: Date;
}

/**
 * Narrows what is read; every condition must hold. The store may hand out more than asked, never
 * less.
 */
export interface PeopleWhere {
  username?: string;
  email?: string;
  /** Name of a group that the person is a member of. */
  group?: string;
}

export interface GroupsWhere {
  name?: string;
  /** Username of a member. */
  member?: string;
}

/** Read straight from the database at every call: a change is seen at once. */
export interface Roster {
  person(username: string): Promise<Person | undefined>;
  /** At most `limit` people whose pk is above `after` (0: from the first), by pk. */
  people(where: PeopleWhere, after: number, limit: number): Promise<Person[]>;
  /** At most `limit` groups whose numPk is above `after`, by numPk. */
  groups(where: GroupsWhere, after: number, limit: number): Promise<TreeGroup[]>;
}

export interface PasswordAttempt {
  username: string;
  password: string;
  /** App passwords count as well. */
  appPasswords: boolean;
  /** In the line of those whose password is checked. */
  place: Place;
  /**
   * Asked when its turn has come: false when nobody waits for the verdict any more. It is `busy`
   * then.
   */
  wanted?: () => boolean;
}

/**
 * The account whose password it is; `busy` when so many wait already that this one would never get
 * its turn.
 */
export type PasswordVerdict = { pk: number } | 'refused' | 'busy';

/**
 * Judges a password. Unknown, inactive and password-less users are refused after the same work as a
 * wrong password, so that the time tells nothing.
 */
export type CheckPassword = (attempt: PasswordAttempt) => Promise<PasswordVerdict>;
