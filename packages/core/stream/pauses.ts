// Pauses that can be cut short.

export interface Pauses {
  after(ms: number): Promise<void>;
  /** Ends the pause that there is. */
  cutShort(): void;
}

/** One pause at a time. */
export function pauses(): Pauses {
  let end: (() => void) | undefined;
  return {
    after: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(done, ms);
        function done(): void {
          clearTimeout(timer);
          end = undefined;
          resolve();
        }
        end = done;
      }),
    cutShort: () => end?.(),
  };
}
