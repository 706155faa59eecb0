// What Holdfast remembers of retention: runs, since when which policy is in force, and rows per day.

import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import type { Retained, RetentionLimits, RetentionPolicy, RetentionUnit } from '@holdfast/kit/retention';
import type { CoreRetentionPolicy } from '../core/port.ts';

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
export interface RetentionHistory {
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

/** How a core goes about it: a release deletes mission packages with `files`, and never by `missionpackages`. */
export type RetentionCore = 'embedded' | 'release';

export interface FactsQuestion {
  core: RetentionCore;
  limits: RetentionLimits;
  /** Files with one of these keywords are kept. */
  exemptKeywords: readonly string[];
  /** Each figure that takes longer is left out. */
  withinMs: number;
}

/** Rows of one type that a run with its limit deletes. */
export interface ExpiredRows {
  /** Counted; null when that would have taken too long. */
  rows: number | null;
  /** Where they were not counted, all rows of the table; without chat that older releases have put among the events. */
  atMost: number | null;
  /** Of missions: events and files that go with them; null as `rows`. */
  included: { cot: number; files: number } | null;
  /** Bytes of one row with its share of indexes and TOAST, on average; null when it is not known. */
  bytesPerRow: number | null;
  /** Bytes in all where that is known better. */
  bytes: number | null;
  /** Times of the rows, ISO 8601; null when there is none, or it would have taken too long. */
  oldest: string | null;
  newest: string | null;
}

export interface DayCount {
  /** `2026-01-31`, in UTC. */
  day: string;
  rows: number;
}

/** Rows that would make the run of a release fail: they point at events that it deletes. */
export interface ExpiredReferences {
  images: number;
  thumbnails: number;
  links: number;
}

/** What is older than its limit and not exempt, looked for but not counted. */
export interface LeftRows {
  /** The types that have at least one such row. */
  left: Retained[];
  /** The types that could not be looked at in time. */
  unknown: Retained[];
}

/**
 * Read as a role that may only read, from the tables of a TAK Server release or of the embedded core. Every call rejects with an
 * AppError `unavailable` when the database does not answer.
 */
export interface RetentionFacts {
  /** One entry for each type that has a limit. */
  expired(question: FactsQuestion): Promise<Partial<Record<Retained, ExpiredRows>>>;
  left(question: FactsQuestion): Promise<LeftRows>;
  /** Undefined when they could not all be counted in time. */
  references(question: Pick<FactsQuestion, 'limits' | 'withinMs'>): Promise<ExpiredReferences | undefined>;
  /**
   * Rows of events (`cot`, without those of missions' contents being left out) or of chat per day, for whole days from `from` to
   * before `to`; days without rows are missing.
   */
  perDay(type: 'cot' | 'geochat', from: string, to: string): Promise<DayCount[]>;
  /** The day of the oldest row of each; null when there is none. */
  oldestDays(): Promise<Record<'cot' | 'geochat', string | null>>;
  /** The clock of the database, ISO 8601. */
  now(): Promise<string>;
}

/** What the settings ask for: undefined where a variable is unset. */
export interface WantedRetention {
  /** Days. */
  cot: number | undefined;
  geochat: number | undefined;
  /** Quartz. */
  cron: string | undefined;
  /** Must be set when one of the others is. */
  unit: RetentionUnit | undefined;
}

export interface RetentionFileContents {
  /** In the unit of the core. A file that is missing keeps everything. */
  policy: CoreRetentionPolicy;
  exemptKeywords: string[];
  /** The core's own cron, or `-`. */
  schedule: string;
}

export interface SyncedRetention {
  /** Names of the files that were written. */
  written: string[];
  /** What was done, in sentences: set, undone, left as a person has it. */
  messages: string[];
}

/**
 * What the variables of the settings say is written to {data_dir}/conf/retention before the core starts; while it runs it reads
 * them no more. Rejects with an AppError that names the file: `invalid` when it cannot be read as what it is, `unavailable` for the disk.
 */
export interface RetentionFiles {
  read(): Promise<RetentionFileContents>;
  /** Writes what is missing or different, each file whole or not at all; a crash at any moment is made good by the next call. */
  sync(wanted: WantedRetention): Promise<SyncedRetention>;
  /** The last lines of the retention log of a release, oldest first; undefined when there is none. */
  log(): Promise<string[] | undefined>;
}

/** What this feature asks of the outside, by the names in Deps. */
export interface RetentionPorts {
  /** Its files; each method rejects with what is missing when CORE_DATA_DIR is unset. */
  retentionFiles: RetentionFiles;
  retentionFacts: RetentionFacts;
  retentionHistory: RetentionHistory;
}
