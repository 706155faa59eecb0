// The groups of people by their names, as the directory shows them, kept for some seconds.

import { nameKey } from '@holdfast/kit/names';
import { KeptAnswers } from '../http/kept-answers.ts';
import type { CoreDirectory, Membership, MembershipsOf } from '../model/parts.ts';

export interface PeopleGroupsOptions {
  directory: Pick<CoreDirectory, 'find'>;
  memberships: MembershipsOf;
  now: () => Date;
}

const KEPT_MS = 20_000;
const MOST_KEPT = 10_000;

/** Rejects with an AppError when the directory does not answer. */
export class PeopleGroups {
  readonly #options: PeopleGroupsOptions;
  readonly #kept;

  constructor(options: PeopleGroupsOptions) {
    this.#options = options;
    this.#kept = new KeptAnswers<Membership[] | 'closed' | undefined>({
      keptMs: KEPT_MS,
      most: MOST_KEPT,
      now: options.now,
    });
  }

  /** Undefined for somebody whom the directory does not know. */
  async find(username: string): Promise<Membership[] | undefined> {
    const found = await this.#known(username);
    return found === 'closed' ? this.#options.memberships(undefined) : found;
  }

  /** As `find`; none for somebody whom the directory does not know. */
  async of(username: string): Promise<Membership[]> {
    return (await this.find(username)) ?? this.#options.memberships(undefined);
  }

  /** As `of`; `closed` for somebody whom the directory knows and whose account is not active. */
  async standing(username: string): Promise<Membership[] | 'closed'> {
    return (await this.#known(username)) ?? this.#options.memberships(undefined);
  }

  /** What is asked next is asked of the directory. */
  forget(usernames: readonly string[]): void {
    for (const username of usernames) this.#kept.forget(nameKey(username));
  }

  async #ask(username: string): Promise<Membership[] | 'closed' | undefined> {
    const entry = await this.#options.directory.find(username);
    if (entry === undefined) return undefined;
    return entry.isActive ? this.#options.memberships(entry) : 'closed';
  }

  #known(username: string): Promise<Membership[] | 'closed' | undefined> {
    return this.#kept.ask(nameKey(username), () => this.#ask(username));
  }
}
