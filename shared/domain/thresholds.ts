// The figures that decide when a health module is a warning or critical, as the evaluator reads them.

import type { Status } from './status.ts';

/** One health module's figures: `interval` and other periods in seconds, thresholds in the unit of the module. */
export interface ModuleThresholds {
  interval: number;
  alert_min_level: Exclude<Status, 'ok'>;
  [figure: string]: number | string;
}

export interface Thresholds {
  /** Seconds between two alerts of one module at the same level. */
  alert_cooldown: number;
  /** Seconds between two searches for expired users. */
  user_expiry_check_interval: number;
  /** Tables with fewer dead rows never affect the status of autovacuum. */
  AUTOVACUUM_MIN_DEAD_TUPLES: number;
  modules: Readonly<Record<string, ModuleThresholds>>;
  /** The variables that have set one; absent where none has. */
  set_by?: readonly string[];
}
