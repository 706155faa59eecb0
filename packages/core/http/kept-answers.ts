// Caches responses for a moment, and shares them between equal requests. Never caches failures.

export interface KeptAnswersOptions {
  keptMs: number;
  /** Beyond that the oldest goes. */
  most: number;
  now: () => Date;
}

/** A clock that was set back ends what is kept. */
export class KeptAnswers<T> {
  readonly #options: KeptAnswersOptions;
  readonly #kept = new Map<string, { atMs: number; answer: Promise<T> }>();

  constructor(options: KeptAnswersOptions) {
    this.#options = options;
  }

  /** The answer that is kept under the key, else that of `find`. Rejects as `find` does. */
  ask(key: string, find: () => Promise<T>): Promise<T> {
    const atMs = this.#options.now().getTime();
    const known = this.#kept.get(key);
    if (known !== undefined && atMs >= known.atMs && atMs - known.atMs < this.#options.keptMs) return known.answer;
    const requested = { atMs, answer: find() };
    this.#kept.delete(key);
    this.#kept.set(key, requested);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > this.#options.most && oldest !== undefined) this.#kept.delete(oldest);
    requested.answer.catch(() => {
      if (this.#kept.get(key) === requested) this.#kept.delete(key);
    });
    return requested.answer;
  }

  forget(key: string): void {
    this.#kept.delete(key);
  }

  clear(): void {
    return this.#kept.clear();
  }
}
