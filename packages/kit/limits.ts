// When something last happened, for a bounded number of keys; the one that is longest ago is forgotten first.

import { nameKey } from './names.ts';

export class RecentKeys {
  readonly #times = new Map<string, number>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  note(key: string, nowMs: number): void {
    this.#times.delete(key);
    this.#times.set(key, nowMs);
    if (this.#times.size <= this.#most) return;
    const [oldest] = this.#times.keys();
    if (oldest !== undefined) this.#times.delete(oldest);
  }

  within(key: string, spanMs: number, nowMs: number): boolean {
    const time = this.#times.get(key);
    return time !== undefined && nowMs - time < spanMs;
  }
}

// The same work for many things, a few of them at a time.

/** The answers in the order of the things. Rejects with the first failure; what is under way then goes on. */
export async function severalAtOnce<T, R>(
  things: readonly T[],
  most: number,
  work: (thing: T) => Promise<R>,
): Promise<R[]> {
  const answers: R[] = [];
  const waiting = things.entries();
  async function worker(): Promise<void> {
    for (const [at, thing] of waiting) answers[at] = await work(thing);
  }
  await Promise.all(Array.from({ length: Math.min(most, things.length) }, worker));
  return answers;
}

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

// Callers that ask for the same thing at the same moment share one piece of work. Whoever comes later shares the next one,
// which begins when the running one has ended: so nobody waits for more than two, and nobody is told what was true before
// that moment.

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

/** Callers that ask for the same thing at the same moment share one piece of work, where the host allows that. */
export type Together = <T>(key: string, work: () => Promise<T>) => Promise<T>;

// Work that must never overlap: each piece begins when the one before has ended, whatever became of it.

/** A line of its own; resolves and rejects as the work does. */
export function oneAfterTheOther(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work);
    last = turn.catch(() => undefined);
    return turn;
  };
}

// How often somebody may do something: a burst, then so many a second.

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
