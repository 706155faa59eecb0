// When something last happened, for a bounded number of keys; the one that is longest ago is forgotten first.

export class RecentKeys {
  readonly #times = new Map<string, number>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  note(key: string, nowMs: number): void {
    this.#times.delete(key);
    this.#times.set(key, nowMs);
    if (this.#times.size <= this.#most) return;
    const [oldest] = this.#times.keys();
    if (oldest !== undefined) this.#times.delete(oldest);
  }

  within(key: string, spanMs: number, nowMs: number): boolean {
    const time = this.#times.get(key);
    return time !== undefined && nowMs - time < spanMs;
  }
}
