// Callers that ask for the same thing at the same moment share one piece of work. Whoever comes later shares the next one,
// which begins when the running one has ended: so nobody waits for more than two, and nobody is told what was true before
// that moment.

import type { Together } from '../http/deps.ts';

/** Requests that were sent at once arrive within this time. */
const MOMENT_MS = 10;

interface Work {
  /** Undefined until it has begun. */
  begunMs: number | undefined;
  result: Promise<unknown>;
}

export function sharingTogether(clockMs: () => number = () => performance.now()): Together {
  const running = new Map<string, Work>();
  const waiting = new Map<string, Work>();

  function begin<T>(key: string, work: () => Promise<T>, before: Promise<unknown>): Work {
    const entry: Work = { begunMs: undefined, result: before };
    entry.result = before.then(afterThisTurn).then(async () => {
      if (waiting.get(key) === entry) waiting.delete(key);
      running.set(key, entry);
      entry.begunMs = clockMs();
      try {
        return await work();
      } finally {
        if (running.get(key) === entry) running.delete(key);
      }
    });
    return entry;
  }

  return async function together<T>(key: string, work: () => Promise<T>): Promise<T> {
    const now = running.get(key);
    if (now?.begunMs !== undefined && clockMs() - now.begunMs <= MOMENT_MS) return now.result as Promise<T>;
    const next =
      waiting.get(key) ??
      begin(
        key,
        work,
        Promise.resolve(now?.result).catch(() => undefined),
      );
    waiting.set(key, next);
    return next.result as Promise<T>;
  };
}

/** Requests that arrived together are read in one turn of the event loop: the work begins after all of them have joined. */
function afterThisTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
