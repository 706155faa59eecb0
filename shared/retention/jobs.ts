// Defines the data of a job of kind `retention`: its input, its result and the audit intent that it
// answers.

import { z } from 'zod';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import { RETAINED, type RetentionLimits } from '@holdfast/kit/retention';
import type { Conclusion } from '../audit/port.ts';
import { finishFromJob, openJob } from '../jobs/ordered-jobs.ts';
import type { OpsJob, OpsJobs } from '../jobs/port.ts';

export const RETENTION_JOB = 'retention';
export const RETENTION_RUN = 'retention.run';

const inputSchema = z.object({
  limits: z.partialRecord(z.enum(RETAINED), z.iso.datetime()),
  most_rows: z.int().min(0).nullable(),
  /** `seq` of the intent in the audit log. */
  intent: z.int(),
});

export interface RetentionJobInput {
  limits: RetentionLimits;
  maxRows: number | null;
  intent: number;
}

export function inputOf({ limits, maxRows, intent }: RetentionJobInput): z.infer<typeof inputSchema> {
  return { limits, most_rows: maxRows, intent };
}

/** Undefined if the row holds something else. */
export function readInput({ input }: OpsJob): RetentionJobInput | undefined {
  const read = inputSchema.safeParse(input);
  if (!read.success) return undefined;
  const { limits, most_rows: maxRows, intent } = read.data;
  return { limits, maxRows, intent };
}

/** The result of a job: the rows that the run deleted. */
export function resultOf(run: CoreRetentionRun): Record<string, unknown> {
  const { startedAt, finishedAt, rows, included, bytes, limits } = run;
  const seconds = finishedAt === null ? null : (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000;
  return { started_at: startedAt, finished_at: finishedAt, rows, included, bytes, limits, seconds };
}

/** The audit conclusion of a finished job. */
export function conclusionOf({ state, result, error }: Pick<OpsJob, 'state' | 'result' | 'error'>): Conclusion {
  const { rows = {}, included = { cot: 0, files: 0 } } = (result ?? {}) as Partial<CoreRetentionRun>;
  const detail = { state, rows, included, ...(error === null ? {} : { error }) };
  if (state === 'succeeded') return { result: 'ok', detail };
  // Without figures from the core the deleted rows are unknown.
  return { result: result === null ? 'unknown' : 'failed', detail };
}

/** The job continues by itself; if its process died after the end, the job row has the result. */
export const INTERRUPTED_RETENTION_RUN = { actions: [RETENTION_RUN], finish: finishFromJob(conclusionOf) };

export function openRetentionJob(opsJobs: Pick<OpsJobs, 'open'>): Promise<OpsJob | undefined> {
  return openJob(opsJobs, RETENTION_JOB);
}
