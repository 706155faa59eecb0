// Repeats work until it succeeds: with growing pauses, until something is ready, or once a day.

import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, StackError } from './app-error.ts';
import type { Log } from './log.ts';
import { DAY_MS, MINUTE_MS } from './time.ts';

const FIRST_PAUSE_MS = 500;
/** Whoever waits for it is kept waiting no longer after the cause is gone. */
const MAX_PAUSE_MS = 4_000;

export interface RetryOptions {
  /** Ends the tries; what runs is left to end. */
  stopped: AbortSignal;
  /** Called after each failure that is not the last try. */
  failed: (error: unknown, retryInMs: number) => void;
  /** Called once after the first try, with what it brought. */
  tried?: ((worked: boolean) => void) | undefined;
  /** True for a failure that no later try can mend: it is thrown. */
  isFinal?: (error: unknown) => boolean;
  /** Ends early when the signal is aborted. */
  pause?: (ms: number, stopped: AbortSignal) => Promise<void>;
}

async function wait(ms: number, stopped: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal: stopped }).catch(() => undefined);
}

/** The outcome of `action`; undefined when it was stopped before it worked. */
export async function retry<T>(
  action: () => Promise<T>,
  { stopped, failed, tried, isFinal = () => false, pause = wait }: RetryOptions,
): Promise<T | undefined> {
  for (let pauseMs = FIRST_PAUSE_MS; !stopped.aborted; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    try {
      const outcome = await action();
      tried?.(true);
      return outcome;
    } catch (error) {
      if (stopped.aborted) return undefined;
      if (isFinal(error)) throw error;
      failed(error, pauseMs);
      tried?.(false);
      await pause(pauseMs, stopped);
    }
  }
  return undefined;
}

/** What was tried is to be tried again; the message says what is missing. */
export class NotReady extends Error {}

const AGAIN_MS = 2_000;
const SAY_EVERY_MS = 10_000;

export interface Patience {
  now: () => number;
  pause: (ms: number) => Promise<void>;
  /** `why` is the last answer. */
  waiting: (forWhat: string, why: string) => void;
}

export interface Awaited {
  /** A part of a sentence: `an answer of authentik`. */
  what: string;
  withinMs: number;
  remedy: string;
}

/**
 * Waits for a part of the stack that comes up in its own time: asks again until it is there, says
 * every few seconds what it waits for, and ends with a sentence when that takes too long. The value
 * of the first try that is not NotReady; anything else that is thrown ends the waiting.
 */
export async function waitFor<T>(
  { now, pause, waiting }: Patience,
  { what, withinMs, remedy }: Awaited,
  attempt: () => Promise<T>,
): Promise<T> {
  const begun = now();
  let reported = begun;
  for (;;) {
    const why = await tried(attempt);
    if ('value' in why) return why.value;
    const at = now();
    if (at - begun >= withinMs)
      throw new StackError(
        `After ${Math.round(withinMs / MINUTE_MS)} min there is no ${what}: ${why.missing}.`,
        remedy,
      );
    if (at - reported >= SAY_EVERY_MS) {
      reported = at;
      waiting(what, why.missing);
    }
    await pause(AGAIN_MS);
  }
}

async function tried<T>(attempt: () => Promise<T>): Promise<{ value: T } | { missing: string }> {
  try {
    return { value: await attempt() };
  } catch (error) {
    if (error instanceof NotReady) return { missing: messageOf(error) };
    throw error;
  }
}

const RETRY_MS = 50_000;

/**
 * Work that is due once a day, tried again within a minute of a failure; a machine that slept, or
 * whose clock was set, catches up. Begins a day after `now`; the function that comes back is called
 * often, never rejects, and logs `event` at a failure.
 */
export function onceDaily(work: () => Promise<void>, event: string, now: () => Date, log: Log): () => Promise<void> {
  let nextAt = now().getTime() + DAY_MS;
  let running = false;

  return async function look() {
    const at = now().getTime();
    if (running || (at < nextAt && nextAt - at <= DAY_MS)) return;
    running = true;
    try {
      await work();
      nextAt = at + DAY_MS;
    } catch (error) {
      nextAt = at + RETRY_MS;
      log.error(event, { error: messageOf(error) });
    } finally {
      running = false;
    }
  };
}

const LOOK_EVERY_MS = 5_000;
/** The parts make their files one after the other, and may come up later than this process. */
const REPORTED_AFTER_FAILURES = 4;

/**
 * Now and every few seconds, until it is stopped. `failed` hears of it once, when it does not pass
 * by itself.
 */
export function repeatRegularly(
  work: () => void,
  failed: (message: string) => void,
  everyMs = LOOK_EVERY_MS,
): () => void {
  let failures = 0;
  const attempt = (): void => {
    try {
      work();
      failures = 0;
    } catch (error) {
      if (++failures === REPORTED_AFTER_FAILURES) failed(messageOf(error));
    }
  };
  attempt();
  const timer = setInterval(attempt, everyMs).unref();
  return () => clearInterval(timer);
}
