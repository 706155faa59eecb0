// The files that the settings came from, compared with what this process has read at its start.

export interface ConfigurationFiles {
  /** Names of the settings and thresholds whose value would be another one after a restart. Values are never told. */
  changedSinceStart(): Promise<string[]>;
}
