// Defines the data of a job of kind `backup`: its input, what it remembers while it follows the
// service, its result, and the audit intent that it answers.

import { z } from 'zod';
import type { Conclusion } from '../audit/port.ts';
import { finishFromJob } from '../jobs/ordered-jobs.ts';
import type { OpsJob, OpsJobs } from '../jobs/port.ts';
import { type Backup, PROOF_LEVELS } from './port.ts';
import type { BackupSchedule } from './rules.ts';

export const BACKUP_JOB = 'backup';
export const BACKUP_ACTIONS = { backup: 'backup.run', proof: 'backup.prove' } as const;
/** Requests the backups of the schedule. */
export const BY_SCHEDULE = 'schedule';

const time = z.iso.datetime();

const scheduleSchema = z.object({ cron: z.string(), through: time });

const inputSchema = z.object({
  what: z.enum(['backup', 'proof']),
  /** The archive to prove; null for a backup. */
  name: z.string().nullable(),
  /** Null: as BACKUP_HISTORY says. */
  history: z.boolean().nullable(),
  /** Taken from job to job, so that the newest one knows which times were handled. */
  schedule: scheduleSchema.nullable(),
  /** `seq` of the intent in the audit log. */
  intent: z.int(),
});
export type BackupJobInput = z.infer<typeof inputSchema>;

const memorySchema = z.object({
  /** When the service began, by its own words. */
  begun_at: time,
  /** Null until the backup has a name. */
  name: z.string().nullable(),
  /** Since when the service is idle, although the outcome isn't known. */
  idle_since: time.nullable(),
});
export type BackupMemory = z.infer<typeof memorySchema>;

const resultSchema = z.object({
  what: z.enum(['backup', 'proof']),
  name: z.string(),
  bytes: z.number(),
  rows: z.number(),
  /** Of the backup. */
  seconds: z.number(),
  level: z.enum(PROOF_LEVELS).nullable(),
});
export type BackupResult = z.infer<typeof resultSchema>;

/** Undefined if the row holds something else. */
export function readBackupJob({
  input,
  memory,
}: OpsJob): { input: BackupJobInput; memory: BackupMemory | undefined } | undefined {
  const order = inputSchema.safeParse(input);
  const kept = memorySchema.nullable().safeParse(memory ?? null);
  return order.success && kept.success ? { input: order.data, memory: kept.data ?? undefined } : undefined;
}

export function resultOf(what: BackupJobInput['what'], backup: Backup): BackupResult {
  const { name, bytes, rows, seconds, proof } = backup;
  return { what, name, bytes, rows, seconds, level: proof?.level ?? null };
}

/** Undefined if the job has no valid result. */
export function readResult({ result }: Pick<OpsJob, 'result'>): BackupResult | undefined {
  return resultSchema.safeParse(result).data;
}

/** The audit conclusion of a finished job. */
export function conclusionOf(job: Pick<OpsJob, 'state' | 'result' | 'error'>): Conclusion {
  const { state, error } = job;
  const { name, bytes, level } = readResult(job) ?? {};
  const made = name === undefined ? {} : { name, bytes: bytes ?? 0, level: level ?? null };
  const detail = { state, ...made, ...(error === null ? {} : { error }) };
  if (state === 'succeeded') return { result: 'ok', detail };
  return { result: state === 'interrupted' ? 'unknown' : 'failed', detail };
}

/** The job continues by itself; if its process died after the end, the job row has the result. */
export const INTERRUPTED_BACKUP = { actions: Object.values(BACKUP_ACTIONS), finish: finishFromJob(conclusionOf) };

/** Of the last job: which times of the schedule were handled. */
export async function lastSchedule(opsJobs: Pick<OpsJobs, 'list'>): Promise<BackupSchedule | null> {
  const [newest] = (await opsJobs.list({ kind: BACKUP_JOB }, 0, 1)).results;
  return newest === undefined ? null : (readBackupJob(newest)?.input.schedule ?? null);
}

/** As the first run of the job `back-up` records the time from which the schedule counts. */
export function scheduleIn(summary: unknown): BackupSchedule | undefined {
  return z.object({ schedule: scheduleSchema }).safeParse(summary).data?.schedule;
}
