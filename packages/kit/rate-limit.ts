// Limits how often something happens: a burst, then so many a second; and remembers when each of
// many keys was last seen.

import { nameKey } from './names.ts';
import { SECOND_MS } from './time.ts';

/**
 * When something last happened, for a bounded number of keys; the one that is longest ago is
 * forgotten first.
 */
export class RecentKeys {
  readonly #times = new Map<string, number>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  note(key: string, nowMs: number): void {
    this.#times.delete(key);
    this.#times.set(key, nowMs);
    if (this.#times.size > this.#most) dropOldest(this.#times);
  }

  within(key: string, spanMs: number, nowMs: number): boolean {
    const time = this.#times.get(key);
    return time !== undefined && nowMs - time < spanMs;
  }
}

export interface RateOptions {
  burst: number;
  perSecond: number;
  now: () => Date;
}

/** Users that are remembered; one that is forgotten has the whole burst again. */
const MAX_REMEMBERED = 10_000;

/**
 * Counts one and says whether it is still within the rate. A clock that was set back gives nothing
 * and takes nothing.
 */
export function rateLimit({ burst, perSecond, now }: RateOptions): (username: string) => boolean {
  const states = new Map<string, { left: number; atMs: number }>();

  return function isWithin(username) {
    const key = nameKey(username);
    const atMs = now().getTime();
    const { left, atMs: before } = states.get(key) ?? { left: burst, atMs };
    const filled = Math.min(burst, left + (Math.max(0, atMs - before) / SECOND_MS) * perSecond);
    states.delete(key);
    states.set(key, { left: filled >= 1 ? filled - 1 : filled, atMs });
    if (states.size > MAX_REMEMBERED) dropOldest(states);
    return filled >= 1;
  };
}

function dropOldest(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}
