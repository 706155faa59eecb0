// The log files that a person may read through the API.

export interface LogFiles {
  /** Names without folder and ending, sorted. */
  names(): Promise<string[]>;
  /** The last `lines` lines of one log, oldest first; undefined when there is no log of that name. */
  tail(name: string, lines: number): Promise<string[] | undefined>;
}
