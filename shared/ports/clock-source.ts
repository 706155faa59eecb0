// A clock that is compared with ours.

export interface ClockSource {
  /** Shown to people: `database`. */
  name: string;
  /** Milliseconds since 1970; rejects when it does not answer in time. */
  readMs: () => Promise<number>;
  /** How coarse the answer is, in milliseconds. */
  resolutionMs: number;
}
