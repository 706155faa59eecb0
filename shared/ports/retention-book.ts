// What Holdfast remembers of retention: runs, since when which policy is in force, and rows per day.

import type { RetentionPolicy } from '../domain/retention.ts';
import type { CoreRetentionRun } from './core-retention.ts';
import type { DayCount } from './retention-facts.ts';

/** `log`: read from the log of a release, which says when a run began, and of some types how many rows went. */
export interface RetentionRun extends CoreRetentionRun {
  source: 'core' | 'log';
}

export interface InForce {
  /** Days. */
  policy: RetentionPolicy;
  /** The core's own cron, or `-`. */
  schedule: string;
}

export interface CountedDay extends DayCount {
  /** ISO 8601. */
  countedAt: string;
}

/** Every call rejects with an AppError `unavailable` when our own database does not answer. */
export interface RetentionBook {
  /** Adds runs, or brings them up to date by their ids; one that has ended never runs again. The newest 1,000 are kept. */
  keepRuns(runs: readonly RetentionRun[]): Promise<void>;
  /** Newest first. */
  runs(offset: number, limit: number): Promise<{ results: RetentionRun[]; count: number }>;
  /** The newest that is done, or undefined. */
  lastDone(): Promise<RetentionRun | undefined>;
  /** Remembers what is in force; resolves with since when (ISO 8601): the first time that it was seen so without a break. */
  seenInForce(now: string, what: InForce): Promise<string>;
  /** Replaces the counts of those days; a day from `from` to before `to` that is missing has no rows. */
  keepDays(type: 'cot' | 'geochat', from: string, to: string, days: readonly DayCount[]): Promise<void>;
  /** Ascending. */
  days(type: 'cot' | 'geochat'): Promise<{ days: CountedDay[] }>;
}
