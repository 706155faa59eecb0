// Decides when a backup is due and how far one is proven, and names the levels.

import type { Schedules } from '@holdfast/kit/cron';
import { DAY_MS, MINUTE_MS } from '@holdfast/kit/time';
import { type Backup, PROOF_LEVELS, type BackupState, type ProofLevel } from './port.ts';

const NAME = /^\w[\w.-]{0,199}$/;

/** A file name that can't lead to another place. */
export function isArchiveName(name: string): boolean {
  return NAME.test(name);
}

export const LEVEL_WORDS: Record<ProofLevel, { title: string; means: string }> = {
  exists: { title: 'Exists', means: 'The archive is in its place with its size. Nothing was read.' },
  complete: { title: 'Complete', means: 'Every byte of the archive is as it was written.' },
  decrypts: { title: 'Decrypts', means: 'The key opens the archive, and every entry has its checksum.' },
  restores: { title: 'Restores', means: 'The data was loaded into a scratch database, with all its rows.' },
  serves: { title: 'Serves', means: 'A scratch server ran on the restored data: sign-in, CA and events work.' },
};

function rank(level: ProofLevel | null): number {
  return level === null ? -1 : PROOF_LEVELS.indexOf(level);
}

/** True if the proof reached the highest level that this stack can reach. */
export function isProven({ proof }: Pick<Backup, 'proof'>): boolean {
  return proof !== null && rank(proof.level) >= rank(proof.limit?.level ?? 'serves');
}

/** The newest proven backup of a list that begins with the newest. */
export function lastProven(backups: readonly Backup[]): Backup | undefined {
  return backups.find(isProven);
}

/** `Not proven`, `Serves`. */
export function formatLevel({ proof }: Pick<Backup, 'proof'>): string {
  return proof === null || proof.level === null ? 'Not proven' : LEVEL_WORDS[proof.level].title;
}

/** The state of the schedule: every time up to `through` was handled. */
export interface BackupSchedule {
  cron: string;
  /** ISO 8601. */
  through: string;
}

export interface DueDeps {
  schedules: Pick<Schedules, 'next'>;
  timeZone: string;
  startedAt: Date;
}

/** A time of the schedule is met this late by the slowest host, which ticks each minute. */
const TICK_MS = 1.5 * MINUTE_MS;

/**
 * The time that a backup is due for, or undefined. Times that were missed count once: the answer is
 * the last of them, near enough. `before`: the schedule of the last job.
 */
export function dueTime(
  { schedules, timeZone, startedAt }: DueDeps,
  cron: string,
  before: BackupSchedule,
  now: Date,
): Date | undefined {
  const [first] = schedules.next(cron, 'quartz', timeZone, anchorOf(cron, before, startedAt, now), 1);
  return first !== undefined && first.getTime() <= now.getTime() ? first : undefined;
}

/**
 * After a change of the schedule, times before this start are not made up. After the clock was set
 * back, only the time that passes now counts.
 */
function anchorOf(cron: string, before: BackupSchedule, startedAt: Date, now: Date): Date {
  const throughMs = Date.parse(before.through);
  if (throughMs > now.getTime()) return new Date(now.getTime() - TICK_MS);
  return new Date(before.cron === cron ? throughMs : Math.max(throughMs, startedAt.getTime()));
}

/** How old the last proven backup may be, by schedule and proof. */
export function allowedMs(
  { schedules, timeZone }: Pick<DueDeps, 'schedules' | 'timeZone'>,
  cron: string,
  proof: BackupState['proof'],
  now: Date,
): number {
  const [one, other] = schedules.next(cron, 'quartz', timeZone, now, 2);
  const stepMs = one === undefined || other === undefined ? 7 * DAY_MS : other.getTime() - one.getTime();
  const atLeastMs = proof === 'weekly' ? 7 * DAY_MS : 0;
  return Math.max(stepMs, atLeastMs);
}
