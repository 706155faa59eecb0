// What the management process itself uses.

type Maybe<T> = T | Promise<T>;

export interface ProcessFigures {
  /** User and system together. */
  cpuSeconds: number;
  residentBytes: number;
  heapUsedBytes: number;
  heapTotalBytes: number;
  /** Null where the system does not tell. */
  openFiles: number | null;
  /** Milliseconds since 1970. */
  startedMs: number;
  /** How long the event loop has worked and waited since the start. */
  loopActiveSeconds: number;
  loopIdleSeconds: number;
  /** How long the event loop took just now to come to what was due at once. */
  loopLagSeconds: number;
}

export interface ProcessStatus {
  figures(): Maybe<ProcessFigures>;
}
