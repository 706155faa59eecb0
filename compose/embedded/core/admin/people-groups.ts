// The groups of people by their names, as the directory shows them, kept for some seconds.

import { nameKey } from '../../../../shared/domain/names.ts';
import type { CoreDirectory, Membership, MembershipsOf } from '../parts.ts';

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

interface Kept {
  atMs: number;
  found: Promise<Membership[] | undefined>;
}

export function peopleGroups({ directory, memberships, now }: PeopleGroupsOptions): PeopleGroups {
  const kept = new Map<string, Kept>();

  async function ask(username: string): Promise<Membership[] | undefined> {
    const entry = await directory.find(username);
    if (entry === undefined) return undefined;
    return memberships(entry.isActive ? entry : undefined);
  }

  function find(username: string): Promise<Membership[] | undefined> {
    const key = nameKey(username);
    const known = kept.get(key);
    const age = known === undefined ? KEPT_MS : now().getTime() - known.atMs;
    if (known !== undefined && age >= 0 && age < KEPT_MS) return known.found;
    const asked: Kept = { atMs: now().getTime(), found: ask(username) };
    kept.delete(key);
    kept.set(key, asked);
    dropOldest();
    asked.found.catch(() => {
      if (kept.get(key) === asked) kept.delete(key);
    });
    return asked.found;
  }

  function dropOldest(): void {
    const [oldest] = kept.keys();
    if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
  }

  return {
    find,
    of: async (username) => (await find(username)) ?? memberships(undefined),
    forget(usernames) {
      for (const username of usernames) kept.delete(nameKey(username));
    },
  };
}
