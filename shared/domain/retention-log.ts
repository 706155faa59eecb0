// Runs of retention as the log of a TAK Server release tells of them. It says when a run began, of some types how many rows went
// (only where there were any), and that a step failed, after which the run skips the others. It never says that a run has ended:
// `done` means that it began and that no error is known of it, and the time of its end is known of a failed one only.

import type { Retained } from './retention.ts';
import { isWallTime, momentOf, type WallTime } from './zoned-time.ts';

/** Without what such a log never says: limits, bytes, what went with missions. */
export interface LoggedRun {
  /** Of the time: the same line is the same run, however often the log is read. */
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

const MOST_RUNS = 1_000;
const MOST_LINE = 10_000;
const MOST_ERROR = 500;

/** `2026-01-31-04:00:00.012 [thread] INFO logger{36} - message`. */
const LINE =
  /^(\d{4})-(\d\d)-(\d\d)-(\d\d):(\d\d):(\d\d)\.(\d{3}) \[[^\]]{0,300}\] {1,9}[A-Z]{1,9} {1,9}(?:[\w$]{0,100}\.){0,30}([\w$]{1,200}) {1,9}- (.*)$/s;
const STARTS = /^\s*Reaper Service Running\s*$/;
const FAILS = /^\s*Error accessing retention query service/;
/** The legacy chat stands among the events, and counts as chat. */
const COUNTS: readonly [RegExp, Retained][] = [
  [/^\s*deleteCotByTtl, Number of rows deleted\s+(\d{1,12})\s*$/, 'cot'],
  [/^\s*deleteGeoChatByTtl, Number of rows deleted\s+(\d{1,12})\s*$/, 'geochat'],
  [/^\s*delete legacy geochat from cot_router table, Number of rows deleted\s+(\d{1,12})\s*$/, 'geochat'],
  [/^\s*delete files by time to live, Number of rows deleted\s+(\d{1,12})\s*$/, 'files'],
];

/**
 * The runs that the lines tell of, newest first, the last thousand. Lines before the first beginning are of a run whose own line is
 * gone, and are left out. `timeZone` is the core's, by its name in the IANA database; an hour that comes twice is taken as the
 * first one.
 */
export function retentionRunsIn(lines: readonly string[], timeZone: string): LoggedRun[] {
  const runs: LoggedRun[] = [];
  for (const each of lines) {
    const line = readLine(each);
    if (line === undefined) continue;
    const run = runs.at(-1);
    if (line.logger === 'LocalQueryService') countRows(run, line.text);
    else if (line.logger === 'ScheduledRetentionService') follow(runs, line, timeOf(line, timeZone));
    if (runs.length > MOST_RUNS) runs.shift();
  }
  return runs.toReversed();
}

function readLine(text: string): LogLine | undefined {
  const match = text.length > MOST_LINE ? null : LINE.exec(text);
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
    Object.assign(last, { state: 'failed', finishedAt: at, error: text.trim().slice(0, MOST_ERROR).toWellFormed() });
}

function countRows(run: LoggedRun | undefined, text: string): void {
  if (run === undefined) return;
  for (const [pattern, type] of COUNTS) {
    const count = pattern.exec(text)?.[1];
    if (count !== undefined) run.rows[type] = Math.min(Number.MAX_SAFE_INTEGER, (run.rows[type] ?? 0) + Number(count));
  }
}

/** Undefined for what is no time. */
function timeOf(line: LogLine, timeZone: string): string | undefined {
  return isWallTime(line) ? new Date(momentOf(line, timeZone) + line.ms).toISOString() : undefined;
}
