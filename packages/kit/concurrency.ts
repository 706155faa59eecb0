// Decides how much work runs at once: one piece after the other, so many at a time, or one for all
// who ask for the same.

import { withTimeout } from './timeout.ts';

/** Runs a piece of work when its turn comes; resolves and rejects as the work does. */
export type Runner = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * How long a piece of work may wait for its turn, and what it rejects with when that is over, as
 * `withTimeout` has it.
 */
export interface MaxWait {
  ms: number;
  late: string | (() => Error);
}

/** Each piece of work begins when the one before has ended, whatever its outcome. */
export function serialize(): Runner {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work);
    last = turn.catch(() => undefined);
    return turn;
  };
}

export interface KeyedRunner {
  <T>(key: string, work: () => Promise<T>): Promise<T>;
  /** Keys with work. */
  size(): number;
}

/** Pieces of work of one key one after the other, in the order in which they came. */
export function serializeByKey({ ms, late }: MaxWait): KeyedRunner {
  /** Settles when all work of the key so far has ended. Never rejects. */
  const tails = new Map<string, Promise<void>>();

  async function inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = tails.get(key) ?? Promise.resolve();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const tail = before.then(() => ended);
    tails.set(key, tail);
    void tail.then(() => {
      if (tails.get(key) === tail) tails.delete(key);
    });
    try {
      await withTimeout(ms, late, before);
      return await work();
    } finally {
      end();
    }
  }

  return Object.assign(inTurn, { size: () => tails.size });
}

/**
 * At most `most` pieces of work at once; the others wait in the order in which they came, for ever
 * without `wait`.
 */
export function limitConcurrency(most: number, wait?: MaxWait): Runner {
  let free = most;
  const waiting = new Set<() => void>();

  async function turn(): Promise<void> {
    const { promise: given, resolve: give } = Promise.withResolvers<void>();
    waiting.add(give);
    if (wait === undefined) return given;
    return withTimeout(wait.ms, wait.late, given).finally(() => waiting.delete(give));
  }

  function release(): void {
    const [next] = waiting;
    if (next === undefined) free += 1;
    else {
      waiting.delete(next);
      next();
    }
  }

  return async function inTurn(work) {
    if (free > 0) free -= 1;
    else await turn();
    try {
      return await work();
    } finally {
      release();
    }
  };
}

/**
 * The answers in the order of the items. Rejects with the first failure; what is under way then
 * goes on.
 */
export async function mapConcurrent<T, R>(
  items: readonly T[],
  most: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const answers: R[] = [];
  const waiting = items.entries();
  async function worker(): Promise<void> {
    for (const [at, item] of waiting) answers[at] = await work(item);
  }
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker));
  return answers;
}

export interface CallerLimit {
  /**
   * What lets the next one in, to be called once the work has ended, however often; undefined when
   * there is no room.
   */
  enter(caller: string): (() => void) | undefined;
  readonly inside: number;
}

/** A bounded number at a time, and no more than a share of it for one caller. Nobody waits. */
export function limitPerCaller({ most, maxPerOne }: { most: number; maxPerOne: number }): CallerLimit {
  const counts = new Map<string, number>();
  let inside = 0;

  function leave(caller: string): void {
    inside--;
    const left = (counts.get(caller) ?? 1) - 1;
    if (left === 0) counts.delete(caller);
    else counts.set(caller, left);
  }

  return {
    enter(caller) {
      const own = counts.get(caller) ?? 0;
      if (inside >= most || own >= maxPerOne) return undefined;
      inside++;
      counts.set(caller, own + 1);
      let isInside = true;
      return () => {
        if (isInside) leave(caller);
        isInside = false;
      };
    },
    get inside() {
      return inside;
    },
  };
}

interface Attempts {
  running: number;
  /** Running and waiting. */
  present: number;
  waiting: (() => void)[];
}

/** Of one key; clients that went away while they waited count as well. */
const MAX_PRESENT = 256;

/**
 * Never more sign-ins of one key at once than may still fail, so that guesses sent together do not
 * all pass the lockout before the first failure is known. `left` says how many failures a key has
 * left; one attempt may always run, if only to hear that it is locked. Undefined at once when too
 * many of the key wait already.
 */
export function limitAttempts(
  left: (key: string) => number,
  maxPresent = MAX_PRESENT,
): <T>(key: string, run: () => Promise<T>) => Promise<T | undefined> {
  const keys = new Map<string, Attempts>();

  return async function inTurn(key, run) {
    const attempts = keys.get(key) ?? { running: 0, present: 0, waiting: [] };
    if (attempts.present >= maxPresent) return undefined;
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

/**
 * Callers that ask for the same thing at the same moment share one piece of work, where the host
 * allows that.
 */
export type SingleFlight = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/** Requests that were sent at once arrive within this time. */
const MOMENT_MS = 10;

interface Flight {
  /** Undefined until it has begun. */
  begunMs: number | undefined;
  result: Promise<unknown>;
}

/**
 * Who asks later shares the next piece of work, which begins when the running one has ended: so
 * nobody waits for more than two, and nobody gets what was true before that moment.
 */
export function singleFlight(clockMs: () => number = () => performance.now()): SingleFlight {
  const running = new Map<string, Flight>();
  const waiting = new Map<string, Flight>();

  function begin<T>(key: string, work: () => Promise<T>, before: Promise<unknown>): Flight {
    const entry: Flight = { begunMs: undefined, result: before };
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
    const before = Promise.resolve(now?.result).catch(() => undefined);
    const next = waiting.get(key) ?? begin(key, work, before);
    waiting.set(key, next);
    return next.result as Promise<T>;
  };
}

/**
 * Requests that arrived together are read in one turn of the event loop: the work begins after all
 * of them have joined.
 */
function afterThisTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
