// Makes backups at the times of BACKUP_CRON, and runs one step of the backup or proof that is under
// way. A time that was missed while the machine was down is made up once.

import { carryOnBackup } from '../shared/backups/carry-on.ts';
import type { Step } from '../shared/jobs/followed-job.ts';
import {
  BACKUP_ACTIONS,
  BACKUP_JOB,
  type BackupJobInput,
  BY_SCHEDULE,
  lastSchedule,
  scheduleIn,
} from '../shared/backups/jobs.ts';
import { type BackupSchedule, dueTime } from '../shared/backups/rules.ts';
import { AppError } from '@holdfast/kit/app-error';
import { DAY_MS } from '@holdfast/kit/time';
import type { Deps } from '../shared/http/deps.ts';
import { addJob, openJob } from '../shared/jobs/ordered-jobs.ts';

const NAME = 'back-up';
const ACTOR = { username: BY_SCHEDULE, address: '', requestId: '' };
/** Records of runs are kept this long. */
const RECORDS_MS = 30 * DAY_MS;

export async function isWanted(deps: Deps): Promise<boolean> {
  if ((await openJob(deps.opsJobs, BACKUP_JOB)) !== undefined) return true;
  const { BACKUP_TARGET: target, BACKUP_CRON: cron } = deps.settings;
  if (target === undefined) return false;
  const before = await scheduleOf(deps);
  return before === undefined || dueTime(deps, cron, before, deps.now()) !== undefined;
}

interface Summary extends Record<string, unknown> {
  step: Step;
  /** From when the schedule counts, in the first run of all. */
  schedule?: BackupSchedule;
}

export async function run(deps: Deps, now: Date): Promise<Summary> {
  const { BACKUP_TARGET: target, BACKUP_CRON: cron } = deps.settings;
  if ((await openJob(deps.opsJobs, BACKUP_JOB)) === undefined && target !== undefined) {
    const before = await scheduleOf(deps);
    if (before === undefined) return { step: 'none', schedule: { cron, through: now.toISOString() } };
    if (dueTime(deps, cron, before, now) !== undefined) await add(deps, { cron, through: now.toISOString() });
  }
  return { step: await carryOnBackup(deps) };
}

/** Which times were handled; undefined while backups were never wanted before. */
async function scheduleOf({ opsJobs, jobRuns, now }: Deps): Promise<BackupSchedule | undefined> {
  const last = await lastSchedule(opsJobs);
  if (last !== null) return last;
  const since = new Date(now().getTime() - RECORDS_MS);
  for (const { summary } of await jobRuns.summaries(NAME, since)) {
    const schedule = scheduleIn(summary);
    if (schedule !== undefined) return schedule;
  }
  return undefined;
}

/** A person may have requested a backup in the same moment: then the next step adds this one. */
async function add(deps: Deps, schedule: BackupSchedule): Promise<void> {
  try {
    await addJob(deps, {
      kind: BACKUP_JOB,
      action: BACKUP_ACTIONS.backup,
      actor: ACTOR,
      detail: {},
      inputOf: (intent): BackupJobInput => ({ what: 'backup', name: null, history: null, schedule, intent }),
    });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'conflict') throw error;
  }
}
