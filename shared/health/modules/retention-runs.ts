// Reads retention runs from the core and from our history, and finds failed and overdue ones.

import { messageOf } from '@holdfast/kit/app-error';
import type { CronDialect, Schedules } from '@holdfast/kit/cron';
import { counted, formatUtc } from '@holdfast/kit/format';
import { limitsAt, type Retained, type RetentionPolicy } from '@holdfast/kit/retention';
import { HOUR_MS, MINUTE_MS } from '@holdfast/kit/time';
import type { CoreRetention } from '../../core/port.ts';
import type { InForce, RetentionHistory, RetentionRun } from '../../retention/port.ts';
import type { ModuleThresholds } from '../../settings/status.ts';
import { type Finding, limitsOf } from '../evaluate.ts';
import type { Monitored } from '../monitored.ts';

export interface SeenRuns {
  last: RetentionRun | undefined;
  lastDone: RetentionRun | undefined;
  /** Finished runs. */
  done: readonly RetentionRun[];
  /** True if the core answers and has no call for runs. */
  isRelease: boolean;
  /** As the core reports; a release does not. */
  isGoingOn: boolean;
  /** Null if unknown. */
  inForceSince: string | null;
  /** Why the core's runs could not be read; null if they were. */
  coreProblem: string | null;
  /** Why our own history could not be read; null if it was. */
  historyProblem: string | null;
}

export interface RunsDeps {
  coreRetention: Pick<CoreRetention, 'runs'>;
  retentionHistory: Pick<RetentionHistory, 'runs' | 'lastDone' | 'seenInForce'>;
}

/** `inForce` is undefined while the core's policy is unknown. */
export async function readRuns(deps: RunsDeps, inForce: InForce | undefined, now: Date): Promise<SeenRuns> {
  const [reported, kept] = await Promise.all([
    inForce === undefined ? undefined : attempt(deps.coreRetention.runs()),
    attempt(readHistory(deps.retentionHistory, inForce, now)),
  ]);
  const ofCore = reported?.value?.map((run): RetentionRun => ({ ...run, source: 'core' }));
  const { last, lastDone, inForceSince } = kept.value ?? {};
  const fromHistory = [last, lastDone].flatMap((run) => (run === undefined ? [] : [run]));
  const all = newestFirst(ofCore ?? [], fromHistory);
  const done = all.filter(({ state }) => state === 'done');
  return {
    last: all[0],
    lastDone: done[0],
    done,
    isRelease: reported?.problem === null && reported.value === undefined,
    isGoingOn: ofCore?.some(({ state }) => state === 'running') ?? false,
    inForceSince: inForceSince ?? null,
    coreProblem: reported?.problem ?? null,
    historyProblem: kept.problem,
  };
}

/** True if no known run that began under this policy has deleted its rows yet. */
export function isFirstAhead(runs: SeenRuns, policy: RetentionPolicy): boolean {
  if (runs.isGoingOn || runs.historyProblem !== null || runs.coreProblem !== null) return false;
  const since = runs.inForceSince === null ? -Infinity : Date.parse(runs.inForceSince);
  return !runs.done.some((run) => Date.parse(run.startedAt) >= since && !isOfOlderCutoff(run, policy));
}

const CLOCKS_MS = HOUR_MS;
/** Stands for the limit of a type that the run left out. */
const NEVER_DELETED = new Date(0).toISOString();

/** A run on demand may leave rows that the next scheduled run deletes. */
function isOfOlderCutoff({ trigger, startedAt, limits }: RetentionRun, policy: RetentionPolicy): boolean {
  if (trigger !== 'order') return false;
  const latest = Object.entries(limitsAt(policy, new Date(Date.parse(startedAt) - CLOCKS_MS)));
  return latest.some(([type, limit]) => Date.parse(limits[type as Retained] ?? NEVER_DELETED) < Date.parse(limit));
}

async function readHistory(
  store: RunsDeps['retentionHistory'],
  inForce: InForce | undefined,
  now: Date,
): Promise<{ last: RetentionRun | undefined; lastDone: RetentionRun | undefined; inForceSince: string | undefined }> {
  const [page, lastDone, inForceSince] = await Promise.all([
    store.runs(0, 1),
    store.lastDone(),
    inForce === undefined ? undefined : store.seenInForce(now.toISOString(), inForce),
  ]);
  return { last: page.results[0], lastDone, inForceSince };
}

/** The core's data about a run is newer than our history of it. */
function newestFirst(ofCore: readonly RetentionRun[], fromHistory: readonly RetentionRun[]): RetentionRun[] {
  const byId = new Map([...fromHistory, ...ofCore].map((run) => [run.id, run]));
  return [...byId.values()].toSorted((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt));
}

async function attempt<T>(work: Promise<T>): Promise<{ value: T | undefined; problem: string | null }> {
  return work.then(
    (value) => ({ value, problem: null }),
    (error: unknown) => ({ value: undefined, problem: messageOf(error).replace(/\.$/, '') }),
  );
}

/** All deleted rows, including those deleted with missions. */
export function rowsOfRun({ rows, included }: RetentionRun): number {
  return Object.values(rows).reduce((sum, each) => sum + each, included.cot + included.files);
}

export function judgeLastRun(last: { state: string; started_at: string; error: string | null } | null): Finding[] {
  if (last === null) return [];
  const [when, why] = [formatUtc(last.started_at), last.error === null ? '' : `: ${last.error.replace(/\.$/, '')}`];
  if (last.state === 'failed') return [warning(`the last run (${when}) failed${why}`)];
  if (last.state === 'interrupted')
    return [warning(`the last run (${when}) was interrupted${why === '' ? ': the next run deletes the rest' : why}`)];
  return [];
}

function warning(says: string): Finding {
  return { kind: 'fact', status: 'warning', says };
}

/**
 * Retention runs that were due but did not start. A scheduled time is covered by a run that started
 * after it, or by one that was running at that time.
 */
export interface Overdue {
  runs: number;
  /** When the first of them was due, ISO 8601; null without any. */
  since: string | null;
}

export interface Timetable {
  cron: string;
  dialect: CronDialect;
  timeZone: string;
}

/** How late a core may start a run. */
const GRACE_MS = 10 * MINUTE_MS;
/** Limits the work for schedules that fire very often. */
const MAX_COUNTED = 100;

/** `from`: everything until then is covered, or was not scheduled yet. */
export function overdueRuns(schedules: Pick<Schedules, 'next'>, timetable: Timetable, from: Date, now: Date): Overdue {
  const { cron, dialect, timeZone } = timetable;
  const due = schedules.next(cron, dialect, timeZone, from, MAX_COUNTED);
  const late = due.filter((at) => now.getTime() - at.getTime() > GRACE_MS);
  return { runs: late.length, since: late[0]?.toISOString() ?? null };
}

/**
 * The time until which the schedule is covered; a policy in force since `inForceSince` demands
 * nothing before that.
 */
export function madeGoodUntil(inForceSince: string, last: RetentionRun | undefined): Date {
  const ran = last === undefined ? [] : [last.startedAt, ...(last.state === 'done' ? [last.finishedAt] : [])];
  const times = [inForceSince, ...ran].flatMap((at) => (at === null ? [] : [Date.parse(at)]));
  return new Date(Math.max(...times));
}

export function judgeOverdue({ runs, since }: Overdue, cron: string, thresholds: ModuleThresholds): Finding {
  const count = runs < MAX_COUNTED ? counted(runs, 'run') : `${MAX_COUNTED} runs or more`;
  const due = since === null ? '' : `, first due at ${formatUtc(since)}`;
  return {
    kind: 'figure',
    subject: `the schedule ${cron}`,
    value: runs,
    limits: limitsOf(thresholds),
    says: `${count} did not start${due}`,
  };
}

export interface LastRun {
  started_at: string;
  finished_at: string | null;
  state: RetentionRun['state'];
  /** All rows, including those deleted with missions. */
  rows: number;
  error: string | null;
}

export const NO_RUNS: SeenRuns = {
  last: undefined,
  lastDone: undefined,
  done: [],
  isRelease: false,
  isGoingOn: false,
  inForceSince: null,
  coreProblem: null,
  historyProblem: null,
};

export function overdueOf(
  schedules: Monitored['schedules'],
  timetable: Timetable,
  { last, isGoingOn, inForceSince, coreProblem }: SeenRuns,
  now: Date,
): Overdue | undefined {
  if (inForceSince === null || coreProblem !== null) return undefined;
  if (isGoingOn) return { runs: 0, since: null };
  return overdueRuns(schedules, timetable, madeGoodUntil(inForceSince, last), now);
}

export function lastRunOf(run: RetentionRun): LastRun {
  const { startedAt, finishedAt, state, error } = run;
  return { started_at: startedAt, finished_at: finishedAt, state, rows: rowsOfRun(run), error };
}

export function timestampOf(run: RetentionRun | undefined): number | null {
  return run === undefined ? null : Math.floor(Date.parse(run.startedAt) / 1000);
}
