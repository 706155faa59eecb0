// Carries a run of retention that somebody has ordered on, one step at a time: begins it at the core, follows it, and ends the job
// with what the core says of it. Nothing waits, and what is done twice is the same: the next step goes on wherever the last one
// was cut off.

import { AppError } from '@holdfast/kit/app-error';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import { rounded } from '@holdfast/kit/format';
import type { Log } from '@holdfast/kit/log';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';
import type { Audit } from '../audit/port.ts';
import type { CoreRetention } from '../core/port.ts';
import { isUnavailable } from '../devices/certificates/while-core-is-unavailable.ts';
import { endUnreadable, jobSubject, lastReported, stated, textOf, timeOf } from '../jobs/ordered-jobs.ts';
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

/** The job as the step leaves it; `none`: there is nothing to do. */
export type Step = 'none' | 'waits' | 'running' | 'ended';

type EndState = 'succeeded' | 'failed' | 'interrupted';

interface Work {
  deps: CarryOnDeps;
  job: OpsJob;
  input: RetentionJobInput;
}

/** A job of which the core has not said for so long without a break that it goes on has failed. */
const GIVEN_UP_MS = DAY_MS;
const UNAVAILABLE = 'The core does not answer';
const BUSY = 'Another run is going on at the core';

/** One step of the open job. Rejects when our own database is away; the next step then goes on. */
export async function carryOnRetention(deps: CarryOnDeps): Promise<Step> {
  const job = await openRetentionJob(deps.opsJobs);
  if (job === undefined) return 'none';
  const input = readInput(job);
  if (input === undefined) {
    await endUnreadable(deps, job, 'nothing was begun');
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
    log: [`The core has begun the run${expected}.`],
  });
  return 'running';
}

async function refused(work: Work, error: unknown): Promise<Step> {
  if (isUnavailable(error)) return wait(work, UNAVAILABLE, error.message);
  if (!(error instanceof AppError)) throw error;
  if (error.code === 'conflict') return wait(work, BUSY, error.message);
  const result = work.job.startedAt === null ? { result: nothing(null) } : {};
  await endAs(work, 'failed', { ...result, error: `The core has refused the run: ${error.message}` });
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
    const message = 'The core tells of no runs any more: what this one has deleted is not known.';
    await endAs(work, 'failed', { error: message });
    return 'ended';
  }
  const run = runs.find(({ id }) => id === job.id);
  if (run === undefined) return begin(work);
  if (run.state !== 'running') return end(work, run);
  await tell(work, run);
  return 'running';
}

/** How far it is, and when it will be done at the pace so far. */
async function tell(work: Work, run: CoreRetentionRun): Promise<void> {
  const { deps, job } = work;
  const done = deletedBy(run);
  const share = run.expected === null || run.expected === 0 ? 0 : Math.min(1, done / run.expected);
  const progress = Math.floor(share * 1000) / 1000;
  const log: string[] = isWaiting(lastReported(job)) ? ['The core answers again.'] : [];
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

/** The book first: whoever sees the end of the job finds the run there. */
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
  if (state === 'failed') return error ?? 'The run has failed at the core, which does not say why.';
  const words = error === null ? 'The next run deletes the rest.' : `The core says: ${error}`;
  return `The run was cut off in the middle of it. What it has deleted stays deleted. ${words}`;
}

async function endWithoutDays(work: Work): Promise<Step> {
  const at = work.deps.now().toISOString();
  const rest = { startedAt: at, result: nothing(at) };
  await endAs(work, 'succeeded', rest, 'Nothing is deleted: no type has days.');
  return 'ended';
}

/** The result of a job that has deleted nothing; null: it was not even begun. */
function nothing(at: string | null): Record<string, unknown> {
  const included = { cot: 0, files: 0 };
  return { started_at: at, finished_at: at, rows: {}, included, bytes: 0, limits: {}, seconds: at === null ? null : 0 };
}

/** Says why once, until something else is to be said: the lines since the last good answer tell since when it waits. */
async function wait(work: Work, what: string, why: string): Promise<Step> {
  const { job, deps } = work;
  const since = job.log[job.log.findLastIndex((line) => !isWaiting(textOf(line))) + 1];
  if (since !== undefined && deps.now().getTime() - timeOf(since).getTime() > GIVEN_UP_MS) {
    await endAs(work, 'failed', { error: `Given up after ${GIVEN_UP_MS / HOUR_MS} hours. ${what}: ${why}` });
    return 'ended';
  }
  if (!lastReported(job).startsWith(what)) {
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

/** False: somebody else has ended it. */
async function change({ deps, job }: Work, { log = [], ...rest }: OpsJobChange): Promise<boolean> {
  const lines = log.map((text) => stated(deps.now(), text));
  return deps.opsJobs.change(job.id, { ...rest, log: lines });
}
