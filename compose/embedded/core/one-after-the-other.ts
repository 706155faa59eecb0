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
