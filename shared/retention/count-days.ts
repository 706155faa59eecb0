// Counts and stores the rows per day, which previews use where counting would take too long. Each
// statement counts a bounded number of rows: many days of a small table, one day of a large one.

import type { Schedules } from '@holdfast/kit/cron';
import { DAY_MS } from '@holdfast/kit/time';
import type { RetentionHistory, RetentionFacts } from './port.ts';

export interface CountDaysDeps {
  retentionFacts: Pick<RetentionFacts, 'perDay' | 'oldestDays' | 'now'>;
  retentionHistory: Pick<RetentionHistory, 'days' | 'keepDays' | 'runs'>;
  schedules: Schedules;
  timeZone: string;
}

export interface CountedDays {
  /** Statements that counted. */
  statements: number;
  /** Days that were counted, including those without rows. */
  days: number;
  /** False if it was stopped before all of them were counted. */
  complete: boolean;
}

type Type = 'cot' | 'geochat';

/** Rows that one statement should count; a smaller table is counted in full each time. */
const ROWS_AT_ONCE = 100_000;
/** Limits how fast statements grow: later days may hold more rows. */
const MAX_GROWTH = 8;
/** A quiet time, from which all days are recounted: rows are deleted, and some arrive late. */
const AGAIN = '0 0 4 * * ?';
const LAST_RUNS = 20;

/** After a stop by `signal`, the next call continues where this one ended. */
export async function countRetentionDays(deps: CountDaysDeps, signal: AbortSignal): Promise<CountedDays> {
  const now = new Date(await deps.retentionFacts.now());
  const [oldest, recountedSince] = [await deps.retentionFacts.oldestDays(), await sinceLastRecount(deps, now)];
  const done: CountedDays = { statements: 0, days: 0, complete: true };
  for (const type of ['cot', 'geochat'] as const)
    await countType(deps, type, { oldest: oldest[type], today: dayOf(now), recountedSince }, done, signal);
  return done;
}

/** Counts older than this time are outdated. */
async function sinceLastRecount({ retentionHistory, schedules, timeZone }: CountDaysDeps, now: Date): Promise<string> {
  const [early] = schedules.next(AGAIN, 'quartz', timeZone, new Date(now.getTime() - DAY_MS), 1);
  const { results } = await retentionHistory.runs(0, LAST_RUNS);
  const ended = results.filter(({ state }) => state !== 'running').map((run) => run.finishedAt ?? run.startedAt);
  const moments = early === undefined ? ended : [early.toISOString(), ...ended];
  return (
    moments
      .filter((each) => each <= now.toISOString())
      .toSorted()
      .at(-1) ?? ''
  );
}

interface Extent {
  oldest: string | null;
  today: string;
  recountedSince: string;
}

async function countType(
  deps: CountDaysDeps,
  type: Type,
  { oldest, today, recountedSince }: Extent,
  done: CountedDays,
  signal: AbortSignal,
): Promise<void> {
  const { days: known } = await deps.retentionHistory.days(type);
  const from = oldest ?? dayAfter(today);
  const [first, last] = [known[0]?.day, known.at(-1)?.day];
  if (signal.aborted) return void (done.complete = false);
  if (first !== undefined && first < from) await deps.retentionHistory.keepDays(type, first, from, []);
  // Days left by a wrong clock.
  if (last !== undefined && last > today)
    await deps.retentionHistory.keepDays(type, dayAfter(today), dayAfter(last), []);

  const isSmall = known.length > 0 && known.reduce((sum, { rows }) => sum + rows, 0) < ROWS_AT_ONCE;
  const countedAt = new Map(known.map((each) => [each.day, each.countedAt]));
  const isDue = (day: string): boolean =>
    isSmall || day >= dayBefore(today) || (countedAt.get(day) ?? '') < recountedSince;
  const all = daysBetween(from, today);
  const due = all.filter((day) => !countedAt.has(day) || isDue(day));
  await countDue(deps, type, due, isSmall ? all.length : 1, done, signal);
}

/** Oldest first. */
async function countDue(
  { retentionFacts, retentionHistory }: CountDaysDeps,
  type: Type,
  due: string[],
  atFirst: number,
  done: CountedDays,
  signal: AbortSignal,
): Promise<void> {
  let most = atFirst;
  let place = 0;
  while (place < due.length) {
    if (signal.aborted) return void (done.complete = false);
    const days = inARow(due, place, most);
    const [from, to] = [days[0] ?? '', dayAfter(days.at(-1) ?? '')];
    const counted = await retentionFacts.perDay(type, from, to);
    if (signal.aborted) return void (done.complete = false);
    await retentionHistory.keepDays(type, from, to, counted);
    place += days.length;
    done.statements++;
    done.days += days.length;
    const rows = counted.reduce((sum, each) => sum + each.rows, 0);
    most = Math.max(1, Math.floor(days.length * Math.min(MAX_GROWTH, ROWS_AT_ONCE / Math.max(1, rows))));
  }
}

/** At most `most` consecutive days from that index on. */
function inARow(days: readonly string[], place: number, most: number): string[] {
  let end = place + 1;
  while (end < days.length && end - place < most && days[end] === dayAfter(days[end - 1] ?? '')) end++;
  return days.slice(place, end);
}

function daysBetween(from: string, until: string): string[] {
  const days: string[] = [];
  for (let day = from; day <= until; day = dayAfter(day)) days.push(day);
  return days;
}

function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10);
}

function dayAfter(day: string): string {
  return dayOf(new Date(Date.parse(day) + DAY_MS));
}

function dayBefore(day: string): string {
  return dayOf(new Date(Date.parse(day) - DAY_MS));
}
