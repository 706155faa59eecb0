// The groups of people: as the directory shows them, kept for some seconds, and with directions as devices know them.

import { ADMIN_ROLE_GROUP, nameKey } from '@holdfast/kit/names';
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

const READS = '_READ';
const WRITES = '_WRITE';

/**
 * From the groups that the directory shows of a person to groups with directions, as devices know them. `prefix`
 * begins the names that are groups of the core (`core_`) and is not part of what devices see. A suffix `_READ`
 * receives only, `_WRITE` sends only. `never` names groups that give a role: they are no groups of the core.
 */
export function membershipsOf(prefix: string, never: readonly string[] = []): MembershipsOf {
  const start = nameKey(prefix);
  const roles = new Set([ADMIN_ROLE_GROUP, ...never].map(nameKey));

  return (entry) => {
    const found = new Map<string, Membership>();
    for (const group of entry?.groups ?? []) {
      const key = nameKey(group);
      if (!key.startsWith(start) || roles.has(key) || key.includes('\0')) continue;
      for (const membership of read(group.slice(prefix.length)))
        found.set(`${membership.direction} ${membership.name}`, membership);
    }
    return [...found.values()];
  };
}

function read(name: string): Membership[] {
  for (const [suffix, direction] of [
    [READS, 'OUT'],
    [WRITES, 'IN'],
  ] as const)
    if (name.endsWith(suffix)) return named(name.slice(0, -suffix.length)).map((group) => ({ name: group, direction }));
  return named(name).flatMap(both);
}

/** Nothing is left of a name that is all prefix and suffix. */
function named(name: string): string[] {
  return name === '' ? [] : [name];
}

function both(name: string): Membership[] {
  return [
    { name, direction: 'IN' },
    { name, direction: 'OUT' },
  ];
}
