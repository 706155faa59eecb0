// A word from the operators to everybody who is connected to the core, shown there as chat.

/** Errors as of `Core`. */
export interface CoreNotices {
  /** Resolves with how many clients it was sent to; undefined when this core has no such call. */
  announce(text: string): Promise<number | undefined>;
}
