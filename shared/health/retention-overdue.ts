// Runs of retention that were due and have not begun. A moment of the schedule is made good by a run that began after it, and by
// one that was going on then: the next moment finds its work done.

import { counted, utcInWords } from '../domain/amounts.ts';
import { type Finding, limitsOf } from '../domain/evaluate.ts';
import type { ModuleThresholds } from '../domain/thresholds.ts';
import type { RetentionRun } from '../ports/retention-book.ts';
import type { CronDialect, Schedules } from '../ports/schedules.ts';

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

/** So late a core may begin. */
const GRACE_MS = 10 * 60_000;
/** A schedule of every second is not followed through the years. */
const MOST_COUNTED = 100;

/** `from`: everything until then is made good, or was not asked for yet. */
export function overdueRuns(schedules: Pick<Schedules, 'next'>, timetable: Timetable, from: Date, now: Date): Overdue {
  const { cron, dialect, timeZone } = timetable;
  const due = schedules.next(cron, dialect, timeZone, from, MOST_COUNTED);
  const late = due.filter((at) => now.getTime() - at.getTime() > GRACE_MS);
  return { runs: late.length, since: late[0]?.toISOString() ?? null };
}

/** Until when the schedule is made good: what is in force since `inForceSince` asks for nothing before that. */
export function madeGoodUntil(inForceSince: string, last: RetentionRun | undefined): Date {
  const ran = last === undefined ? [] : [last.startedAt, ...(last.state === 'done' ? [last.finishedAt] : [])];
  const times = [inForceSince, ...ran].flatMap((at) => (at === null ? [] : [Date.parse(at)]));
  return new Date(Math.max(...times));
}

export function judgeOverdue({ runs, since }: Overdue, cron: string, thresholds: ModuleThresholds): Finding {
  const count = runs < MOST_COUNTED ? counted(runs, 'run') : `${MOST_COUNTED} runs or more`;
  const due = since === null ? '' : `, the first was due at ${utcInWords(since)}`;
  return {
    kind: 'figure',
    subject: `the schedule ${cron}`,
    value: runs,
    limits: limitsOf(thresholds),
    says: `${count} ${runs === 1 ? 'has' : 'have'} not begun${due}`,
  };
}
