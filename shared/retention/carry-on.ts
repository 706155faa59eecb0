// Runs a requested retention run in steps: starts it at the core, follows it, and ends the job with
// the core's result. Steps never wait and can be repeated: the next one continues wherever the last
// one was interrupted.

import { AppError } from '@holdfast/kit/app-error';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import { rounded } from '@holdfast/kit/format';
import type { Log } from '@holdfast/kit/log';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';
import type { Audit } from '../audit/port.ts';
import type { CoreRetention } from '../core/port.ts';
import { isUnavailable } from '../devices/certificates/while-core-is-unavailable.ts';
import { endUnreadable, jobSubject, lastLogText, stated, textOf, timeOf } from '../jobs/ordered-jobs.ts';
import type { HealthMemory, OpsJob, OpsJobChange, OpsJobs } from '../jobs/port.ts';
import { conclusionOf, openRetentionJob, readInput, resultOf, RETENTION_RUN, type RetentionJobInput } from './jobs.ts';
import type { RetentionHistory } from './port.ts';

export interface CarryOnDeps {
  coreRetention: Pick<CoreRetention, 'begin' | 'runs'>;
  retentionHistory: Pick<RetentionHistory, 'keepRuns'>;
  opsJobs: Pick<OpsJobs, 'open' | 'change'>;
  audit: Pick<Audit, 'conclude'>;
  health: HealthMemory;
  log: Log;
  now: () => Date;
}

/** The state of the job after the step; `none`: nothing to do. */
export type Step = 'none' | 'waits' | 'running' | 'ended';

type EndState = 'succeeded' | 'failed' | 'interrupted';

interface Work {
  deps: CarryOnDeps;
  job: OpsJob;
  input: RetentionJobInput;
}

/** A job without any sign of progress from the core for this long has failed. */
const GIVEN_UP_MS = DAY_MS;
const UNAVAILABLE = 'The core does not answer';
const BUSY = 'Another run is in progress at the core';

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
  const work = { deps, job, input };
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
  await change(work, {
    state: 'running',
    startedAt: run.startedAt,
    log: [`The core started the run${expected}.`],
  });
  return 'running';
}

async function refused(work: Work, error: unknown): Promise<Step> {
  if (isUnavailable(error)) return wait(work, UNAVAILABLE, error.message);
  if (!(error instanceof AppError)) throw error;
  if (error.code === 'conflict') return wait(work, BUSY, error.message);
  const result = work.job.startedAt === null ? { result: nothing(null) } : {};
  await endAs(work, 'failed', { ...result, error: `The core rejected the run: ${error.message}` });
  return 'ended';
}

async function follow(work: Work): Promise<Step> {
  const { deps, job } = work;
  let runs: CoreRetentionRun[] | undefined;
  try {
    runs = await deps.coreRetention.runs();
  } catch (error) {
    if (isUnavailable(error)) return wait(work, UNAVAILABLE, error.message);
    throw error;
  }
  if (runs === undefined) {
    const message = 'The core no longer reports runs. The rows deleted by this one are unknown.';
    await endAs(work, 'failed', { error: message });
    return 'ended';
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
  const log: string[] = isWaiting(lastLogText(job)) ? ['The core answers again.'] : [];
  if (Math.floor(progress * 10) > Math.floor(job.progress * 10))
    log.push(`${Math.floor(share * 100)} %: ${done} of ${run.expected} rows deleted.`);
  const begunMs = Date.parse(run.startedAt);
  const leftMs = share > 0 ? ((deps.now().getTime() - begunMs) * (1 - share)) / share : undefined;
  const eta = leftMs === undefined ? null : new Date(deps.now().getTime() + Math.max(0, leftMs)).toISOString();
  await change(work, { progress, eta, log });
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
  await endAs(work, state, rest, `${deletedBy(run)} rows deleted.`);
  return 'ended';
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
  await endAs(work, 'succeeded', rest, 'Nothing was deleted: no days are set.');
  return 'ended';
}

/** The result of a job that deleted nothing; null: it was not even started. */
function nothing(at: string | null): Record<string, unknown> {
  const included = { cot: 0, files: 0 };
  return { started_at: at, finished_at: at, rows: {}, included, bytes: 0, limits: {}, seconds: at === null ? null : 0 };
}

/** Logs each reason once; the lines since the last good answer show how long it has waited. */
async function wait(work: Work, what: string, why: string): Promise<Step> {
  const { job, deps } = work;
  const since = job.log[job.log.findLastIndex((line) => !isWaiting(textOf(line))) + 1];
  if (since !== undefined && deps.now().getTime() - timeOf(since).getTime() > GIVEN_UP_MS) {
    await endAs(work, 'failed', { error: `Given up after ${GIVEN_UP_MS / HOUR_MS} hours. ${what}: ${why}` });
    return 'ended';
  }
  if (!lastLogText(job).startsWith(what)) {
    await change(work, { log: [`${what}: ${why}`] });
    deps.log.warn('retention.job_waits', { job: job.id, reason: why });
  }
  return 'waits';
}

function isWaiting(text: string): boolean {
  return text.startsWith(UNAVAILABLE) || text.startsWith(BUSY);
}

async function endAs(work: Work, state: EndState, rest: OpsJobChange, text?: string): Promise<void> {
  const { deps, job, input } = work;
  const { error = null, result = null } = rest;
  await deps.health.forget('retention');
  const isOurs = await change(work, {
    ...rest,
    state,
    finishedAt: deps.now().toISOString(),
    eta: null,
    ...(state === 'succeeded' ? { progress: 1 } : {}),
    log: [text, error].flatMap((each) => each ?? []),
  });
  if (!isOurs) return;
  const { detail, ...conclusion } = conclusionOf({ state, result, error });
  await deps.audit.conclude(input.intent, jobSubject(job, RETENTION_RUN), { ...conclusion, detail: detail ?? {} });
  const fields = { job: job.id, state, error, ...detail, seconds: secondsOf(job, deps.now()) };
  if (state === 'succeeded') deps.log.info('retention.job', fields);
  else deps.log.warn('retention.job', fields);
}

function secondsOf({ createdAt }: OpsJob, now: Date): number {
  return rounded((now.getTime() - Date.parse(createdAt)) / 1000, 1);
}

/** False if the job was ended elsewhere. */
async function change({ deps, job }: Work, { log = [], ...rest }: OpsJobChange): Promise<boolean> {
  const lines = log.map((text) => stated(deps.now(), text));
  return deps.opsJobs.change(job.id, { ...rest, log: lines });
}
