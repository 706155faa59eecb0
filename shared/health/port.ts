// Declares the port that keeps the last measurement of every health module.

import type { HealthMemory } from '../jobs/port.ts';
import type { History, Status } from '../settings/status.ts';

/** One measurement of one module. */
export interface Measurement extends History {
  module: string;
  status: Status;
  message: string;
  /** Each finding that is not ok, with its threshold, worst first. */
  details: string[];
  /** What to do about those findings, worst first. */
  remedies: string[];
  /** ISO 8601. */
  updated_at: string;
  data: Record<string, unknown>;
  shouldAlert: boolean;
  /** Measured again after this many seconds, if the interval is longer. */
  againSeconds?: number;
  /** The figure of the module's trend; absent if unknown. */
  figure?: number;
}

/** The current state of one module. */
export interface ModuleState {
  module: string;
  /** Null before the first measurement. */
  measurement: Measurement | null;
  /** Since when it has its status, ISO 8601; null before the first measurement. */
  since: string | null;
  /** False if it may have been so for longer: the earlier status is unknown. */
  since_is_exact: boolean;
}

/** A process that measures. */
export interface Measurer {
  /** The same after a restart. */
  id: string;
  /** Shown to people: its machine. */
  name: string;
}

/** A measurement with since when its status is so. */
export interface PublishedResult extends Pick<ModuleState, 'since' | 'since_is_exact'> {
  measurement: Measurement;
}

/** A measurement of another process. */
export interface SharedResult extends PublishedResult {
  process: Measurer;
  /** Since it was published. */
  ageMs: number;
}

/** Neither call rejects: without our own database nothing is shared. */
export interface HealthResults {
  /** Published as soon as the database answers, unless a newer one of that module is. */
  publish(result: PublishedResult): Promise<void>;
  /** What other processes published since the last call, each once, oldest first. */
  ofOthers(): Promise<SharedResult[]>;
}

/**
 * `full`: every module with its data; `status`: without lists and objects in the data; `own`: as
 * `full`, but of local modules only what this process measured.
 */
export type HealthView = 'full' | 'status' | 'own';

/** A JSON text with its entity tag. */
export interface Prepared {
  body: string;
  etag: string;
}

type Maybe<T> = T | Promise<T>;

export interface HealthCache extends HealthMemory {
  current(view: HealthView): Maybe<Prepared>;
  /**
   * The modules due at `nowMs`; each counts as being measured until `put`, or for a limited time.
   */
  takeDue(nowMs: number): Maybe<string[]>;
  /** The history left by the last measurement here; undefined before the first one. */
  history(module: string): Maybe<History | undefined>;
  /** True if every module was measured here, none too long ago. */
  isComplete(): Maybe<boolean>;
  /**
   * Keeps a measurement made here; returns the previous status, undefined for the first one. Of a
   * local module, the worst of all processes is shown.
   */
  put(measurement: Measurement): Maybe<Status | undefined>;
  /**
   * Keeps measurements of other processes; returns the modules that they concern. One of a shared
   * module replaces an older one of this process. Then that process goes on to measure, and the
   * module is due here only if it does not. One of a local module counts until it is too old, or
   * its process falls silent. Not named: a local module that this process failed to measure lately.
   */
  adopt(results: readonly SharedResult[]): Maybe<string[]>;
  /** True if no other process was heard within an hour. */
  isAlone(): Maybe<boolean>;
  /** Every module, in the order of the table. */
  states(): Maybe<ModuleState[]>;
  /** One module as it was measured last, however long ago; undefined if there is none. */
  state(module: string): Maybe<ModuleState | undefined>;
  /**
   * Adds samples of the trend; a status that continues from the newest one began when that sample
   * says.
   */
  remember(samples: readonly HealthSample[]): Maybe<void>;
  /** The samples of the last 24 hours, ascending; undefined before `remember` was called once. */
  remembered(): Maybe<HealthSample[] | undefined>;
}

/** The status of one module in a sample, with its main figure. */
export interface SampledModule {
  status: Status;
  /** Since when it has that status, ISO 8601. */
  since: string;
  /** False if it may have been so for longer. */
  since_is_exact: boolean;
  /** In the unit of the module's trend; null if unknown. */
  figure: number | null;
}

export interface HealthSample {
  /** ISO 8601. */
  at: string;
  modules: Record<string, SampledModule>;
}

/** Every call rejects with an AppError `unavailable` if our own database is unavailable. */
export interface HealthTrend {
  /** A second sample of the same time is ignored. */
  keep(sample: HealthSample): Promise<void>;
  /** Samples from that time on, ascending. */
  read(since: string): Promise<HealthSample[]>;
  /**
   * Keeps one sample per hour beyond two days, none beyond 14 days, and none from the future.
   * Resolves with the number of removed samples.
   */
  thin(now: string): Promise<number>;
}

/** The ports that this feature needs, by their names in Deps. */
export interface HealthPorts {
  health: HealthCache;
  /** Undefined without a database of our own. */
  healthResults: HealthResults | undefined;
  healthTrend: HealthTrend;
}
