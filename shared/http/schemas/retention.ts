// How retention looks in requests and answers: always in days, whatever the core counts.

import { z } from '@hono/zod-openapi';
import { maxDays, RETAINED } from '@holdfast/kit/retention';
import { bodyOf, timeText } from '../listing.ts';

const time = z.iso.datetime();
const count = z.int().nonnegative();
const notes = z.array(z.string()).openapi({ description: 'Warnings, as sentences' });
const unit = z.enum(['days', 'seconds']);
const MAX_DAYS = maxDays('days');

/** The same for each type. */
function perType<const S extends z.ZodType>(schema: S) {
  return { cot: schema, geochat: schema, files: schema, missionpackages: schema, missions: schema };
}

const keptDays = z.number().nullable().openapi({ description: 'Days; null keeps forever' });

const archivingSchema = z.object({
  cron: z.string(),
  time_to_archive_after_no_activity_days: z.number(),
  remove_from_archive_after_days: z.number(),
  archive_mission_by_no_content_activity: z.boolean(),
  archive_mission_by_no_subscription_activity: z.boolean(),
});

export const retentionSchema = z
  .object({
    policy: z.object(perType(keptDays)),
    source: z
      .object({ ...perType(z.enum(['env', 'file', 'none'])), cron: z.enum(['env', 'default', 'file', 'none']) })
      .openapi({
        description: 'env: set by a variable, which is the only place to change it; file: set here or at the core',
      }),
    cron: z.string().openapi({ description: "The core's own schedule, or - for none" }),
    dialect: z
      .enum(['quartz', 'spring'])
      .nullable()
      .openapi({ description: 'Syntax of cron; null together with unit' }),
    time_zone: z.string().openapi({ description: 'Time zone of the schedule' }),
    unit: unit.nullable().openapi({
      description: 'Unit of the core; null: CORE_RETENTION_UNIT is not set, so the policy is unknown',
    }),
    next_runs: z.array(time),
    mission_archiving: archivingSchema.nullable().openapi({ description: 'null: the core did not answer' }),
    in_force: z
      .enum(['core', 'files'])
      .openapi({ description: 'files: the core does not answer; it will start with these values' }),
    problem: z.string().nullable().openapi({ description: 'Why the answer is incomplete' }),
    notes,
  })
  .openapi('Retention');

const wantedDays = z
  .number({
    error: ({ input }) =>
      `must be a whole number of days from 1 to ${MAX_DAYS}, or null to keep forever, not ${textOf(input)}`,
  })
  .nullable()
  .optional()
  .openapi({ type: ['integer', 'null'], minimum: 1, maximum: MAX_DAYS });

function textOf(input: unknown): string {
  return JSON.stringify(input)?.slice(0, 40) ?? 'nothing';
}

const policyChange = z.strictObject(perType(wantedDays), {
  error: (issue) =>
    issue.code === 'unrecognized_keys'
      ? `unknown type ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}; use ${RETAINED.join(', ')}`
      : undefined,
});

export const retentionBody = bodyOf({
  policy: policyChange.optional().openapi({ description: 'Types that are not named stay unchanged' }),
  cron: z
    .string()
    .max(200, 'must have at most 200 characters')
    .optional()
    .openapi({ description: 'Quartz, or - for none', example: '0 0 3 * * ?' }),
});

const daysQuery = z.string().optional().openapi({ type: 'integer', minimum: 1, maximum: MAX_DAYS });
const FIRST_YEAR = 1970;

export const cutoffTime = timeText().refine(
  (text) => new Date(text).getUTCFullYear() >= FIRST_YEAR,
  `must be in ${FIRST_YEAR} or later`,
);

/** A name that nobody reads is a mistake: without it the policy in force would be previewed. */
export const previewQuery = z.strictObject(
  {
    ...perType(daysQuery),
    cutoff: cutoffTime
      .optional()
      .openapi({ description: 'The cutoff of the type with the fewest days; default: counted back from now' }),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `unknown parameter ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}`
        : undefined,
  },
);

const previewedType = z.object({
  limit: time,
  rows: count,
  exact: z.boolean().openapi({ description: 'false: an estimate' }),
  included: z
    .object({ cot: count, files: count })
    .openapi({ description: 'For missions: events and files deleted with them, besides rows' }),
  bytes: count.openapi({ description: 'An estimate' }),
  oldest: time.nullable(),
  newest: time.nullable(),
  estimated_seconds: count,
});

export const previewSchema = z
  .object({
    cutoff: time,
    rows: count.openapi({ description: 'Totals of everything that is deleted' }),
    exact: z.boolean(),
    types: z.object(perType(previewedType.optional())),
    unit,
    notes,
  })
  .openapi('RetentionPreview');
