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
