// The LDAP directory that checks passwords and knows who is in which group.

import { formatDistinguishedName, parseDistinguishedName, partsAbove } from './distinguished-name.ts';

/** `core` accepts passwords and app passwords, `web` passwords only. */
export type DirectoryBase = 'core' | 'web';

/** A person or service account as its own entry shows it. */
export interface DirectoryEntry {
  dn: string;
  /** As the directory spells it; but for the case it is the name that was asked for. */
  username: string;
  /**
   * False for somebody who may not sign in, where the directory says so; one that says nothing
   * shows no such people.
   */
  isActive: boolean;
  /** Names (the `cn`) of the groups, as the directory spells them. */
  groups: string[];
}

/**
 * Every call ends within a few seconds; rejects with an AppError `unavailable` when the directory
 * does not answer, and `upstream` when its answer makes no sense. User and group names are data:
 * they are escaped, and reach no other entry.
 */
export interface Directory {
  /**
   * Binds as the user and reads the own entry. Undefined when the directory refuses, for whatever
   * reason it has. An empty name or password is refused without asking.
   */
  signIn(base: DirectoryBase, username: string, password: string): Promise<DirectoryEntry | undefined>;
  /**
   * The entry of a user, read by the service account on the core base; undefined when there is
   * none. Also of somebody who may not sign in any more: see `isActive`.
   */
  find(username: string): Promise<DirectoryEntry | undefined>;
  /**
   * A bind of the service account and its search for a group, both new, on that base: proves that
   * the directory lets people in. Resolves with the number of members, or undefined when there is
   * no such group.
   */
  probe(base: DirectoryBase, group: string): Promise<number | undefined>;
}

/**
 * The two bases of the directory: the core's, where app passwords count, and the web one, where
 * they do not.
 */
export interface DirectoryBases {
  core: string;
  web: string;
}

/** Where the directory of the stack begins unless LDAP_BASE_DN says otherwise. */
export const CORE_BASE = 'DC=core,DC=holdfast';
/** The account that reads the whole directory. */
export const LDAP_SERVICE_ACCOUNT = 'adm_ldapservice';

/** The web base beside a core base: its first part is called `web`. */
export function webBaseBeside(core: string): string {
  const [first = [], ...rest] = parseDistinguishedName(core) ?? [];
  return formatDistinguishedName([first.slice(0, 1).map(({ type }) => ({ type, value: 'web' })), ...rest]);
}

/**
 * The bases as the settings LDAP_BASE_DN and LDAP_WEB_BASE_DN give them, either of which may be
 * unset.
 */
export function basesOf(core: string = CORE_BASE, web: string = webBaseBeside(core)): DirectoryBases {
  return { core, web };
}

/**
 * True when one of the two lies in the other, or they are the same: a name could then be read in
 * both ways.
 */
export function basesOverlap({ core, web }: DirectoryBases): boolean {
  const [one, other] = [parseDistinguishedName(core) ?? [], parseDistinguishedName(web) ?? []];
  return partsAbove(one, other) !== undefined || partsAbove(other, one) !== undefined;
}
