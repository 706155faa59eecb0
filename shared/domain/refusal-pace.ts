// Holds refusals back for as long as a real check takes: a name that does not exist costs no check, and the time of the answer must
// not tell which names exist.

/** A check of an idle machine takes a third of it. */
const LEAST_MS = 60;
/** So slow is a machine that is busy; nobody waits longer for a refusal. */
const MOST_MS = 1_000;
const HALF_LIFE_MS = 10 * 60_000;

export class RefusalPace {
  readonly #steadyMs: () => number;
  readonly #leastMs: number;
  #slowestMs = 0;
  #atMs: number;

  constructor(steadyMs: () => number, leastMs = LEAST_MS) {
    this.#steadyMs = steadyMs;
    this.#leastMs = leastMs;
    this.#atMs = steadyMs();
  }

  /** Notes how long a check took, and resolves when a refusal may be told. */
  async hold(tookMs: number): Promise<void> {
    const now = this.#steadyMs();
    const remembered = this.#slowestMs * 0.5 ** ((now - this.#atMs) / HALF_LIFE_MS);
    this.#slowestMs = Math.min(MOST_MS, Math.max(remembered, tookMs));
    this.#atMs = now;
    const leftMs = Math.max(this.#leastMs, this.#slowestMs) - tookMs;
    if (this.#leastMs > 0 && leftMs > 0) await new Promise((over) => setTimeout(over, leftMs));
  }
}
