// A bounded number at a time, and no more than a share of it for one person.

export class Turnstile {
  readonly #options: { most: number; mostOfOne: number };
  readonly #counts = new Map<string, number>();
  #inside = 0;

  constructor(options: { most: number; mostOfOne: number }) {
    this.#options = options;
  }

  /** What lets the next one in, to be called once the work has ended, however often; undefined when there is no room. */
  enter(who: string): (() => void) | undefined {
    const own = this.#counts.get(who) ?? 0;
    if (this.#inside >= this.#options.most || own >= this.#options.mostOfOne) return undefined;
    this.#inside++;
    this.#counts.set(who, own + 1);
    let isInside = true;
    return () => {
      if (isInside) this.#leave(who);
      isInside = false;
    };
  }

  get inside(): number {
    return this.#inside;
  }

  #leave(who: string): void {
    this.#inside--;
    const left = (this.#counts.get(who) ?? 1) - 1;
    if (left === 0) this.#counts.delete(who);
    else this.#counts.set(who, left);
  }
}
