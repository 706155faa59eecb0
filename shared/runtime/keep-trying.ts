// Tries until it works, with growing pauses.

import { setTimeout as delay } from 'node:timers/promises';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

export interface Trying {
  /** Ends the tries; what runs is left to end. */
  stopped: AbortSignal;
  /** Called after each failure that is not the last try. */
  failed: (error: unknown, retryInMs: number) => void;
  /** Called once after the first try, with what it brought. */
  tried?: ((worked: boolean) => void) | undefined;
  /** True for a failure that no later try can mend: it is thrown. */
  isFinal?: (error: unknown) => boolean;
}

/** The outcome of `action`; undefined when it was stopped before it worked. */
export async function keepTrying<T>(
  action: () => Promise<T>,
  { stopped, failed, tried, isFinal = () => false }: Trying,
): Promise<T | undefined> {
  for (let pauseMs = FIRST_PAUSE_MS; !stopped.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      const outcome = await action();
      tried?.(true);
      return outcome;
    } catch (error) {
      if (stopped.aborted) return undefined;
      if (isFinal(error)) throw error;
      failed(error, pauseMs);
      tried?.(false);
      await delay(pauseMs, undefined, { signal: stopped }).catch(() => undefined);
    }
  }
  return undefined;
}
