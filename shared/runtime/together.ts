// Callers that ask for the same thing within a moment share one piece of work. Later ones get their own, so that nobody
// sees what was true before they asked.

import type { Together } from '../http/deps.ts';

const MOMENT_MS = 50;

export function sharingTogether(clockMs: () => number = () => performance.now()): Together {
  const running = new Map<string, { sinceMs: number; result: Promise<unknown> }>();

  return function together<T>(key: string, work: () => Promise<T>): Promise<T> {
    const known = running.get(key);
    if (known !== undefined && clockMs() - known.sinceMs <= MOMENT_MS) return known.result as Promise<T>;
    const result = afterThisTurn()
      .then(work)
      .finally(() => {
        if (running.get(key)?.result === result) running.delete(key);
      });
    running.set(key, { sinceMs: clockMs(), result });
    return result;
  };
}

/** Requests that arrived together are read in one turn of the event loop: the work begins after all of them have joined. */
function afterThisTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
