// How long a run will take, from what the last ones took.

import type { Retained } from './retention.ts';

/** A run as it is remembered. Times are ISO 8601. */
export interface TimedRun {
  state: string;
  startedAt: string;
  finishedAt: string | null;
  rows: Partial<Record<Retained, number>>;
  included: { cot: number; files: number };
}

/** Rows per second where no run says more; files bring their contents, a mission everything that is in it. */
const USUAL: Record<Retained, number> = { cot: 5_000, geochat: 5_000, files: 50, missionpackages: 20, missions: 5 };
/** A run of fewer rows says nothing about many. */
const LEAST_ROWS: Record<Retained, number> = {
  cot: 1_000,
  geochat: 1_000,
  files: 20,
  missionpackages: 20,
  missions: 5,
};
const MOST_RUNS = 5;

/** Whole seconds for so many rows of the type; `runs` newest first. */
export function estimatedSeconds(type: Retained, rows: number, runs: readonly TimedRun[]): number {
  return rows === 0 ? 0 : Math.max(1, Math.ceil(rows / rowsPerSecond(type, runs)));
}

/** Of the last runs that were for the most part of this type. */
function rowsPerSecond(type: Retained, runs: readonly TimedRun[]): number {
  const telling = runs.filter((run) => isTelling(type, run)).slice(0, MOST_RUNS);
  const rows = telling.reduce((sum, run) => sum + (run.rows[type] ?? 0), 0);
  const seconds = telling.reduce((sum, run) => sum + secondsOf(run), 0);
  return rows === 0 || seconds === 0 ? USUAL[type] : rows / seconds;
}

function isTelling(type: Retained, run: TimedRun): boolean {
  const { state, rows, included } = run;
  const ofType = rows[type] ?? 0;
  const ofRun = Object.values(rows).reduce((sum, count) => sum + count, 0);
  const alongside = type === 'missions' ? 0 : included.cot + included.files;
  return state === 'done' && secondsOf(run) > 0 && ofType >= LEAST_ROWS[type] && ofType * 2 > ofRun + alongside;
}

function secondsOf({ startedAt, finishedAt }: TimedRun): number {
  const seconds = finishedAt === null ? 0 : (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000;
  return Number.isFinite(seconds) ? seconds : 0;
}
