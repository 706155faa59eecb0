// How long work looks in answers, for every function that begins some or speaks of it.

import { z } from '@hono/zod-openapi';
import { OPS_JOB_STATES, type OpsJob } from '../../jobs/port.ts';

const time = z.iso.datetime();

export const opsJobSchema = z
  .object({
    id: z.guid(),
    kind: z.string(),
    state: z.enum(OPS_JOB_STATES),
    progress: z.number().openapi({ description: '0 to 1' }),
    phase: z.string().nullable().openapi({ description: 'The current phase; null when it is not reported' }),
    phase_percent: z.number().nullable().openapi({ description: '0 to 100 within the phase; null when unknown' }),
    created_at: time,
    started_at: time.nullable(),
    finished_at: time.nullable(),
    eta: time.nullable().openapi({ description: 'Estimated end at the current pace' }),
    log: z.array(z.string()).openapi({ description: 'Log lines with their times; the last 200' }),
    result: z.unknown().openapi({ description: 'The result; null while it runs, and when unknown' }),
    error: z.string().nullable(),
    requested_by: z.string(),
  })
  .openapi('OpsJob');

export type OpsJobView = z.infer<typeof opsJobSchema>;

export function toOpsJobView(job: OpsJob): OpsJobView {
  const {
    id,
    kind,
    state,
    progress,
    phase,
    phasePercent,
    createdAt,
    startedAt,
    finishedAt,
    eta,
    log,
    result,
    error,
    actor,
  } = job;
  return {
    id,
    kind,
    state,
    progress,
    phase,
    phase_percent: phasePercent,
    created_at: createdAt,
    started_at: startedAt,
    finished_at: finishedAt,
    eta,
    log,
    result: result ?? null,
    error,
    requested_by: actor,
  };
}

/** The header of a 202: where the job is followed. */
export function opsJobPath({ id }: OpsJob): string {
  return `/api/ops/jobs/${id}`;
}
