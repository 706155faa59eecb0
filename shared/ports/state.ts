// Our own database, as far as health looks at it.

export interface State {
  /** Commits one small row; rejects within a few seconds when that is not possible. */
  writeOnce(): Promise<void>;
}
