// The last measurement of every health module, ready to be handed out.

import type { HealthMemory } from '../jobs/port.ts';
import type { History, Status } from '../settings/status.ts';

/** One measurement of one module. */
export interface Measurement extends History {
  module: string;
  status: Status;
  message: string;
  /** Each finding that is not ok with its threshold, worst first. */
  details: string[];
  /** What to do about those findings, worst first. */
  remedies: string[];
  /** ISO 8601. */
  updated_at: string;
  data: Record<string, unknown>;
  shouldAlert: boolean;
  /** Measured again after this many seconds where the interval is longer. */
  againSeconds?: number;
  /** The one that the module's trend shows; absent where it is not known. */
  figure?: number;
}

/** Where one module stands. */
export interface ModuleState {
  module: string;
  /** Null before the first one. */
  measurement: Measurement | null;
  /** When its status became what it is, ISO 8601; null before the first measurement. */
  since: string | null;
  /** False when it may have been so for longer: nobody knows what was before. */
  since_is_exact: boolean;
}

/** `full`: every module with its data; `status`: of the data only what is no list and no object. */
export type HealthView = 'full' | 'status';

/** A JSON text with its entity tag; both change together. */
export interface Prepared {
  body: string;
  etag: string;
}

type Maybe<T> = T | Promise<T>;

export interface HealthCache extends HealthMemory {
  current(view: HealthView): Maybe<Prepared>;
  /** The modules that are due at `nowMs`; each counts as being measured until it is put, or for a limited time. */
  takeDue(nowMs: number): Maybe<string[]>;
  /** What the last measurement leaves behind; undefined before the first one. */
  history(module: string): Maybe<History | undefined>;
  /** True when the overall status can be computed: every module was measured, and none too long ago. */
  isComplete(): Maybe<boolean>;
  /** Keeps a measurement; answers with the status before, undefined for the first one. */
  put(measurement: Measurement): Maybe<Status | undefined>;
  /** Every module, in the order of the table. */
  states(): Maybe<ModuleState[]>;
  /** Adds samples of the trend; a status that goes on from the newest of them began when that says. */
  remember(samples: readonly HealthSample[]): Maybe<void>;
  /** The samples of the last 24 hours, ascending; undefined before `remember` was called once. */
  remembered(): Maybe<HealthSample[] | undefined>;
}

/** Health over time: the status of every module with the figure that tells most about it. */
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

/** What this feature asks of the outside, by the names in Deps. */
export interface HealthPorts {
  health: HealthCache;
  healthTrend: HealthTrend;
}
