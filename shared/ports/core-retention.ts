// Retention at the core itself: what it has in force, in its own unit and its own cron; and runs, where it tells of them.

import type { Retained, RetentionLimits } from '../domain/retention.ts';

/** In the unit of the core (CORE_RETENTION_UNIT); null keeps for ever. */
export type CoreRetentionPolicy = Record<Retained, number | null>;

export interface MissionArchiving {
  /** The core's own cron, or `-`. */
  cron: string;
  timeToArchiveAfterNoActivityDays: number;
  removeFromArchiveAfterDays: number;
  archiveMissionByNoContentActivity: boolean;
  archiveMissionByNoSubscriptionActivity: boolean;
}

export type RetentionRunState = 'running' | 'done' | 'failed' | 'interrupted';

/** A run as the core tells of it. Times are ISO 8601. */
export interface CoreRetentionRun {
  /** Of whoever has ordered it, else of the core. */
  id: string;
  trigger: 'schedule' | 'order';
  state: RetentionRunState;
  startedAt: string;
  finishedAt: string | null;
  limits: RetentionLimits;
  /** So far, of the types that have a limit. `missions` counts missions. */
  rows: Partial<Record<Retained, number>>;
  /** What went with missions, besides `rows`. */
  included: { cot: number; files: number };
  /** How many rows it will delete in all, with what goes with missions; null while that is not known. */
  expected: number | null;
  /** Freed for later rows, an estimate; null when the core does not say. */
  bytes: number | null;
  error: string | null;
}

export interface RetentionRunOrder {
  /** A UUID. The same one again is the same run. */
  id: string;
  /** No type that the core's policy keeps, and no limit later than that policy has it now. */
  limits: RetentionLimits;
  /** It ends with an error before it would delete more. */
  mostRows: number | null;
}

/** Errors as of `Core`. */
export interface CoreRetention {
  policy(): Promise<CoreRetentionPolicy>;
  /** Changes the given keys; resolves with what was read back, `upstream` when that is not what was asked for. */
  changePolicy(change: Partial<CoreRetentionPolicy>): Promise<CoreRetentionPolicy>;
  /** The core's own cron, or `-`. */
  schedule(): Promise<string>;
  /** Resolves with what was read back, `upstream` when that is not what was asked for. */
  changeSchedule(cron: string): Promise<string>;
  missionArchiving(): Promise<MissionArchiving>;
  /** Begins a run. `not_supported` when the core has no such call, `conflict` when one is going on, `invalid` for its limits. */
  begin(order: RetentionRunOrder): Promise<CoreRetentionRun>;
  /** The last ones, newest first; undefined when the core does not tell such things. */
  runs(): Promise<CoreRetentionRun[] | undefined>;
}
