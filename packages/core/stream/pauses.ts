// Pauses that can be cut short.

/** One pause at a time. */
export class Pauses {
  #end: (() => void) | undefined;

  after(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#end = undefined;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#end = done;
    });
  }

  /** Ends the pause that there is. */
  cutShort(): void {
    this.#end?.();
  }
}
