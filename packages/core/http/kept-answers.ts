// Answers that are kept for a moment: whoever asks the same meanwhile gets the same. A failure is not kept.

export interface KeptAnswers<T> {
  /** The answer that is kept under the key, else that of `find`. Rejects as `find` does. */
  ask(key: string, find: () => Promise<T>): Promise<T>;
  forget(key: string): void;
  clear(): void;
}

export interface KeptAnswersOptions {
  keptMs: number;
  /** Beyond that the oldest goes. */
  most: number;
  now: () => Date;
}

/** A clock that was set back ends what is kept. */
export function keptAnswers<T>({ keptMs, most, now }: KeptAnswersOptions): KeptAnswers<T> {
  const kept = new Map<string, { atMs: number; answer: Promise<T> }>();

  return {
    ask(key, find) {
      const atMs = now().getTime();
      const known = kept.get(key);
      if (known !== undefined && atMs >= known.atMs && atMs - known.atMs < keptMs) return known.answer;
      const asked = { atMs, answer: find() };
      kept.delete(key);
      kept.set(key, asked);
      const [oldest] = kept.keys();
      if (kept.size > most && oldest !== undefined) kept.delete(oldest);
      asked.answer.catch(() => {
        if (kept.get(key) === asked) kept.delete(key);
      });
      return asked.answer;
    },
    forget: (key) => void kept.delete(key),
    clear: () => kept.clear(),
  };
}
