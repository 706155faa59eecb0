// How many sign-ins of one key are judged at once: never more than may still fail, so that guesses sent together do not all
// pass the lock-out before the first failure is known.

interface Attempts {
  running: number;
  /** Running and waiting. */
  present: number;
  waiting: (() => void)[];
}

/** Of one key; clients that went away while they waited count as well. */
const MOST_PRESENT = 256;

/**
 * `left` says how many failures a key has left; one attempt may always run, if only to hear that it is locked. Undefined at
 * once when too many of the key wait already.
 */
export function attemptsAtOnce(
  left: (key: string) => number,
  mostPresent = MOST_PRESENT,
): <T>(key: string, run: () => Promise<T>) => Promise<T | undefined> {
  const keys = new Map<string, Attempts>();

  return async function inTurn(key, run) {
    const attempts = keys.get(key) ?? { running: 0, present: 0, waiting: [] };
    if (attempts.present >= mostPresent) return undefined;
    keys.set(key, attempts);
    attempts.present += 1;
    while (attempts.running > 0 && attempts.running >= left(key)) {
      await new Promise<void>((wake) => attempts.waiting.push(wake));
    }
    attempts.running += 1;
    try {
      return await run();
    } finally {
      attempts.running -= 1;
      attempts.present -= 1;
      for (const wake of attempts.waiting.splice(0)) wake();
      if (attempts.present === 0) keys.delete(key);
    }
  };
}
