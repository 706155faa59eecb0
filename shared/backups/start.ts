// Starts backups and proofs as jobs, marks backups as permanent, and hands out archives. All of it
// is audited.

import { AppError } from '@holdfast/kit/app-error';
import { audited } from '../audit/audited.ts';
import type { Actor, Audit } from '../audit/port.ts';
import { addJob, openJob } from '../jobs/ordered-jobs.ts';
import type { OpsJob, OpsJobs } from '../jobs/port.ts';
import { noBackup } from './http.ts';
import { BACKUP_ACTIONS, BACKUP_JOB, type BackupJobInput, lastSchedule } from './jobs.ts';
import type { Backup, BackupRun, Backups, BackupState } from './port.ts';

export interface StartBackupDeps {
  backups: Backups;
  opsJobs: Pick<OpsJobs, 'open' | 'add' | 'list'>;
  audit: Pick<Audit, 'intend' | 'conclude'>;
  settings: { BACKUP_TARGET?: string | undefined };
  now: () => Date;
}

interface Context {
  deps: StartBackupDeps;
  actor: Actor;
  /** Checked again after the service was asked, which may take a while. */
  mustStillBeIn?: () => Promise<void>;
}

/** `history`: undefined for BACKUP_HISTORY. */
export async function startBackup(context: Context, { history }: { history?: boolean | undefined }): Promise<OpsJob> {
  await idleState(context.deps);
  return added(context, { what: 'backup', name: null, history: history ?? null });
}

/** `not_found` for a name that isn't in the list. */
export async function startProof(context: Context, name: string): Promise<OpsJob> {
  const { backups } = await idleState(context.deps);
  if (!backups.some((each) => each.name === name)) throw noBackup(name);
  return added(context, { what: 'proof', name, history: null });
}

async function idleState({ backups, opsJobs, settings }: StartBackupDeps): Promise<BackupState> {
  if (settings.BACKUP_TARGET === undefined) throw backupsAreOff();
  const job = await openJob(opsJobs, BACKUP_JOB);
  if (job !== undefined)
    throw new AppError('conflict', `${inProgress(job)} Remedy: wait for its end; see GET /api/ops/jobs/${job.id}.`, {
      figures: { job: job.id },
    });
  const state = await backups.state();
  if (state.running !== null) throw new AppError('conflict', runSentence(state.running));
  return state;
}

export function backupsAreOff(): AppError {
  return new AppError(
    'not_supported',
    'No backups are made: BACKUP_TARGET is not set. Remedy: set BACKUP_TARGET and BACKUP_PASSPHRASE, then restart.',
  );
}

function inProgress({ state, input }: OpsJob): string {
  const { what } = input as Partial<BackupJobInput>;
  return `A ${what === 'proof' ? 'proof of a backup' : 'backup'} is already ${state}.`;
}

function runSentence({ kind, started_at: since }: BackupRun): string {
  return `A ${kind === 'proof' ? 'proof of a backup' : 'backup'} has been running since ${since}. Remedy: wait for its end; see GET /api/backups.`;
}

async function added(
  { deps, actor, mustStillBeIn }: Context,
  order: Pick<BackupJobInput, 'what' | 'name' | 'history'>,
): Promise<OpsJob> {
  const schedule = await lastSchedule(deps.opsJobs);
  await mustStillBeIn?.();
  const { what, name, history } = order;
  return addJob(deps, {
    kind: BACKUP_JOB,
    action: BACKUP_ACTIONS[what],
    actor,
    detail: { ...(name === null ? {} : { name }), ...(history === null ? {} : { history }) },
    inputOf: (intent): BackupJobInput => ({ ...order, schedule, intent }),
  });
}

interface ChangeContext {
  deps: Pick<StartBackupDeps, 'backups' | 'audit' | 'settings'>;
  actor: Actor;
}

/** The keep rules never delete a permanent backup. */
export async function markPermanent(
  { deps, actor }: ChangeContext,
  { name, permanent }: { name: string; permanent: boolean },
): Promise<Backup> {
  if (deps.settings.BACKUP_TARGET === undefined) throw backupsAreOff();
  const subject = { actor, action: 'backup.permanent', target: name, detail: { permanent } };
  return audited(deps, subject, () => deps.backups.setPermanent(name, permanent));
}

/** The archive as it is stored, encrypted. */
export async function downloadBackup(
  { deps, actor }: ChangeContext,
  name: string,
): Promise<{ body: ReadableStream<Uint8Array>; bytes: number }> {
  if (deps.settings.BACKUP_TARGET === undefined) throw backupsAreOff();
  return audited(deps, { actor, action: 'backup.download', target: name }, () => deps.backups.read(name));
}
