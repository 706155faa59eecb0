// How often somebody may do something: a burst, then so many a second.

import { nameKey } from '../../../shared/domain/names.ts';

export interface RateOptions {
  burst: number;
  perSecond: number;
  now: () => Date;
}

/** People that are remembered; whoever is forgotten has the whole burst again. */
const MOST_REMEMBERED = 10_000;

/** Counts one and says whether it is still within the rate. A clock that was set back gives nothing and takes nothing. */
export function rate({ burst, perSecond, now }: RateOptions): (username: string) => boolean {
  const states = new Map<string, { left: number; atMs: number }>();

  return function isWithin(username) {
    const key = nameKey(username);
    const atMs = now().getTime();
    const { left, atMs: before } = states.get(key) ?? { left: burst, atMs };
    const filled = Math.min(burst, left + (Math.max(0, atMs - before) / 1000) * perSecond);
    states.delete(key);
    states.set(key, { left: filled >= 1 ? filled - 1 : filled, atMs });
    const [oldest] = states.keys();
    if (states.size > MOST_REMEMBERED && oldest !== undefined) states.delete(oldest);
    return filled >= 1;
  };
}
