// The LDAP directory that checks passwords and knows who is in which group.

/** `core` accepts passwords and app passwords, `web` passwords only. */
export type DirectoryBase = 'core' | 'web';

/** A person or service account as its own entry shows it. */
export interface DirectoryEntry {
  dn: string;
  /** As the directory spells it; but for the case it is the name that was asked for. */
  username: string;
  /** False for somebody who may not sign in, where the directory says so; one that says nothing shows no such people. */
  isActive: boolean;
  /** Names (the `cn`) of the groups, as the directory spells them. */
  groups: string[];
}

/**
 * Every call ends within a few seconds; rejects with an AppError `unavailable` when the directory does not answer, and
 * `upstream` when its answer makes no sense. User and group names are data: they are escaped, and reach no other entry.
 */
export interface Directory {
  /**
   * Binds as the user and reads the own entry. Undefined when the directory refuses, for whatever reason it has. An empty
   * name or password is refused without asking.
   */
  signIn(base: DirectoryBase, username: string, password: string): Promise<DirectoryEntry | undefined>;
  /**
   * The entry of a user, read by the service account on the core base; undefined when there is none. Also of somebody who
   * may not sign in any more: see `isActive`.
   */
  find(username: string): Promise<DirectoryEntry | undefined>;
  /**
   * A bind of the service account and its search for a group, both new, on that base: proves that the directory lets
   * people in. Resolves with the number of members, or undefined when there is no such group.
   */
  probe(base: DirectoryBase, group: string): Promise<number | undefined>;
}
