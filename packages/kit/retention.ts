// What is kept how long: the types, the units in which a core counts, and the limits of a run.
// Nothing is deleted where no days are set.

import { DAY_SECONDS } from './time.ts';

export const RETAINED = ['cot', 'geochat', 'files', 'missionpackages', 'missions'] as const;
export type Retained = (typeof RETAINED)[number];

/** Days; null keeps for ever. A file that counts seconds may hold a fraction of a day. */
export type RetentionPolicy = Record<Retained, number | null>;

/**
 * What the core counts in its policy file: the embedded core days, a TAK Server release seconds.
 */
export type RetentionUnit = 'days' | 'seconds';

/**
 * For each type of a run: rows from before that moment (ISO 8601) are deleted; a type that is
 * missing is kept.
 */
export type RetentionLimits = Partial<Record<Retained, string>>;

/** The variables that set days, by their types. */
export const DAYS_VARIABLES = { cot: 'COT_RETENTION_DAYS', geochat: 'GEOCHAT_RETENTION_DAYS' } as const;
export type OwnedType = keyof typeof DAYS_VARIABLES;
export const OWNED_TYPES = ['cot', 'geochat'] as const satisfies OwnedType[];

export const KEEP_ALL: RetentionPolicy = {
  cot: null,
  geochat: null,
  files: null,
  missionpackages: null,
  missions: null,
};

/** A schedule that never runs. */
export const NEVER = '-';
/** Taken by itself when days are set and no schedule is; the same in Quartz and in Spring. */
export const DEFAULT_SCHEDULE = '0 0 3 * * ?';
/**
 * More rows than this are a large run: it wants a confirmation, and a first one is told beforehand.
 */
export const LARGE_RUN_ROWS = 1_000_000;

const MAX_DAYS: Record<RetentionUnit, number> = { days: 36_500, seconds: 24_855 };

/** The most days that a core takes: seconds are kept in 32 bits. */
export function maxDays(unit: RetentionUnit): number {
  return MAX_DAYS[unit];
}

/** Days as the core counts them. */
export function inUnit(days: number | null, unit: RetentionUnit): number | null {
  return days === null || unit === 'days' ? days : Math.round(days * DAY_SECONDS);
}

/** What the core counts, as days, to the second. */
export function daysOf(value: number | null, unit: RetentionUnit): number | null {
  return value === null || unit === 'days' ? value : value / DAY_SECONDS;
}

/** As people read them: to a ten-thousandth. */
export function toDaysView(days: number): number;
export function toDaysView(days: number | null): number | null;
export function toDaysView(days: number | null): number | null {
  return days === null ? null : Math.round(days * 10_000) / 10_000;
}

export function toPolicyView(policy: RetentionPolicy): RetentionPolicy {
  return Object.fromEntries(RETAINED.map((type) => [type, toDaysView(policy[type])])) as RetentionPolicy;
}

function msOf(days: number): number {
  return Math.round(days * DAY_SECONDS) * 1000;
}

/** The days of a policy as the core counts it. */
export function policyInDays(policy: RetentionPolicy, unit: RetentionUnit): RetentionPolicy {
  return Object.fromEntries(RETAINED.map((type) => [type, daysOf(policy[type], unit)])) as RetentionPolicy;
}

/** A cron in one way to write it. */
export function plainCron(cron: string): string {
  return cron.trim().toUpperCase().replaceAll(/\s+/g, ' ');
}

export function isKeepingAll(policy: RetentionPolicy): boolean {
  return RETAINED.every((type) => policy[type] === null);
}

/** The limits of a run whose ages are counted back from `asOf`. */
export function limitsAt(policy: RetentionPolicy, asOf: Date): RetentionLimits {
  return Object.fromEntries(
    RETAINED.flatMap((type) => {
      const days = policy[type];
      return days === null ? [] : [[type, new Date(asOf.getTime() - msOf(days)).toISOString()]];
    }),
  );
}

/**
 * One moment that stands for all limits of a run: that of the type with the fewest days. The others
 * are counted back from the same `asOf`, so `asOfCutoff` finds it again. Without any days it is
 * `asOf` itself.
 */
export function cutoffAt(policy: RetentionPolicy, asOf: Date): Date {
  return new Date(asOf.getTime() - msOf(fewestDays(policy)));
}

/** From when ages are counted when the type with the fewest days is limited at `cutoff`. */
export function asOfCutoff(policy: RetentionPolicy, cutoff: Date): Date {
  return new Date(cutoff.getTime() + msOf(fewestDays(policy)));
}

function fewestDays(policy: RetentionPolicy): number {
  const days = RETAINED.map((type) => policy[type]).filter((each) => each !== null);
  return days.length === 0 ? 0 : Math.min(...days);
}
