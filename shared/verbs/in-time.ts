// An end for a question that may never be answered.

import { AppError } from '../domain/app-error.ts';

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
