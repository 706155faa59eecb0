// What a filter says before anything is read: which kinds of entries can match it at all, and what must hold for every match.

import type { Filter } from './filter.ts';
import { attributeKey } from './schema.ts';

/** False only when no entry of exactly these classes can match. */
export function canMatch(filter: Filter, classes: readonly string[]): boolean {
  return canBe(true, filter, new Set(classes.map((name) => name.toLowerCase())));
}

/** What cannot be told of an entry is neither true nor false: it never makes anything possible that is not said here. */
function canBe(truth: boolean, filter: Filter, classes: ReadonlySet<string>): boolean {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return truth === (filter.kind === 'and')
        ? filter.parts.every((part) => canBe(truth, part, classes))
        : filter.parts.some((part) => canBe(truth, part, classes));
    case 'not':
      return canBe(!truth, filter.part, classes);
    case 'present':
      return attributeKey(filter.attribute) !== 'objectclass' || truth;
    case 'equal':
      if (attributeKey(filter.attribute) !== 'objectclass' || filter.value === undefined) return true;
      return classes.has(filter.value.toLowerCase()) === truth;
    case 'substring':
    case 'atLeast':
    case 'atMost':
    case 'extensible':
    default:
      return true;
  }
}

/** Values that every match must have, by attribute in lower case; only what the whole filter demands. */
export function demanded(filter: Filter): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  collect(filter, found);
  return found;
}

function collect(filter: Filter, found: Map<string, string>): void {
  if (filter.kind === 'equal' && filter.value !== undefined) found.set(attributeKey(filter.attribute), filter.value);
  else if (filter.kind === 'and') for (const part of filter.parts) collect(part, found);
  else if (filter.kind === 'or' && filter.parts.length === 1 && filter.parts[0] !== undefined) {
    collect(filter.parts[0], found);
  }
}
