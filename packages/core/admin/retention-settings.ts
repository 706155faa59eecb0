// What the retention files may say. The embedded core counts `dataRetentionMap` in DAYS.

import { z } from 'zod';
import { readQuartz, withOpenDay } from '@holdfast/kit/quartz';
import { mostDays, NEVER } from '@holdfast/kit/retention';
import { readSpringCron } from '@holdfast/kit/spring-cron';
import type { ArchiveSettings } from '../model/parts.ts';

const MOST_DAYS = mostDays('days');

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

/** Quartz, or `-` for never: when retention runs. */
export const scheduleSchema = cronSchema(scheduleFault);
/** Spring's six fields, or `-` for never: when missions are put away. */
export const archiveCronSchema = cronSchema((text) => (text === NEVER ? undefined : readSpringCron(text).fault));

/** `*` in both day fields is every day. */
export function scheduleFault(text: string): string | undefined {
  if (text === NEVER) return undefined;
  const { fault } = readQuartz(withOpenDay(text));
  if (fault === undefined) return undefined;
  const spring =
    readSpringCron(text).fault === undefined ? ' (a TAK Server release reads it, in the style of Spring)' : '';
  return `"${text}" is no schedule of Quartz${spring}: ${fault}. ${SCHEDULE_REMEDY}`;
}

const SCHEDULE_REMEDY =
  'Write second minute hour day-of-month month day-of-week, with ? in one of the day fields and 1 for Sunday, such as "0 0 3 * * ?", or "-" for never';

function cronSchema(faultOf: (text: string) => string | undefined): z.ZodString {
  return z.string().superRefine((text, issues) => {
    const fault = faultOf(text);
    if (fault !== undefined) issues.addIssue(fault);
  });
}

export const NO_ARCHIVE: ArchiveSettings = {
  cronExpression: NEVER,
  timeToArchiveAfterNoActivityDays: 365,
  removeFromArchiveAfterDays: 1065,
  archiveMissionByNoContentActivity: false,
  archiveMissionByNoSubscriptionActivity: false,
};

export const archiveSchema = z.strictObject({
  cronExpression: archiveCronSchema,
  timeToArchiveAfterNoActivityDays: z.int().min(1).max(MOST_DAYS),
  removeFromArchiveAfterDays: z.number().min(1).max(MOST_DAYS),
  archiveMissionByNoContentActivity: z.boolean(),
  archiveMissionByNoSubscriptionActivity: z.boolean(),
});
