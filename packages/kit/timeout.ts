// Ends the wait for work that may never settle. The work itself goes on.

import { AppError } from './app-error.ts';

/**
 * The outcome of `work`. When it has not settled after `ms`, rejects with the error that `late`
 * makes; a name there (`The core`) gives an AppError `unavailable`: "The core did not answer within
 * 2 s."
 */
export async function withTimeout<T>(
  ms: number,
  late: string | (() => Error),
  work: PromiseLike<T> | (() => Promise<T>),
): Promise<T> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(typeof late === 'string' ? noAnswer(late, ms) : late()), ms);
  try {
    return await Promise.race([typeof work === 'function' ? work() : work, expired]);
  } finally {
    clearTimeout(timer);
  }
}

/** The outcome of `work`, or `fallback` when it has not settled after `ms`. */
export async function withFallback<T, F>(ms: number, fallback: F, work: Promise<T>): Promise<T | F> {
  const { promise: expired, resolve } = Promise.withResolvers<F>();
  const timer = setTimeout(() => resolve(fallback), ms);
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}

export interface CircuitBreakerOptions {
  withinMs: number;
  /** How long a service that failed is left alone. */
  pauseMs: number;
  /** A monotonic clock in milliseconds. */
  steadyMs: () => number;
}

/** Calls a service that may hang, so that only the first callers wait for it in vain. */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  #pausedUntilMs = -Infinity;
  #isOpen = false;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  /** True if the last call failed. */
  isOpen(): boolean {
    return this.#isOpen;
  }

  /** True for a while after a call failed. */
  isPaused(): boolean {
    return this.#options.steadyMs() < this.#pausedUntilMs;
  }

  /** Undefined if `work` rejects or takes too long. */
  async answered<T extends {}>(work: Promise<T>): Promise<T | undefined> {
    const { withinMs, pauseMs, steadyMs } = this.#options;
    const answer = await withFallback(withinMs, undefined, work).catch(() => undefined);
    this.#isOpen = answer === undefined;
    if (answer === undefined) this.#pausedUntilMs = steadyMs() + pauseMs;
    return answer;
  }
}

/**
 * The outcome of `work`; rejects with what `stopped` makes, else with the reason of the signal, as
 * soon as that is aborted. Work that ends at the same signal comes too late when it is given as a
 * function.
 */
export async function unlessAborted<T>(
  signal: AbortSignal,
  work: Promise<T> | (() => Promise<T>),
  stopped: () => unknown = () => signal.reason as unknown,
): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(stopped());
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await Promise.race([typeof work === 'function' ? work() : work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function noAnswer(who: string, ms: number): AppError {
  return new AppError('unavailable', `${who} did not answer within ${ms / 1000} s.`);
}
