// Health over time: the status of every module with the figure that tells most about it.

import type { Status } from '../domain/status.ts';

export interface SampledModule {
  status: Status;
  /** When the status became that, ISO 8601. */
  since: string;
  /** False: it may have been so for longer. */
  since_is_exact: boolean;
  /** In the unit of the module's trend; null where it was not known. */
  figure: number | null;
}

export interface HealthSample {
  /** ISO 8601. */
  at: string;
  modules: Record<string, SampledModule>;
}

/** Every call rejects with an AppError `unavailable` when our own database does not answer. */
export interface HealthTrend {
  /** The first sample of a moment stays. */
  keep(sample: HealthSample): Promise<void>;
  /** From that time on, ascending. */
  read(since: string): Promise<HealthSample[]>;
  /**
   * Of samples older than two days one an hour stays, and nothing older than 14 days or of the future. Resolves with the number of
   * samples that were removed.
   */
  thin(now: string): Promise<number>;
}
