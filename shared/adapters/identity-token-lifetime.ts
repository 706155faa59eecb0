// The longest lifetime of an account's app passwords, in the provider's own form of a duration.

import type { Json } from '../ports/identity.ts';

/** The attribute of an account that the provider reads it from. */
export const CEILING = 'goauthentik.io/user/token-maximum-lifetime';

const UNIT_MINUTES: Record<string, number> = {
  microseconds: 1 / 60_000_000,
  milliseconds: 1 / 60_000,
  seconds: 1 / 60,
  minutes: 1,
  hours: 60,
  days: 24 * 60,
  weeks: 7 * 24 * 60,
};

/** Minutes of `days=7;hours=12`; 0 for what is no duration, which the provider does not heed either. */
export function ceilingMinutes(value: Json | undefined): number {
  if (typeof value !== 'string') return 0;
  let minutes = 0;
  for (const part of value.split(';')) {
    if (part.trim() === '') continue;
    const [, unit = '', number = ''] = /^\s*(\w+)\s*=\s*(-?\d+(?:\.\d+)?)\s*$/.exec(part) ?? [];
    const each = UNIT_MINUTES[unit.toLowerCase()];
    if (each === undefined) return 0;
    minutes += each * Number(number);
  }
  return minutes;
}
