// What an order of a run may ask for: no type that is kept, no limit later than the policy in force has it.

import { RETAINED, type Retained, type RetentionLimits, type RetentionPolicy } from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';
import { CoreFault } from '../http/answers.ts';

/** The one who orders has read the clock before us. */
const TOLERANCE_MS = 1_000;

/** The limits, as they are kept; throws a CoreFault `invalid` that names the type. `now` is the clock of the database. */
export function orderedLimits(asked: RetentionLimits, policy: RetentionPolicy, now: Date): RetentionLimits {
  const limits: RetentionLimits = {};
  for (const type of RETAINED) {
    const text = asked[type];
    if (text === undefined) continue;
    const limit = new Date(text);
    if (Number.isNaN(limit.getTime())) throw invalid(`limits.${type}: "${text}" is no moment`);
    const kept = keptInWords(type, limit, policy, now);
    if (kept !== undefined) throw invalid(`limits.${type}: ${kept}`);
    limits[type] = limit.toISOString();
  }
  if (Object.keys(limits).length === 0) throw invalid('limits: no type is named, so there is nothing to delete');
  return limits;
}

/** What of a type the policy keeps that is older than `limit`, for a run of `asOf`; undefined: nothing. */
export function keptInWords(type: Retained, limit: Date, policy: RetentionPolicy, asOf: Date): string | undefined {
  const days = policy[type];
  if (days === null) return `the policy keeps ${type} for ever`;
  const latest = asOf.getTime() - days * DAY_MS;
  if (limit.getTime() <= latest + TOLERANCE_MS) return undefined;
  return `${limit.toISOString()} is later than ${new Date(latest).toISOString()}, and the policy keeps ${type} for ${days} days`;
}

function invalid(why: string): CoreFault {
  return new CoreFault('invalid', `Invalid Request: ${why}`);
}
