// An end for work that may never settle.

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
