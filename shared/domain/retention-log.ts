// Runs of retention as the log of a TAK Server release tells of them. It says when a run began, of some types how many rows went
// (only where there were any), and that a step failed, after which the run skips the others. It never says that a run has ended:
// `done` means that it began and that no error is known of it, and the time of its end is known of a failed one only.

import type { Retained } from './retention.ts';

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

interface LogLine {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
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
  const offsetAt = offsets(timeZone);
  const runs: LoggedRun[] = [];
  for (const each of lines) {
    const line = readLine(each);
    if (line === undefined) continue;
    const run = runs.at(-1);
    if (line.logger === 'LocalQueryService') countRows(run, line.text);
    else if (line.logger === 'ScheduledRetentionService') follow(runs, line, timeOf(line, offsetAt));
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

type OffsetAt = (ms: number) => number;

/** How far that zone is ahead of UTC at a moment, in ms. */
function offsets(timeZone: string): OffsetAt {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return (ms) => {
    const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
    const wall = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'));
    return wall - Math.floor(ms / 1000) * 1000;
  };
}

const HALF_DAY_MS = 43_200_000;

/** Undefined for what is no time. */
function timeOf({ year, month, day, hour, minute, second, ms }: LogLine, offsetAt: OffsetAt): string | undefined {
  const wall = Date.UTC(year, month - 1, day, hour, minute, second, ms);
  const again = new Date(wall);
  if (year < 1970 || again.getUTCMonth() !== month - 1 || again.getUTCDate() !== day || hour > 23) return undefined;
  if (minute > 59 || second > 59) return undefined;
  // Before the change of an hour that comes twice the zone is further ahead: that one is the first.
  const candidates = [offsetAt(wall - HALF_DAY_MS), offsetAt(wall + HALF_DAY_MS)].map((offset) => wall - offset);
  const right = candidates.find((each) => each + offsetAt(each) === wall) ?? wall - offsetAt(wall);
  return new Date(right).toISOString();
}
