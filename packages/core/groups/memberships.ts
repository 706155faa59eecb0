// From the groups that the directory shows of a person to groups with directions, as devices know them.

import { ADMIN_ROLE_GROUP, nameKey } from '@holdfast/kit/names';
import type { Membership, MembershipsOf } from '../model/parts.ts';

const READS = '_READ';
const WRITES = '_WRITE';

/**
 * `prefix` begins the names that are groups of the core (`core_`) and is not part of what devices see. A suffix `_READ`
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
