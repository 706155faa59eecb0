// Runs a requested retention run in steps: starts it at the core, follows it, and ends the job with
// the core's result. Steps never wait and can be repeated: the next one continues wherever the last
// one was interrupted.

import { AppError } from '@holdfast/kit/app-error';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import { rounded } from '@holdfast/kit/format';
import { DAY_MS } from '@holdfast/kit/time';
import type { CoreRetention } from '../core/port.ts';
import { isUnavailable } from '../devices/certificates/while-core-is-unavailable.ts';
import {
  changeJob,
  endFollowed,
  type EndState,
  type FollowDeps,
  type Followed,
  isWaiting,
  type Step,
  waitFor,
} from '../jobs/followed-job.ts';
import { endUnreadable, lastLogText } from '../jobs/ordered-jobs.ts';
import type { OpsJob, OpsJobChange } from '../jobs/port.ts';
import { conclusionOf, openRetentionJob, readInput, resultOf, RETENTION_RUN, type RetentionJobInput } from './jobs.ts';
import type { RetentionHistory } from './port.ts';

export interface CarryOnDeps extends FollowDeps {
  coreRetention: Pick<CoreRetention, 'begin' | 'runs'>;
  retentionHistory: Pick<RetentionHistory, 'keepRuns'>;
}

interface Work extends Followed {
  deps: CarryOnDeps;
  input: RetentionJobInput;
}

const UNAVAILABLE = 'The core does not answer';
const BUSY = 'Another run is in progress at the core';
/** A job without any sign of progress from the core for a day has failed. */
const KIND = { name: 'retention', waits: { [UNAVAILABLE]: DAY_MS, [BUSY]: DAY_MS }, conclusionOf };

/**
 * Runs one step of the open job. Rejects if our own database is unavailable; the next step then
 * continues.
 */
export async function carryOnRetention(deps: CarryOnDeps): Promise<Step> {
  const job = await openRetentionJob(deps.opsJobs);
  if (job === undefined) return 'none';
  const input = readInput(job);
  if (input === undefined) {
    await endUnreadable(deps, job, 'nothing was started');
    return 'ended';
  }
  const work = { deps, job, kind: KIND, action: RETENTION_RUN, intent: input.intent, input };
  if (Object.keys(input.limits).length === 0) return endWithoutDays(work);
  return job.state === 'queued' ? begin(work) : follow(work);
}

async function begin(work: Work): Promise<Step> {
  const { deps, job, input } = work;
  let run: CoreRetentionRun;
  try {
    run = await deps.coreRetention.begin({ id: job.id, limits: input.limits, maxRows: input.maxRows });
  } catch (error) {
    return refused(work, error);
  }
  if (run.state !== 'running') return end(work, run);
  const expected = run.expected === null ? '' : ` of ${run.expected} rows`;
  await changeJob(work, {
    state: 'running',
    startedAt: run.startedAt,
    log: [`The core started the run${expected}.`],
  });
  return 'running';
}

async function refused(work: Work, error: unknown): Promise<Step> {
  if (isUnavailable(error)) return waitFor(work, UNAVAILABLE, error.message);
  if (!(error instanceof AppError)) throw error;
  if (error.code === 'conflict') return waitFor(work, BUSY, error.message);
  const result = work.job.startedAt === null ? { result: nothing(null) } : {};
  return endAs(work, 'failed', { ...result, error: `The core rejected the run: ${error.message}` });
}

async function follow(work: Work): Promise<Step> {
  const { deps, job } = work;
  let runs: CoreRetentionRun[] | undefined;
  try {
    runs = await deps.coreRetention.runs();
  } catch (error) {
    if (isUnavailable(error)) return waitFor(work, UNAVAILABLE, error.message);
    throw error;
  }
  if (runs === undefined) {
    const message = 'The core no longer reports runs. The rows deleted by this one are unknown.';
    return endAs(work, 'failed', { error: message });
  }
  const run = runs.find(({ id }) => id === job.id);
  if (run === undefined) return begin(work);
  if (run.state !== 'running') return end(work, run);
  await tell(work, run);
  return 'running';
}

/** Records the progress and the estimated end at the pace so far. */
async function tell(work: Work, run: CoreRetentionRun): Promise<void> {
  const { deps, job } = work;
  const done = deletedBy(run);
  const share = run.expected === null || run.expected === 0 ? 0 : Math.min(1, done / run.expected);
  const progress = Math.floor(share * 1000) / 1000;
  const log: string[] = isWaiting(KIND, lastLogText(job)) ? ['The core answers again.'] : [];
  if (Math.floor(progress * 10) > Math.floor(job.progress * 10))
    log.push(`${Math.floor(share * 100)} %: ${done} of ${run.expected} rows deleted.`);
  const begunMs = Date.parse(run.startedAt);
  const leftMs = share > 0 ? ((deps.now().getTime() - begunMs) * (1 - share)) / share : undefined;
  const eta = leftMs === undefined ? null : new Date(deps.now().getTime() + Math.max(0, leftMs)).toISOString();
  await changeJob(work, { progress, eta, log });
}

function deletedBy({ rows, included }: CoreRetentionRun): number {
  return Object.values(rows).reduce((sum, each) => sum + each, 0) + included.cot + included.files;
}

const STATES = { done: 'succeeded', failed: 'failed', interrupted: 'interrupted' } as const;

/** Stores the history first, so that the run is there when the job shows its end. */
async function end(work: Work, run: CoreRetentionRun): Promise<Step> {
  const { deps } = work;
  if (run.state === 'running') return 'running';
  await deps.retentionHistory.keepRuns([{ ...run, source: 'core' }]);
  const state = STATES[run.state];
  const error = errorOf(run);
  const rest: OpsJobChange = { startedAt: run.startedAt, result: resultOf(run), ...(error === null ? {} : { error }) };
  return endAs(work, state, rest, `${deletedBy(run)} rows deleted.`);
}

function errorOf({ state, error }: CoreRetentionRun): string | null {
  if (state === 'done') return null;
  if (state === 'failed') return error ?? 'The run failed at the core, which reports no reason.';
  const words = error === null ? 'The next run deletes the rest.' : `Core: ${error}`;
  return `The run was interrupted. Deleted rows stay deleted. ${words}`;
}

async function endWithoutDays(work: Work): Promise<Step> {
  const at = work.deps.now().toISOString();
  const rest = { startedAt: at, result: nothing(at) };
  return endAs(work, 'succeeded', rest, 'Nothing was deleted: no days are set.');
}

/** The result of a job that deleted nothing; null: it was not even started. */
function nothing(at: string | null): Record<string, unknown> {
  const included = { cot: 0, files: 0 };
  return { started_at: at, finished_at: at, rows: {}, included, bytes: 0, limits: {}, seconds: at === null ? null : 0 };
}

function endAs(work: Work, state: EndState, rest: OpsJobChange, text?: string): Promise<Step> {
  const fields = { seconds: secondsOf(work.job, work.deps.now()) };
  return endFollowed(work, state, rest, { fields, ...(text === undefined ? {} : { text }) });
}

function secondsOf({ createdAt }: OpsJob, now: Date): number {
  return rounded((now.getTime() - Date.parse(createdAt)) / 1000, 1);
}
