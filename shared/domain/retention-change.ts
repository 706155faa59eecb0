// A change of what is kept how long: what may be asked for, and its two parts, of which one only ever keeps more.

import { mostDays, RETAINED, type Retained, type RetentionPolicy, type RetentionUnit, shownDays } from './retention.ts';

/** Null: for ever. What is not named stays. */
export type PolicyChange = Partial<RetentionPolicy>;

/** What is wrong with days, in words that follow their name; undefined when nothing is. Null is right. */
export function daysFault(days: number | null, unit: RetentionUnit): string | undefined {
  if (days === null || (Number.isInteger(days) && days >= 1 && days <= mostDays(unit))) return undefined;
  return `must be ${daysInWords(unit)}, not ${days}`;
}

/** What days may be. */
export function daysInWords(unit: RetentionUnit): string {
  const why = unit === 'seconds' ? ' (the core counts seconds in 32 bits)' : '';
  return `a whole number of days from 1 to ${mostDays(unit)}${why}`;
}

export interface ChangeParts {
  /** After which a run deletes no more than before. */
  longer: PolicyChange;
  /** After which a run may delete more. */
  shorter: PolicyChange;
}

/** What differs between two policies, in whatever unit both have. */
export function changeParts(from: RetentionPolicy, to: RetentionPolicy): ChangeParts {
  const parts: ChangeParts = { longer: {}, shorter: {} };
  for (const type of RETAINED) {
    if (from[type] === to[type]) continue;
    const keepsLonger = (to[type] ?? Number.POSITIVE_INFINITY) > (from[type] ?? Number.POSITIVE_INFINITY);
    parts[keepsLonger ? 'longer' : 'shorter'][type] = to[type];
  }
  return parts;
}

export function changedTypes(from: RetentionPolicy, to: RetentionPolicy): Retained[] {
  return RETAINED.filter((type) => from[type] !== to[type]);
}

/** `cot 30 days, files 90 days`, `nothing`; of days. */
export function limitedInWords(policy: RetentionPolicy): string {
  const limited = RETAINED.flatMap((type) => {
    const days = policy[type];
    return days === null ? [] : [`${type} ${shownDays(days)} ${days === 1 ? 'day' : 'days'}`];
  });
  return limited.join(', ') || 'nothing';
}
