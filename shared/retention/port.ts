// Declares the ports of retention: its history, facts from the core's tables, and its files.

import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import type { Retained, RetentionLimits, RetentionPolicy, RetentionUnit } from '@holdfast/kit/retention';
import type { CoreRetentionPolicy } from '../core/port.ts';

/** `log`: read from the log of a release, which has the start of a run and some row counts. */
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

/** Every call rejects with an AppError `unavailable` if our own database is unavailable. */
export interface RetentionHistory {
  /** Adds or updates runs by id; an ended run never runs again. The newest 1,000 are kept. */
  keepRuns(runs: readonly RetentionRun[]): Promise<void>;
  /** Newest first. */
  runs(offset: number, limit: number): Promise<{ results: RetentionRun[]; count: number }>;
  /** The newest finished run, or undefined. */
  lastDone(): Promise<RetentionRun | undefined>;
  /**
   * Remembers the values in force; resolves with the time (ISO 8601) since which they were seen
   * without a break.
   */
  seenInForce(now: string, what: InForce): Promise<string>;
  /** Replaces the counts from `from` to before `to`; a missing day has no rows. */
  keepDays(type: 'cot' | 'geochat', from: string, to: string, days: readonly DayCount[]): Promise<void>;
  /** Ascending. */
  days(type: 'cot' | 'geochat'): Promise<{ days: CountedDay[] }>;
}

/**
 * The kind of core: a release deletes mission packages with `files`, and never by
 * `missionpackages`.
 */
export type RetentionCore = 'embedded' | 'release';

export interface FactsQuestion {
  core: RetentionCore;
  limits: RetentionLimits;
  /** Files with one of these keywords are kept. */
  exemptKeywords: readonly string[];
  /** Figures that take longer are left out. */
  withinMs: number;
}

/** Rows of one type that a run with a limit deletes. */
export interface ExpiredRows {
  /** The count; null if counting takes too long. */
  rows: number | null;
  /**
   * If not counted, all rows of the table, without chat that older releases stored with the events.
   */
  atMost: number | null;
  /** For missions: events and files deleted with them; null like `rows`. */
  included: { cot: number; files: number } | null;
  /** Average bytes of one row with its share of indexes and TOAST; null if unknown. */
  bytesPerRow: number | null;
  /** Total bytes, if known more precisely. */
  bytes: number | null;
  /** Times of the rows, ISO 8601; null if there are none, or it takes too long. */
  oldest: string | null;
  newest: string | null;
}

export interface DayCount {
  /** `2026-01-31`, in UTC. */
  day: string;
  rows: number;
}

/** Rows that would make the run of a release fail: they refer to events that it deletes. */
export interface ExpiredReferences {
  images: number;
  thumbnails: number;
  links: number;
}

/** Types with rows that are older than the limit and not exempt; not counted. */
export interface LeftRows {
  /** The types that have at least one such row. */
  left: Retained[];
  /** The types that could not be checked in time. */
  unknown: Retained[];
}

/**
 * Read-only facts from the tables of a TAK Server release or of the embedded core. Every call
 * rejects with an AppError `unavailable` if the database is unavailable.
 */
export interface RetentionFacts {
  /** One entry for each type that has a limit. */
  expired(question: FactsQuestion): Promise<Partial<Record<Retained, ExpiredRows>>>;
  left(question: FactsQuestion): Promise<LeftRows>;
  /** Undefined if not all could be counted in time. */
  references(question: Pick<FactsQuestion, 'limits' | 'withinMs'>): Promise<ExpiredReferences | undefined>;
  /**
   * Rows per day of events (`cot`, including contents of missions) or of chat, for whole days from
   * `from` to before `to`; days without rows are missing.
   */
  perDay(type: 'cot' | 'geochat', from: string, to: string): Promise<DayCount[]>;
  /** The day of the oldest row of each; null if there is none. */
  oldestDays(): Promise<Record<'cot' | 'geochat', string | null>>;
  /** The clock of the database, ISO 8601. */
  now(): Promise<string>;
}

/** The values of the settings; undefined where a variable is unset. */
export interface WantedRetention {
  /** Days. */
  cot: number | undefined;
  geochat: number | undefined;
  /** Quartz. */
  cron: string | undefined;
  /** Must be set if one of the others is. */
  unit: RetentionUnit | undefined;
}

export interface RetentionFileContents {
  /** In the unit of the core. A missing file keeps everything. */
  policy: CoreRetentionPolicy;
  exemptKeywords: string[];
  /** The core's own cron, or `-`. */
  schedule: string;
}

export interface SyncedRetention {
  /** Names of the files that were written. */
  written: string[];
  /** What was done, in sentences: values set, reset, or left as edited. */
  messages: string[];
}

/**
 * The values of the variables are written to {data_dir}/conf/retention before the core starts; a
 * running core does not read them. Rejects with an AppError that names the file: `invalid` for bad
 * content, `unavailable` for the disk.
 */
export interface RetentionFiles {
  read(): Promise<RetentionFileContents>;
  /**
   * Writes missing or different files, each whole or not at all; the next call recovers from a
   * crash.
   */
  sync(wanted: WantedRetention): Promise<SyncedRetention>;
  /** The last lines of the retention log of a release, oldest first; undefined if there is none. */
  log(): Promise<string[] | undefined>;
}

/** The ports that this feature needs, by their names in Deps. */
export interface RetentionPorts {
  /** The retention files; each method rejects if CORE_DATA_DIR is unset. */
  retentionFiles: RetentionFiles;
  retentionFacts: RetentionFacts;
  retentionHistory: RetentionHistory;
}
