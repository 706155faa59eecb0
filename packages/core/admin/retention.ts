// Serves /Marti/api/retention: policy and schedule. The embedded core counts `dataRetentionMap` in
// days.

import { z } from 'zod';
import { readQuartz, withOpenDay } from '@holdfast/kit/quartz';
import { maxDays, NEVER, RETAINED } from '@holdfast/kit/retention';
import { readSpringCron } from '@holdfast/kit/spring-cron';
import { emptyAnswer, wrapped } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, readJson, readText } from '../http/route.ts';
import type { ArchiveSettings } from '../model/parts.ts';
import type { AdminApiOptions } from './options.ts';

const MAX_DAYS = maxDays('days');

export const daysSchema = z
  .int({ error: 'must be a whole number of days from 1, or null' })
  .min(1, { error: 'must be a whole number of days from 1, or null' })
  .max(MAX_DAYS, {
    error: ({ input }) => `${String(input)} is more than ${MAX_DAYS} days: it looks like seconds, but the unit is days`,
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
  timeToArchiveAfterNoActivityDays: z.int().min(1).max(MAX_DAYS),
  removeFromArchiveAfterDays: z.number().min(1).max(MAX_DAYS),
  archiveMissionByNoContentActivity: z.boolean(),
  archiveMissionByNoSubscriptionActivity: z.boolean(),
});

const BASE = '/Marti/api/retention';
const POLICIES = 'RetentionPolicies';
const SCHEDULE = 'RetentionServiceSchedule';
const ARCHIVE = 'MissionArchiveConfig';
const STORE = 'MissionArchive';
const RUN = 'RetentionRun';
const MAX_SCHEDULE_BYTES = 1_000;

const limitSchema = z.iso.datetime({ offset: true }).optional();
const orderSchema = z.strictObject({
  id: z.uuid(),
  limits: z.strictObject(Object.fromEntries(RETAINED.map((type) => [type, limitSchema]))),
  mostRows: z.int().min(0).nullable(),
});

export function retentionRoutes({ retention, retentionRuns, nodeId }: AdminApiOptions): AdminRoute[] {
  async function changePolicy(c: AdminContext): Promise<Response> {
    const given = await readJson(c, policyChangeSchema);
    return wrapped(POLICIES, retention.changePolicy(withoutMissing(given)), nodeId);
  }

  /**
   * The body is the bare text. What is no schedule is answered with nothing, and changes nothing.
   */
  async function changeSchedule(c: AdminContext): Promise<Response> {
    const text = (await readText(c, MAX_SCHEDULE_BYTES)).trim();
    return retention.changeSchedule(text) ? wrapped(SCHEDULE, retention.schedule(), nodeId) : emptyAnswer();
  }

  async function changeArchive(c: AdminContext): Promise<Response> {
    const given = await readJson(c, archiveSchema.partial());
    return wrapped(ARCHIVE, retention.changeArchive(withoutMissing(given)), nodeId);
  }

  async function beginRun(c: AdminContext): Promise<Response> {
    const { id, limits, mostRows } = await readJson(c, orderSchema);
    return wrapped(RUN, await retentionRuns.begin({ id, limits: withoutMissing(limits), maxRows: mostRows }), nodeId);
  }

  return [
    {
      path: `${BASE}/policy`,
      handlers: { GET: () => wrapped(POLICIES, retention.policy(), nodeId), PUT: changePolicy },
    },
    {
      path: `${BASE}/service/schedule`,
      handlers: { GET: () => wrapped(SCHEDULE, retention.schedule(), nodeId), PUT: changeSchedule },
    },
    {
      path: `${BASE}/missionarchiveconfig`,
      handlers: { GET: () => wrapped(ARCHIVE, retention.archive(), nodeId), PUT: changeArchive },
    },
    {
      path: `${BASE}/missionarchive`,
      handlers: { GET: () => wrapped(STORE, JSON.stringify(retention.archived()), nodeId) },
    },
    {
      path: `${BASE}/runs`,
      handlers: { GET: async () => wrapped(RUN, await retentionRuns.runs(), nodeId), POST: beginRun },
    },
  ];
}

type Given<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

function withoutMissing<T extends object>(given: T): Given<T> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Given<T>;
}
