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

/** A measurement as processes share it, with since when its status is so. */
export interface SharedResult extends Pick<ModuleState, 'since' | 'since_is_exact'> {
  measurement: Measurement;
  /** Since it was published. */
  ageMs: number;
}

/** Neither call rejects: without our own database nothing is shared. */
export interface HealthResults {
  publish(result: Omit<SharedResult, 'ageMs'>): Promise<void>;
  /** What other processes published a moment ago, each once, oldest first. */
  ofOthers(): Promise<SharedResult[]>;
}

/** `full`: every module with its data; `status`: without lists and objects in the data. */
export type HealthView = 'full' | 'status';

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
  /** The history left by the last measurement; undefined before the first one. */
  history(module: string): Maybe<History | undefined>;
  /** True if the overall status can be computed: every module was measured, none too long ago. */
  isComplete(): Maybe<boolean>;
  /** Keeps a measurement; returns the previous status, undefined for the first one. */
  put(measurement: Measurement): Maybe<Status | undefined>;
  /**
   * Keeps a measurement of another process, unless this one has none or a newer one. Then that
   * process goes on to measure, and the module is due here only if it does not.
   */
  adopt(result: SharedResult): Maybe<boolean>;
  /** Every module, in the order of the table. */
  states(): Maybe<ModuleState[]>;
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
