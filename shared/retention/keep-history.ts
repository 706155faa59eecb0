// Copies runs from the core, or from the log of a release, to our own history, and logs new ones.

import { AppError } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { type Retained, RETAINED } from '@holdfast/kit/retention';
import { isWallTime, momentOf, type WallTime } from '@holdfast/kit/time';
import { withFallback } from '@holdfast/kit/timeout';
import type { CoreRetention } from '../core/port.ts';
import type { RetentionHistory, RetentionFiles, RetentionRun } from './port.ts';

/**
 * A run from the log of a TAK Server release, which has its start, some row counts, and a failed
 * step, after which the others are skipped. It never has the end, limits, bytes or rows deleted
 * with missions. `done` means that it began without a known error; only a failed run has an end
 * time.
 */
export interface LoggedRun {
  /** Derived from the time, so that the same line is the same run in every read. */
  id: string;
  state: 'done' | 'failed';
  /** ISO 8601. */
  startedAt: string;
  finishedAt: string | null;
  /** Only where the log has a count. */
  rows: Partial<Record<Retained, number>>;
  error: string | null;
}

interface LogLine extends WallTime {
  ms: number;
  /** The class, whose name is never abbreviated. */
  logger: string;
  text: string;
}

const MAX_RUNS = 1_000;
const MAX_LINE = 10_000;
const MAX_ERROR = 500;

/** `2026-01-31-04:00:00.012 [thread] INFO logger{36} - message`. */
const LINE =
  /^(\d{4})-(\d\d)-(\d\d)-(\d\d):(\d\d):(\d\d)\.(\d{3}) \[[^\]]{0,300}\] {1,9}[A-Z]{1,9} {1,9}(?:[\w$]{0,100}\.){0,30}([\w$]{1,200}) {1,9}- (.*)$/s;
const STARTS = /^\s*Reaper Service Running\s*$/;
const FAILS = /^\s*Error accessing retention query service/;
/** Legacy chat is stored with the events, and counts as chat. */
const COUNTS: readonly [RegExp, Retained][] = [
  [/^\s*deleteCotByTtl, Number of rows deleted\s+(\d{1,12})\s*$/, 'cot'],
  [/^\s*deleteGeoChatByTtl, Number of rows deleted\s+(\d{1,12})\s*$/, 'geochat'],
  [/^\s*delete legacy geochat from cot_router table, Number of rows deleted\s+(\d{1,12})\s*$/, 'geochat'],
  [/^\s*delete files by time to live, Number of rows deleted\s+(\d{1,12})\s*$/, 'files'],
];

/**
 * The last thousand runs in the lines, newest first. Lines before the first start belong to a run
 * whose start is gone, and are skipped. `timeZone` is the core's IANA name; an ambiguous hour
 * counts as the first one.
 */
export function retentionRunsIn(lines: readonly string[], timeZone: string): LoggedRun[] {
  const runs: LoggedRun[] = [];
  for (const each of lines) {
    const line = readLine(each);
    if (line === undefined) continue;
    const run = runs.at(-1);
    if (line.logger === 'LocalQueryService') countRows(run, line.text);
    else if (line.logger === 'ScheduledRetentionService') follow(runs, line, timeOf(line, timeZone));
    if (runs.length > MAX_RUNS) runs.shift();
  }
  return runs.toReversed();
}

function readLine(text: string): LogLine | undefined {
  const match = text.length > MAX_LINE ? null : LINE.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, ms = 0] = match.slice(1, 8).map(Number);
  return { year, month, day, hour, minute, second, ms, logger: match[8] ?? '', text: match[9] ?? '' };
}

function follow(runs: LoggedRun[], { text }: LogLine, at: string | undefined): void {
  const last = runs.at(-1);
  if (at === undefined) return;
  if (STARTS.test(text))
    runs.push({ id: `log-${at}`, state: 'done', startedAt: at, finishedAt: null, rows: {}, error: null });
  else if (FAILS.test(text) && last?.state === 'done')
    Object.assign(last, { state: 'failed', finishedAt: at, error: text.trim().slice(0, MAX_ERROR).toWellFormed() });
}

function countRows(run: LoggedRun | undefined, text: string): void {
  if (run === undefined) return;
  for (const [pattern, type] of COUNTS) {
    const count = pattern.exec(text)?.[1];
    if (count !== undefined) run.rows[type] = Math.min(Number.MAX_SAFE_INTEGER, (run.rows[type] ?? 0) + Number(count));
  }
}

/** Undefined for an invalid time. */
function timeOf(line: LogLine, timeZone: string): string | undefined {
  return isWallTime(line) ? new Date(momentOf(line, timeZone) + line.ms).toISOString() : undefined;
}

export interface RetentionHistoryDeps {
  coreRetention: Pick<CoreRetention, 'runs'>;
  retentionFiles: Pick<RetentionFiles, 'log'>;
  retentionHistory: Pick<RetentionHistory, 'keepRuns' | 'runs'>;
  /** The time zone of the core. */
  timeZone: string;
  log: Log;
}

export interface KeptHistory {
  /** Runs that were new or had changed. */
  kept: number;
  /** False if the core was unavailable, or a release has no readable log. */
  upToDate: boolean;
}

/** Runs from the log may be between those of the core. */
const MORE = 200;

/** Rejects if our own database is unavailable. `withinMs` limits the wait for the core. */
export async function keepRetentionHistory(deps: RetentionHistoryDeps, withinMs?: number): Promise<KeptHistory> {
  const runs = reportedRuns(deps);
  const notices = await (withinMs === undefined ? runs : withFallback(withinMs, undefined, runs));
  if (notices === undefined) return { kept: 0, upToDate: false };
  return { kept: await keepReported(deps, notices), upToDate: true };
}

/** Undefined if unavailable now. */
async function reportedRuns(deps: RetentionHistoryDeps): Promise<RetentionRun[] | undefined> {
  try {
    const runs = await deps.coreRetention.runs();
    return runs === undefined ? await loggedRuns(deps) : runs.map((run) => ({ ...run, source: 'core' }));
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

async function loggedRuns({ retentionFiles, timeZone }: RetentionHistoryDeps): Promise<RetentionRun[] | undefined> {
  const lines = await retentionFiles.log();
  if (lines === undefined) return undefined;
  return retentionRunsIn(lines, timeZone).map((run) => ({
    ...run,
    source: 'log',
    trigger: 'schedule',
    limits: {},
    included: { cot: 0, files: 0 },
    expected: null,
    bytes: null,
  }));
}

async function keepReported(
  { retentionHistory, log }: RetentionHistoryDeps,
  notices: readonly RetentionRun[],
): Promise<number> {
  if (notices.length === 0) return 0;
  const { results } = await retentionHistory.runs(0, notices.length + MORE);
  const known = new Map(results.map((run) => [run.id, run]));
  const changed = notices.filter((run) => isNews(run, known.get(run.id)));
  if (changed.length === 0) return 0;
  await retentionHistory.keepRuns(changed);
  for (const run of changed) if (run.state !== known.get(run.id)?.state) logEnd(log, run);
  return changed.length;
}

/** Runs on demand are logged by their job. */
function logEnd(
  log: Log,
  { id, source, trigger, state, startedAt, finishedAt, rows, included, error }: RetentionRun,
): void {
  if (trigger === 'order' || state === 'running') return;
  const fields = { id, source, trigger, state, started_at: startedAt, finished_at: finishedAt, rows, included, error };
  if (state === 'done') log.info('retention.run', fields);
  else log.warn('retention.run', fields);
}

/** A known end wins over `running`: another process asked the core later. */
function isNews(reported: RetentionRun, known: RetentionRun | undefined): boolean {
  if (known === undefined) return true;
  if (reported.state === 'running' && known.state !== 'running') return false;
  return JSON.stringify(plain(reported)) !== JSON.stringify(plain(known));
}

/** Normalizes a run, as the database returns members in its own order. */
function plain(run: RetentionRun): unknown[] {
  const { source, trigger, state, startedAt, finishedAt, limits, rows, included, expected, bytes, error } = run;
  const times = [startedAt, finishedAt].map((time) => (time === null ? null : Date.parse(time)));
  const byType = RETAINED.map((type) => [limits[type] ?? null, rows[type] ?? null]);
  return [source, trigger, state, ...times, byType, included.cot, included.files, expected, bytes, error];
}
