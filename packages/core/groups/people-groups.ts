// The groups of people by their names, as the directory shows them, kept for some seconds.

import { nameKey } from '@holdfast/kit/names';
import { keptAnswers } from '../http/kept-answers.ts';
import type { CoreDirectory, Membership, MembershipsOf } from '../model/parts.ts';

/** Rejects with an AppError when the directory does not answer. */
export interface PeopleGroups {
  /** Undefined for somebody whom the directory does not know. */
  find(username: string): Promise<Membership[] | undefined>;
  /** As `find`; none for somebody whom the directory does not know. */
  of(username: string): Promise<Membership[]>;
  /** As `of`; `closed` for somebody whom the directory knows and whose account is not active. */
  standing(username: string): Promise<Membership[] | 'closed'>;
  /** What is asked next is asked of the directory. */
  forget(usernames: readonly string[]): void;
}

export interface PeopleGroupsOptions {
  directory: Pick<CoreDirectory, 'find'>;
  memberships: MembershipsOf;
  now: () => Date;
}

const KEPT_MS = 20_000;
const MOST_KEPT = 10_000;

export function peopleGroups({ directory, memberships, now }: PeopleGroupsOptions): PeopleGroups {
  const kept = keptAnswers<Membership[] | 'closed' | undefined>({ keptMs: KEPT_MS, most: MOST_KEPT, now });

  async function ask(username: string): Promise<Membership[] | 'closed' | undefined> {
    const entry = await directory.find(username);
    if (entry === undefined) return undefined;
    return entry.isActive ? memberships(entry) : 'closed';
  }

  const known = (username: string): Promise<Membership[] | 'closed' | undefined> =>
    kept.ask(nameKey(username), () => ask(username));

  async function find(username: string): Promise<Membership[] | undefined> {
    const found = await known(username);
    return found === 'closed' ? memberships(undefined) : found;
  }

  return {
    find,
    of: async (username) => (await find(username)) ?? memberships(undefined),
    standing: async (username) => (await known(username)) ?? memberships(undefined),
    forget(usernames) {
      for (const username of usernames) kept.forget(nameKey(username));
    },
  };
}
