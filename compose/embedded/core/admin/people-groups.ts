// The groups of people by their names, as the directory shows them, kept for some seconds.

import { nameKey } from '../../../../shared/domain/names.ts';
import type { CoreDirectory, Membership, MembershipsOf } from '../parts.ts';
import { keptAnswers } from './kept-answers.ts';

/** Rejects with an AppError when the directory does not answer. */
export interface PeopleGroups {
  /** Undefined for somebody whom the directory does not know. */
  find(username: string): Promise<Membership[] | undefined>;
  /** Nobody is in none: then the group of the anonymous, both ways. */
  of(username: string): Promise<Membership[]>;
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
  const kept = keptAnswers<Membership[] | undefined>({ keptMs: KEPT_MS, most: MOST_KEPT, now });

  async function ask(username: string): Promise<Membership[] | undefined> {
    const entry = await directory.find(username);
    if (entry === undefined) return undefined;
    return memberships(entry.isActive ? entry : undefined);
  }

  const find = (username: string): Promise<Membership[] | undefined> =>
    kept.ask(nameKey(username), () => ask(username));

  return {
    find,
    of: async (username) => (await find(username)) ?? memberships(undefined),
    forget(usernames) {
      for (const username of usernames) kept.forget(nameKey(username));
    },
  };
}
