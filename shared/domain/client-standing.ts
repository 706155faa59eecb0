// Judges clients that sign in: names that have signed in from an address go before strangers, and one address cannot fill the line
// of strangers before its first failure is known.

import type { Standing } from './fair-line.ts';
import { RecentKeys } from './recent-keys.ts';

export interface ClientStanding {
  /** Of an attempt that begins now; `ended` has to be called when its verdict is there. `key` names address and account. */
  begin(address: string, key: string): { standing: Exclude<Standing, 'own'>; ended: () => void };
  succeeded(key: string): void;
  failed(address: string): void;
}

const KEYS = 10_000;
const SUSPECT_MS = 5 * 60_000;
const PROVEN_MS = 60 * 60_000;
/** Of one address. More than anybody's devices send at once; a start after which everybody comes back is slower, not refused. */
const STRANGERS_AT_ONCE = 16;

export function clientStanding(now: () => number): ClientStanding {
  const failures = new RecentKeys(KEYS);
  const successes = new RecentKeys(KEYS);
  const strangers = new Map<string, number>();

  function strangerLeaves(address: string): void {
    const others = (strangers.get(address) ?? 1) - 1;
    if (others === 0) strangers.delete(address);
    else strangers.set(address, others);
  }

  return {
    begin(address, key) {
      if (successes.within(key, PROVEN_MS, now())) return { standing: 'proven', ended: () => undefined };
      const others = strangers.get(address) ?? 0;
      if (others >= STRANGERS_AT_ONCE || failures.within(address, SUSPECT_MS, now())) {
        return { standing: 'suspect', ended: () => undefined };
      }
      strangers.set(address, others + 1);
      return { standing: 'usual', ended: () => strangerLeaves(address) };
    },
    succeeded: (key) => successes.note(key, now()),
    failed: (address) => failures.note(address, now()),
  };
}
