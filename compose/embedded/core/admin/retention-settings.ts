// What the retention files may say. The embedded core counts `dataRetentionMap` in DAYS.

import { z } from 'zod';
import { readSpringCron } from '../../../../shared/domain/spring-cron.ts';

export const RETAINED = ['cot', 'geochat', 'files', 'missionpackages', 'missions'] as const;
export type Retained = (typeof RETAINED)[number];

/** Days; null keeps for ever. */
export type RetentionPolicy = Record<Retained, number | null>;

export const KEEP_ALL: RetentionPolicy = {
  cot: null,
  geochat: null,
  files: null,
  missionpackages: null,
  missions: null,
};

/** A schedule that never runs. */
export const NEVER = '-';

const MOST_DAYS = 36_500;

export const daysSchema = z
  .int({ error: 'must be a whole number of days from 1, or null' })
  .min(1, { error: 'must be a whole number of days from 1, or null' })
  .max(MOST_DAYS, {
    error: ({ input }) => `${String(input)} is more than ${MOST_DAYS} days: it looks like seconds, and here days count`,
  })
  .nullable();

export const policyChangeSchema = z
  .strictObject({
    cot: daysSchema,
    geochat: daysSchema,
    files: daysSchema,
    missionpackages: daysSchema,
    missions: daysSchema,
  })
  .partial();

/** Spring's six fields, or `-` for never. */
export const scheduleSchema = z.string().superRefine((text, issues) => {
  const fault = scheduleFault(text);
  if (fault !== undefined) issues.addIssue(fault);
});

export function scheduleFault(text: string): string | undefined {
  return text === NEVER ? undefined : readSpringCron(text).fault;
}

/** When missions that nobody uses are put away. */
export interface ArchiveSettings {
  cronExpression: string;
  timeToArchiveAfterNoActivityDays: number;
  removeFromArchiveAfterDays: number;
  archiveMissionByNoContentActivity: boolean;
  archiveMissionByNoSubscriptionActivity: boolean;
}

export const NO_ARCHIVE: ArchiveSettings = {
  cronExpression: NEVER,
  timeToArchiveAfterNoActivityDays: 365,
  removeFromArchiveAfterDays: 1065,
  archiveMissionByNoContentActivity: false,
  archiveMissionByNoSubscriptionActivity: false,
};

export const archiveSchema = z.strictObject({
  cronExpression: scheduleSchema,
  timeToArchiveAfterNoActivityDays: z.int().min(1).max(MOST_DAYS),
  removeFromArchiveAfterDays: z.number().min(1).max(MOST_DAYS),
  archiveMissionByNoContentActivity: z.boolean(),
  archiveMissionByNoSubscriptionActivity: z.boolean(),
});
