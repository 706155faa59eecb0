// Runs a requested or scheduled backup in steps: asks the service to begin, follows it through the
// proof, and ends the job with the outcome. Steps never wait and can be repeated: the next one
// continues wherever the last one was interrupted.

import { AppError } from '@holdfast/kit/app-error';
import { formatBytes, formatSeconds } from '@holdfast/kit/format';
import type { Log } from '@holdfast/kit/log';
import { DAY_MS, HOUR_MS, SECOND_MS } from '@holdfast/kit/time';
import type { Audit } from '../audit/port.ts';
import { endUnreadable, jobSubject, lastLogText, openJob, stated, textOf, timeOf } from '../jobs/ordered-jobs.ts';
import type { HealthMemory, OpsJob, OpsJobChange, OpsJobs } from '../jobs/port.ts';
import {
  BACKUP_ACTIONS,
  BACKUP_JOB,
  type BackupJobInput,
  type BackupMemory,
  conclusionOf,
  readBackupJob,
  resultOf,
} from './jobs.ts';
import type { Backup, BackupRun, Backups, BackupState } from './port.ts';
import { isProven, LEVEL_WORDS } from './rules.ts';

export interface CarryOnDeps {
  backups: Pick<Backups, 'state' | 'start' | 'prove'>;
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
  input: BackupJobInput;
  memory: BackupMemory | undefined;
}

const UNAVAILABLE = 'The backup service is unavailable';
const BUSY = 'The service is busy with another run';
/** A job whose service stays unavailable has failed. */
const GIVEN_UP_MS = { [UNAVAILABLE]: HOUR_MS, [BUSY]: DAY_MS };
/** Between a backup and its proof, and between the end of a run and its record. */
const IDLE_MS = 20 * SECOND_MS;

/**
 * Runs one step of the open job. Rejects if our own database is unavailable; the next step then
 * continues.
 */
export async function carryOnBackup(deps: CarryOnDeps): Promise<Step> {
  const job = await openJob(deps.opsJobs, BACKUP_JOB);
  if (job === undefined) return 'none';
  const read = readBackupJob(job);
  if (read === undefined) {
    await endUnreadable(deps, job, 'what it started is not followed');
    return 'ended';
  }
  const work = { deps, job, ...read };
  let state: BackupState;
  try {
    state = await deps.backups.state();
  } catch (error) {
    if (error instanceof AppError) return wait(work, UNAVAILABLE, error.message);
    throw error;
  }
  return work.memory === undefined ? begin(work, state) : follow(work, work.memory, state);
}

/** A process that died after the service had begun left a job without memory: it is adopted. */
async function begin(work: Work, state: BackupState): Promise<Step> {
  const { deps, job, input } = work;
  const since = floored(job.createdAt);
  const { running } = state;
  if (running !== null && isOf(running, input) && running.started_at >= since) return begun(work, running);
  if (running !== null) return wait(work, BUSY, `${running.phase}.`);
  const made = input.what === 'backup' ? madeBy(job.actor, since, state) : undefined;
  if (made !== undefined) return follow(work, { begun_at: since, name: made.name, idle_since: null }, state);
  try {
    return await begun(work, await request(deps, job, input));
  } catch (error) {
    return refused(work, error);
  }
}

function request({ backups }: CarryOnDeps, { actor }: OpsJob, { name, history }: BackupJobInput): Promise<BackupRun> {
  if (name !== null) return backups.prove(name, { requestedBy: actor });
  return backups.start({ requestedBy: actor, ...(history === null ? {} : { history }) });
}

function isOf({ kind, name }: BackupRun, input: BackupJobInput): boolean {
  return kind === input.what && (kind === 'backup' || name === input.name);
}

async function begun(work: Work, run: BackupRun): Promise<Step> {
  const memory: BackupMemory = { begun_at: floored(run.started_at), name: run.name, idle_since: null };
  await change(work, {
    state: 'running',
    startedAt: run.started_at,
    memory,
    ...progressOf(work, run, run.kind === 'proof'),
    log: [`${run.phase}.`],
  });
  return 'running';
}

/** What the service refused for good ends the job. */
async function refused(work: Work, error: unknown): Promise<Step> {
  if (!(error instanceof AppError)) throw error;
  if (error.code === 'unavailable') return wait(work, UNAVAILABLE, error.message);
  if (error.code === 'conflict') return wait(work, BUSY, error.message);
  return endAs(work, 'failed', { error: error.message });
}

async function follow(work: Work, memory: BackupMemory, state: BackupState): Promise<Step> {
  const { job, input } = work;
  const { running, last_failure: failure } = state;
  const name = memory.name ?? input.name;
  if (running !== null && isOurs(running, input, memory)) return tell(work, memory, state, running);
  const backup = name === null ? madeBy(job.actor, memory.begun_at, state) : state.backups.find(named(name));
  const failed =
    failure !== null &&
    failure.at >= memory.begun_at &&
    (failure.name === null || failure.name === (name ?? backup?.name));
  if (backup === undefined) {
    if (failed) return endAs(work, 'failed', { error: failure.error });
    if (name !== null && input.what === 'proof')
      return endAs(work, 'failed', { error: `The backup ${name} no longer exists.` });
    const lost = 'The backup service stopped before the backup was complete. Nothing of it was kept. Run it again.';
    return idle(work, memory, () => endAs(work, 'interrupted', { error: lost }));
  }
  const known = { ...memory, name: backup.name };
  if (isJudged(backup, input, memory)) return endProven(work, backup);
  if (failed) return endAs(work, 'failed', { error: failure.error, result: resultOf(input.what, backup) });
  if (input.what === 'backup' && (state.proof === 'off' || running !== null)) return endProven(work, backup);
  return idle(work, known, () => {
    if (input.what === 'backup') return endProven(work, backup);
    return endAs(work, 'interrupted', { error: 'The backup service stopped before the proof ended. Prove it again.' });
  });
}

const named =
  (name: string) =>
  (backup: Backup): boolean =>
    backup.name === name;

/** The proof that follows a backup by itself belongs to its job. */
function isOurs(run: BackupRun, input: BackupJobInput, { name, begun_at: since }: BackupMemory): boolean {
  if (run.kind === 'proof') return run.name === (name ?? input.name) || (name === null && run.started_at >= since);
  return input.what === 'backup' && (name === null || run.name === null || run.name === name);
}

function madeBy(actor: string, since: string, { backups }: BackupState): Backup | undefined {
  return backups.find(({ requested_by: by, created_at: at }) => by === actor && at >= since);
}

function isJudged({ proof }: Backup, { what }: BackupJobInput, { begun_at: since }: BackupMemory): boolean {
  return proof !== null && (what === 'backup' || proof.at >= since);
}

/** Names of archives know no fractions of a second. */
function floored(iso: string): string {
  return new Date(Math.floor(Date.parse(iso) / SECOND_MS) * SECOND_MS).toISOString();
}

async function tell(work: Work, memory: BackupMemory, state: BackupState, run: BackupRun): Promise<Step> {
  const { job } = work;
  const line = `${run.phase}.`;
  const log = isWaiting(lastLogText(job)) ? ['The backup service answers again.'] : [];
  if (job.phase !== run.phase) log.push(line);
  await change(work, {
    memory: { ...memory, name: memory.name ?? run.name, idle_since: null },
    ...progressOf(work, run, state.proof === 'off' || work.input.what === 'proof'),
    log,
  });
  return 'running';
}

/** With a proof to come, the backup is the first half of the work. */
function progressOf({ deps, input }: Work, run: BackupRun, isAll: boolean): OpsJobChange {
  const share = (run.percent ?? 0) / 100;
  const half = input.what === 'backup' && run.kind === 'proof' ? 0.5 : 0;
  const { seconds_left: left, phase, percent } = run;
  const eta = left === null ? null : new Date(deps.now().getTime() + left * SECOND_MS).toISOString();
  const progress = Math.floor((isAll && half === 0 ? share : half + share / 2) * 1000) / 1000;
  return { progress, phase, phasePercent: percent, eta };
}

/** The service may be between two runs, or about to write its record. */
async function idle(work: Work, memory: BackupMemory, ended: () => Promise<Step>): Promise<Step> {
  const now = work.deps.now();
  const since = memory.idle_since ?? now.toISOString();
  const ms = now.getTime() - Date.parse(since);
  if (ms < 0 || ms >= IDLE_MS) return ended();
  await change(work, { memory: { ...memory, idle_since: since } });
  return 'running';
}

/** The backup is there; its proof decides. */
async function endProven(work: Work, backup: Backup): Promise<Step> {
  const { what } = work.input;
  const result = resultOf(what, backup);
  const { proof, name } = backup;
  const text = `${name}: ${formatBytes(backup.bytes)} in ${formatSeconds(backup.seconds)}.`;
  if (proof === null) return endAs(work, 'succeeded', { result }, `${text} It is not proven.`);
  const level = proof.level === null ? 'no level' : `the level "${LEVEL_WORDS[proof.level].title}"`;
  if (isProven(backup)) return endAs(work, 'succeeded', { result }, `${text} The proof reached ${level}.`);
  const why = proof.error ?? 'The service gave no reason.';
  return endAs(work, 'failed', { result, error: `${name} is kept, but its proof reached only ${level}: ${why}` });
}

/** Logs each reason once; the lines since the last good answer show how long it has waited. */
async function wait(work: Work, what: keyof typeof GIVEN_UP_MS, why: string): Promise<Step> {
  const { job, deps } = work;
  const since = job.log[job.log.findLastIndex((line) => !isWaiting(textOf(line))) + 1];
  const limitMs = GIVEN_UP_MS[what];
  if (since !== undefined && deps.now().getTime() - timeOf(since).getTime() > limitMs) {
    const hours = limitMs / HOUR_MS;
    return endAs(work, 'failed', {
      error: `Given up after ${hours === 1 ? 'an hour' : `${hours} hours`}. ${what}: ${why}`,
    });
  }
  if (!lastLogText(job).startsWith(what)) {
    await change(work, { log: [`${what}: ${why}`] });
    deps.log.warn('backup.job_waits', { job: job.id, reason: why });
  }
  return 'waits';
}

function isWaiting(text: string): boolean {
  return text.startsWith(UNAVAILABLE) || text.startsWith(BUSY);
}

async function endAs(work: Work, state: EndState, rest: OpsJobChange, text?: string): Promise<Step> {
  const { deps, job, input } = work;
  const { error = null, result = null } = rest;
  await deps.health.forget('backup');
  const isEnded = await change(work, {
    startedAt: job.startedAt ?? deps.now().toISOString(),
    ...rest,
    state,
    phase: null,
    phasePercent: null,
    finishedAt: deps.now().toISOString(),
    eta: null,
    ...(state === 'succeeded' ? { progress: 1 } : {}),
    log: [text, error].flatMap((each) => each ?? []),
  });
  if (!isEnded) return 'ended';
  const { detail, ...conclusion } = conclusionOf({ state, result, error });
  const subject = jobSubject(job, BACKUP_ACTIONS[input.what]);
  await deps.audit.conclude(input.intent, subject, { ...conclusion, detail: detail ?? {} });
  const fields = { job: job.id, what: input.what, state, ...detail };
  if (state === 'succeeded') deps.log.info('backup.job', fields);
  else deps.log.warn('backup.job', fields);
  return 'ended';
}

function change({ deps, job }: Work, { log = [], ...rest }: OpsJobChange): Promise<boolean> {
  const now = deps.now();
  return deps.opsJobs.change(job.id, { ...rest, log: log.map((text) => stated(now, text)) });
}
