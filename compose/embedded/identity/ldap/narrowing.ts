// What a filter says before anything is read: which kinds of entries can match it at all, and what must hold for every match.

import type { Filter } from './filter.ts';
import { attributeKey } from './schema.ts';

/** Outcomes that a part of a filter may have, as a set of bits. */
const YES = 1;
const NO = 2;
const UNTOLD = 4;
const ANY = YES | NO | UNTOLD;

/** False only when no entry of exactly these classes can match. */
export function canMatch(filter: Filter, classes: readonly string[]): boolean {
  const own = new Set(classes.map((name) => name.toLowerCase()));
  return (outcomes(filter, own) & YES) !== 0;
}

function outcomes(filter: Filter, classes: ReadonlySet<string>): number {
  switch (filter.kind) {
    case 'and':
      return filter.parts.map((part) => outcomes(part, classes)).reduce(both, YES);
    case 'or':
      return swap(filter.parts.map((part) => swap(outcomes(part, classes))).reduce(both, YES));
    case 'not':
      return swap(outcomes(filter.part, classes));
    case 'present':
      return attributeKey(filter.attribute) === 'objectclass' ? YES : ANY;
    case 'equal':
      if (attributeKey(filter.attribute) !== 'objectclass' || filter.value === undefined) return ANY;
      return classes.has(filter.value.toLowerCase()) ? YES : NO;
    case 'substring':
    case 'atLeast':
    case 'atMost':
    case 'extensible':
    default:
      return ANY;
  }
}

function swap(set: number): number {
  return (set & UNTOLD) | ((set & YES) === 0 ? 0 : NO) | ((set & NO) === 0 ? 0 : YES);
}

/** Outcomes of "a and b": false beats everything, untold beats true. */
function both(a: number, b: number): number {
  let set = (a | b) & NO;
  if ((a & YES) !== 0 && (b & YES) !== 0) set |= YES;
  if (((a & UNTOLD) !== 0 && (b & ~NO) !== 0) || ((b & UNTOLD) !== 0 && (a & ~NO) !== 0)) set |= UNTOLD;
  return set;
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
