// What a run of retention would delete, read from the tables of the core as a role that may only read. The statements hold for the
// tables of a TAK Server release and for those of the embedded core.

import type { Retained, RetentionLimits } from '../domain/retention.ts';

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
export interface DoomedRows {
  /** Counted; null when that would have taken too long. */
  rows: number | null;
  /** What the planner guesses; null when it was not needed. */
  estimate: number | null;
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
export interface DoomedReferences {
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

/** Every call rejects with an AppError `unavailable` when the database does not answer. */
export interface RetentionFacts {
  /** One entry for each type that has a limit. */
  doomed(question: FactsQuestion): Promise<Partial<Record<Retained, DoomedRows>>>;
  left(question: FactsQuestion): Promise<LeftRows>;
  /** Undefined when they could not all be counted in time. */
  references(question: Pick<FactsQuestion, 'limits' | 'withinMs'>): Promise<DoomedReferences | undefined>;
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
