// Defines the four health levels of the specification, and the thresholds that decide between them.

export const STATUSES = ['ok', 'note', 'warning', 'critical'] as const;

export type Status = (typeof STATUSES)[number];

/** 0 for ok, larger for more urgent. */
export function urgency(status: Status): number {
  return STATUSES.indexOf(status);
}

/** The most urgent one; `ok` for an empty list. */
export function worstOf(statuses: readonly Status[]): Status {
  return statuses.reduce<Status>((worst, status) => (urgency(status) > urgency(worst) ? status : worst), 'ok');
}

/** State that earlier measurements of the module leave behind. */
export interface History {
  failuresInRow: number;
  /** Consecutive measurements at `alert_min_level` or worse. */
  pollsInRow: number;
}

export const NO_HISTORY: History = { failuresInRow: 0, pollsInRow: 0 };

/**
 * The thresholds that make a health module warning or critical, as the evaluator reads them:
 * `interval` and other periods in seconds, thresholds in the unit of the module.
 */
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
  /** The variables that override a threshold, by threshold. */
  set_by?: readonly string[];
}

/**
 * The monitor's thresholds: defaults, then the file monitor/config/thresholds.yml, then MON_*
 * overrides.
 */
export type FigureKind = 'seconds' | 'figure' | 'percentage' | 'count' | 'polls' | 'level';

export const ALERT_LEVELS = STATUSES.filter((status) => status !== 'ok');

export const TOP_LEVEL: Record<
  'alert_cooldown' | 'user_expiry_check_interval' | 'AUTOVACUUM_MIN_DEAD_TUPLES',
  FigureKind
> = {
  alert_cooldown: 'seconds',
  user_expiry_check_interval: 'seconds',
  AUTOVACUUM_MIN_DEAD_TUPLES: 'count',
};

/**
 * The shipped values: every module with every threshold it has. `certificates.warning` is days
 * left, and so on.
 */
export const DEFAULT_THRESHOLDS: Thresholds = {
  alert_cooldown: 300,
  user_expiry_check_interval: 60,
  AUTOVACUUM_MIN_DEAD_TUPLES: 1000,
  modules: {
    database: { interval: 60, warning: 25e9, critical: 40e9, alert_min_level: 'warning' },
    autovacuum: { interval: 60, warning: 5, critical: 15, alert_after_polls: 3, alert_min_level: 'warning' },
    retention: { interval: 300, warning: 1, critical: 2, alert_min_level: 'warning' },
    disk: { interval: 300, warning: 80, critical: 90, days_warning: 30, days_critical: 7, alert_min_level: 'warning' },
    certificates: { interval: 3600, warning: 30, critical: 7, alert_min_level: 'warning' },
    tls: { interval: 3600, warning: 30, critical: 7, alert_min_level: 'warning' },
    core: { interval: 60, warning: 1, critical: 3, alert_min_level: 'warning' },
    identity: { interval: 60, warning: 1, critical: 3, alert_min_level: 'warning' },
    probe: {
      interval: 300,
      warning: 1,
      critical: 2,
      latency_warning: 2,
      latency_critical: 10,
      alert_min_level: 'warning',
    },
    time: { interval: 300, warning: 5, critical: 30, alert_min_level: 'warning' },
    dns: { interval: 300, warning: 1, critical: 3, alert_min_level: 'warning' },
    containers: { interval: 60, alert_min_level: 'warning' },
    config: { interval: 60, alert_min_level: 'note' },
    updates: { interval: 21600, alert_min_level: 'note' },
    backup: {
      interval: 300,
      warning: 6,
      critical: 48,
      room_warning: 3,
      room_critical: 1,
      alert_min_level: 'warning',
    },
    alerts: { interval: 15, alert_min_level: 'warning' },
  },
};

const IN_PERCENT = ['autovacuum', 'disk'];

/** The kind of a module's threshold, by its name. */
export function figureKind(module: string, key: string): FigureKind {
  if (key === 'interval') return 'seconds';
  if (key === 'alert_min_level') return 'level';
  if (key === 'alert_after_polls') return 'polls';
  return IN_PERCENT.includes(module) && (key === 'warning' || key === 'critical') ? 'percentage' : 'figure';
}
