// Runs a requested or scheduled backup in steps: asks the service to begin, follows it through the
// proof, and ends the job with the outcome. Steps never wait and can be repeated: the next one
// continues wherever the last one was interrupted.

import { AppError } from '@holdfast/kit/app-error';
import { formatBytes, formatSeconds } from '@holdfast/kit/format';
import { DAY_MS, HOUR_MS, SECOND_MS } from '@holdfast/kit/time';
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
import { endUnreadable, lastLogText, openJob } from '../jobs/ordered-jobs.ts';
import type { OpsJob, OpsJobChange } from '../jobs/port.ts';
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

export interface CarryOnDeps extends FollowDeps {
  backups: Pick<Backups, 'state' | 'start' | 'prove'>;
}

interface Work extends Followed {
  deps: CarryOnDeps;
  input: BackupJobInput;
  memory: BackupMemory | undefined;
}

const UNAVAILABLE = 'The backup service is unavailable';
const BUSY = 'The service is busy with another run';
const KIND = { name: 'backup', waits: { [UNAVAILABLE]: HOUR_MS, [BUSY]: DAY_MS }, conclusionOf };
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
  const { input, memory } = read;
  const work = { deps, job, kind: KIND, action: BACKUP_ACTIONS[input.what], intent: input.intent, input, memory };
  let state: BackupState;
  try {
    state = await deps.backups.state();
  } catch (error) {
    if (error instanceof AppError) return waitFor(work, UNAVAILABLE, error.message);
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
  if (running !== null) return waitFor(work, BUSY, `${running.phase}.`);
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
  await changeJob(work, {
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
  if (error.code === 'unavailable') return waitFor(work, UNAVAILABLE, error.message);
  if (error.code === 'conflict') return waitFor(work, BUSY, error.message);
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
  const log = isWaiting(KIND, lastLogText(job)) ? ['The backup service answers again.'] : [];
  if (job.phase !== run.phase) log.push(line);
  await changeJob(work, {
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
  await changeJob(work, { memory: { ...memory, idle_since: since } });
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

function endAs(work: Work, state: EndState, rest: OpsJobChange, text?: string): Promise<Step> {
  const { deps, job, input } = work;
  const startedAt = job.startedAt ?? deps.now().toISOString();
  const ending = { fields: { what: input.what }, ...(text === undefined ? {} : { text }) };
  return endFollowed(work, state, { startedAt, ...rest, phase: null, phasePercent: null }, ending);
}
