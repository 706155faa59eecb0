// Validates retention changes and splits them in two parts, of which one only keeps more.

import {
  maxDays,
  RETAINED,
  type Retained,
  type RetentionPolicy,
  type RetentionUnit,
  toDaysView,
} from '@holdfast/kit/retention';

/** Null: forever. Missing types stay unchanged. */
export type PolicyChange = Partial<RetentionPolicy>;

/**
 * The fault of a number of days, as text that follows its name; undefined if valid. Null is valid.
 */
export function daysFault(days: number | null, unit: RetentionUnit): string | undefined {
  if (days === null || (Number.isInteger(days) && days >= 1 && days <= maxDays(unit))) return undefined;
  return `must be ${formatDays(unit)}, not ${days}`;
}

/** The valid range of days. */
export function formatDays(unit: RetentionUnit): string {
  const why = unit === 'seconds' ? ' (the core counts seconds in 32 bits)' : '';
  return `a whole number of days from 1 to ${maxDays(unit)}${why}`;
}

export interface ChangeParts {
  /** Changes after which a run deletes no more than before. */
  longer: PolicyChange;
  /** Changes after which a run may delete more. */
  shorter: PolicyChange;
}

/** The differences between two policies in the same unit. */
export function changeParts(from: RetentionPolicy, to: RetentionPolicy): ChangeParts {
  const parts: ChangeParts = { longer: {}, shorter: {} };
  for (const type of RETAINED) {
    if (from[type] === to[type]) continue;
    const keepsLonger = (to[type] ?? Number.POSITIVE_INFINITY) > (from[type] ?? Number.POSITIVE_INFINITY);
    parts[keepsLonger ? 'longer' : 'shorter'][type] = to[type];
  }
  return parts;
}

export function changedTypes(from: RetentionPolicy, to: RetentionPolicy): Retained[] {
  return RETAINED.filter((type) => from[type] !== to[type]);
}

/** `cot 30 days, files 90 days` or `nothing`; for a policy in days. */
export function formatLimited(policy: RetentionPolicy): string {
  const limited = RETAINED.flatMap((type) => {
    const days = policy[type];
    return days === null ? [] : [`${type} ${toDaysView(days)} ${days === 1 ? 'day' : 'days'}`];
  });
  return limited.join(', ') || 'nothing';
}

/** A run from the history. Times are ISO 8601. */
export interface TimedRun {
  state: string;
  startedAt: string;
  finishedAt: string | null;
  rows: Partial<Record<Retained, number>>;
  included: { cot: number; files: number };
}

/**
 * Rows per second without a known run; files include their contents, a mission everything in it.
 */
const USUAL: Record<Retained, number> = { cot: 5_000, geochat: 5_000, files: 50, missionpackages: 20, missions: 5 };
/** A run with fewer rows is not representative. */
const MIN_ROWS: Record<Retained, number> = {
  cot: 1_000,
  geochat: 1_000,
  files: 20,
  missionpackages: 20,
  missions: 5,
};
const MAX_RUNS = 5;

/** Whole seconds for so many rows of the type; `runs` newest first. */
export function estimatedSeconds(type: Retained, rows: number, runs: readonly TimedRun[]): number {
  return rows === 0 ? 0 : Math.max(1, Math.ceil(rows / rowsPerSecond(type, runs)));
}

/** The rate of the last runs that deleted mostly this type. */
function rowsPerSecond(type: Retained, runs: readonly TimedRun[]): number {
  const telling = runs.filter((run) => isTelling(type, run)).slice(0, MAX_RUNS);
  const rows = telling.reduce((sum, run) => sum + (run.rows[type] ?? 0), 0);
  const seconds = telling.reduce((sum, run) => sum + secondsOf(run), 0);
  return rows === 0 || seconds === 0 ? USUAL[type] : rows / seconds;
}

function isTelling(type: Retained, run: TimedRun): boolean {
  const { state, rows, included } = run;
  const ofType = rows[type] ?? 0;
  const ofRun = Object.values(rows).reduce((sum, count) => sum + count, 0);
  const alongside = type === 'missions' ? 0 : included.cot + included.files;
  return state === 'done' && secondsOf(run) > 0 && ofType >= MIN_ROWS[type] && ofType * 2 > ofRun + alongside;
}

function secondsOf({ startedAt, finishedAt }: TimedRun): number {
  const seconds = finishedAt === null ? 0 : (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000;
  return Number.isFinite(seconds) ? seconds : 0;
}
