// Waiting for a part of the stack that comes up in its own time: asks again until it is there, says every few seconds what it
// waits for, and ends with a sentence when that takes too long.

import { messageOf } from '../../shared/domain/thrown.ts';
import { StackError } from '../embedded/stack-error.ts';

/** What was tried is to be tried again; the message says what is missing. */
export class NotYet extends Error {}

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

/** The value of the first try that is not NotYet; anything else that is thrown ends the waiting. */
export async function patiently<T>(
  { now, pause, waiting }: Patience,
  { what, withinMs, remedy }: Awaited,
  attempt: () => Promise<T>,
): Promise<T> {
  const begun = now();
  let said = begun;
  for (;;) {
    const why = await tried(attempt);
    if ('value' in why) return why.value;
    const at = now();
    if (at - begun >= withinMs)
      throw new StackError(`After ${Math.round(withinMs / 60_000)} min there is no ${what}: ${why.missing}.`, remedy);
    if (at - said >= SAY_EVERY_MS) {
      said = at;
      waiting(what, why.missing);
    }
    await pause(AGAIN_MS);
  }
}

async function tried<T>(attempt: () => Promise<T>): Promise<{ value: T } | { missing: string }> {
  try {
    return { value: await attempt() };
  } catch (error) {
    if (error instanceof NotYet) return { missing: messageOf(error) };
    throw error;
  }
}
