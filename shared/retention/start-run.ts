// Starts a retention run on demand: counts first, and rejects more rows than were confirmed, with
// the figures. The run itself is a job (carry-on.ts), which answers its audit intent when it ends.

import { AppError } from '@holdfast/kit/app-error';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import type { Schedules } from '@holdfast/kit/cron';
import { counted } from '@holdfast/kit/format';
import {
  cutoffAt,
  isKeepingAll,
  LARGE_RUN_ROWS,
  type RetentionPolicy,
  type RetentionUnit,
} from '@holdfast/kit/retention';
import type { Actor, Audit } from '../audit/port.ts';
import type { CoreRetention } from '../core/port.ts';
import { addJob } from '../jobs/ordered-jobs.ts';
import type { OpsJob, OpsJobs } from '../jobs/port.ts';
import { type CarryOnDeps, carryOnRetention } from './carry-on.ts';
import { type RetentionInForce, retentionInForce, type RetentionInForceDeps } from './in-force.ts';
import { inputOf, openRetentionJob, RETENTION_JOB, RETENTION_RUN, type RetentionJobInput } from './jobs.ts';
import { type PreviewDeps, previewRetention, type RetentionPreview } from './preview.ts';
import { nextRuns } from './state.ts';

export interface StartRunDeps extends CarryOnDeps, RetentionInForceDeps, PreviewDeps {
  coreRetention: CoreRetention;
  retentionFiles: PreviewDeps['retentionFiles'];
  retentionHistory: CarryOnDeps['retentionHistory'] & PreviewDeps['retentionHistory'];
  opsJobs: OpsJobs;
  audit: Pick<Audit, 'intend' | 'conclude'>;
  schedules: Pick<Schedules, 'next'>;
  /** The time zone of the core. */
  timeZone: string;
}

export interface RetentionRunInput {
  /** The maximum number of rows to delete; undefined: any number that is not large. */
  confirmRows: number | undefined;
  /** The limit of the type with the fewest days; undefined: from now. */
  cutoff: Date | undefined;
}

interface Context {
  deps: StartRunDeps;
  actor: Actor;
  /** Checked again after the count, which takes a while. */
  mustStillBeIn?: () => Promise<void>;
}

/** Longer than a preview may take, because this request deletes. */
const COUNTED_WITHIN_MS = 5_000;

export async function startRetentionRun(
  context: Context,
  unit: RetentionUnit | undefined,
  input: RetentionRunInput,
): Promise<OpsJob> {
  const { deps } = context;
  if (unit === undefined) throw unknownUnit();
  const inForce = await retentionInForce(deps, unit);
  // The files alone may differ from the values in force.
  if (inForce.coreProblem !== undefined) throw new AppError('unavailable', inForce.coreProblem);
  await refuseWhileOneRuns(deps, inForce, unit);
  const { policy } = inForce;
  if (isKeepingAll(policy)) return added(context, { limits: {}, maxRows: input.confirmRows ?? null });
  await refuseLateCutoff(deps, policy, input.cutoff);
  const preview = await previewRetention(deps, { policy, unit, cutoff: input.cutoff, withinMs: COUNTED_WITHIN_MS });
  refuseUnconfirmed(preview, input.confirmRows);
  return added(context, { limits: preview.limits, maxRows: input.confirmRows ?? LARGE_RUN_ROWS });
}

async function refuseWhileOneRuns(deps: StartRunDeps, inForce: RetentionInForce, unit: RetentionUnit): Promise<void> {
  const runs = await deps.coreRetention.runs();
  if (runs === undefined) throw notSupported(deps, inForce, unit);
  const job = await openRetentionJob(deps.opsJobs);
  if (job !== undefined) throw new AppError('conflict', `A retention run is already ${job.state}: the job ${job.id}.`);
  const running = runs.find(({ state }) => state === 'running');
  if (running !== undefined) throw new AppError('conflict', runningSentence(running));
}

function runningSentence({ trigger, startedAt, id }: CoreRetentionRun): string {
  const which = trigger === 'schedule' ? 'The scheduled run' : `The run ${id}`;
  return `${which} has been in progress at the core since ${startedAt}. Remedy: wait for its end; see GET /api/retention/runs.`;
}

function notSupported(deps: StartRunDeps, { schedule }: RetentionInForce, unit: RetentionUnit): AppError {
  const [next] = nextRuns(deps, schedule, unit, 1);
  const when =
    next === undefined
      ? `It has no schedule (${schedule}). Remedy: set one with PUT /api/retention.`
      : `Its next scheduled run is at ${next.toISOString()} (${schedule}, ${deps.timeZone}).`;
  return new AppError('not_supported', `This core has no call to start a retention run. ${when}`);
}

/** Uses the clock of the database, which also sets the times of rows. */
async function refuseLateCutoff(deps: StartRunDeps, policy: RetentionPolicy, cutoff: Date | undefined): Promise<void> {
  if (cutoff === undefined) return;
  const latest = cutoffAt(policy, new Date(await deps.retentionFacts.now()));
  if (cutoff.getTime() <= latest.getTime()) return;
  const message = `must be ${latest.toISOString()} or earlier: the policy keeps newer data, which ${cutoff.toISOString()} would delete`;
  throw new AppError('invalid', `cutoff: ${message}`, { fields: [{ path: 'cutoff', message }] });
}

function refuseUnconfirmed({ rows, exact, cutoff, types }: RetentionPreview, confirmRows: number | undefined): void {
  if (rows <= (confirmRows ?? LARGE_RUN_ROWS)) return;
  const figures = {
    rows,
    exact,
    confirm_rows: confirmRows ?? null,
    cutoff,
    types: Object.fromEntries(Object.entries(types).map(([type, each]) => [type, each.rows])),
  };
  const many = `${exact ? '' : 'about '}${counted(rows, 'row')}`;
  const than =
    confirmRows === undefined
      ? `more than ${LARGE_RUN_ROWS} need a confirmation`
      : `confirm_rows allows ${confirmRows}`;
  const message = `This run would delete ${many}; ${than}. Nothing was deleted. Remedy: send confirm_rows ${rows} or more, and cutoff ${cutoff}.`;
  throw new AppError('confirmation_needed', message, { figures });
}

/** The job has the id of the run at the core. One that deletes nothing ends at once. */
async function added(
  { deps, actor, mustStillBeIn }: Context,
  order: Omit<RetentionJobInput, 'intent'>,
): Promise<OpsJob> {
  await mustStillBeIn?.();
  const { limits, maxRows } = order;
  const job = await addJob(deps, {
    kind: RETENTION_JOB,
    action: RETENTION_RUN,
    actor,
    detail: { limits, most_rows: maxRows },
    inputOf: (intent) => inputOf({ ...order, intent }),
  });
  if (Object.keys(limits).length > 0) return job;
  await carryOnRetention(deps);
  const ended = await deps.opsJobs.get(job.id);
  if (ended === undefined) throw new Error(`the job ${job.id} was removed`);
  return ended;
}

function unknownUnit(): AppError {
  return new AppError(
    'conflict',
    "The core's unit, days or seconds, is unknown, so nothing was deleted. Remedy: set CORE_RETENTION_UNIT.",
  );
}
