// An end for work that may never settle.

import { AppError } from './app-error.ts';

/** The outcome of `work`; rejects with what `late` makes when it has not settled after `ms`. The work itself goes on. */
export async function withinMs<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(late()), ms);
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

// An end for a question that may never be answered.

/** The outcome of `work`; rejects with `unavailable` when it takes longer. What goes on behind is not waited for. */
export async function inTime<T>(withinMs: number, who: string, work: () => Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const message = `${who} did not answer within ${withinMs / 1000} s.`;
  const timer = setTimeout(() => reject(new AppError('unavailable', message)), withinMs);
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}
