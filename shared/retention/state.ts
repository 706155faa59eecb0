// Reads retention in force: days with their source, the schedule with its next runs, and notes on
// problems.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { CronDialect, Schedules } from '@holdfast/kit/cron';
import { springOf } from '@holdfast/kit/quartz';
import {
  DAYS_VARIABLES,
  DEFAULT_SCHEDULE,
  isKeepingAll,
  KEEP_ALL,
  NEVER,
  OWNED_TYPES,
  plainCron,
  RETAINED,
  type Retained,
  type RetentionPolicy,
  type RetentionUnit,
  toDaysView,
  toPolicyView,
} from '@holdfast/kit/retention';
import type { CoreRetention, MissionArchiving } from '../core/port.ts';
import { dialectOfUnit, type RetentionInForce, retentionInForce } from './in-force.ts';
import type { RetentionFiles } from './port.ts';

export interface RetentionVariables {
  COT_RETENTION_DAYS: number | undefined;
  GEOCHAT_RETENTION_DAYS: number | undefined;
  /** Quartz. */
  RETENTION_CRON: string | undefined;
  CORE_RETENTION_UNIT: RetentionUnit | undefined;
}

export interface RetentionStateDeps {
  coreRetention: Pick<CoreRetention, 'policy' | 'schedule' | 'missionArchiving'>;
  retentionFiles: Pick<RetentionFiles, 'read'>;
  schedules: Schedules;
  timeZone: string;
  now: () => Date;
  settings: RetentionVariables;
}

export type PolicySource = 'env' | 'file' | 'none';
export type CronSource = 'env' | 'default' | 'file' | 'none';

export interface RetentionState {
  /** Days. */
  policy: RetentionPolicy;
  source: Record<Retained, PolicySource> & { cron: CronSource };
  /** The core's own cron, or `-`. */
  cron: string;
  /** Null with `unit`. */
  dialect: CronDialect | null;
  time_zone: string;
  /** Null if CORE_RETENTION_UNIT is not set; nothing is guessed. */
  unit: RetentionUnit | null;
  /** ISO 8601. */
  next_runs: string[];
  mission_archiving: ArchivingView | null;
  in_force: 'core' | 'files';
  /** Why the data is incomplete; null if it is not. */
  problem: string | null;
  notes: string[];
}

export interface ArchivingView {
  cron: string;
  time_to_archive_after_no_activity_days: number;
  remove_from_archive_after_days: number;
  archive_mission_by_no_content_activity: boolean;
  archive_mission_by_no_subscription_activity: boolean;
}

const NEXT_RUNS = 5;
export const PACKAGES_IGNORED =
  'A TAK Server release ignores missionpackages: it deletes mission packages by the days of files.';
const SET_UNIT =
  'Set CORE_RETENTION_UNIT=days for the embedded core, CORE_RETENTION_UNIT=seconds for a TAK Server release.';

export async function retentionState(deps: RetentionStateDeps): Promise<RetentionState> {
  const { settings, timeZone } = deps;
  const unit = settings.CORE_RETENTION_UNIT ?? null;
  // Without a unit only the raw values are read.
  const [inForce, archiving] = await Promise.all([retentionInForce(deps, unit ?? 'days'), archivingOf(deps)]);
  const { schedule, raw } = inForce;
  const policy = unit === null ? KEEP_ALL : inForce.policy;
  const isUnknown = unit === null && !isKeepingAll(raw);
  const problems = [inForce.coreProblem, isUnknown ? unknownUnit() : undefined].filter((each) => each !== undefined);
  return {
    policy: toPolicyView(policy),
    source: sourcesOf(inForce, settings),
    cron: schedule,
    dialect: unit === null ? null : dialectOfUnit(unit),
    time_zone: timeZone,
    unit,
    next_runs: unit === null ? [] : nextRuns(deps, schedule, unit, NEXT_RUNS).map((each) => each.toISOString()),
    mission_archiving: archiving.shown,
    in_force: inForce.from,
    problem: problems.join(' ') || null,
    notes: [
      ...(unit === null ? [] : notesOf(deps, inForce, unit)),
      ...(inForce.from === 'files' ? [] : archiving.notes),
    ],
  };
}

function unknownUnit(): string {
  return `Data is deleted by age, but the core's unit, days or seconds, is unknown. ${SET_UNIT}`;
}

/** The unit of the core; rejects if it is not set. */
export function knownUnit({ settings }: { settings: RetentionVariables }): RetentionUnit {
  if (settings.CORE_RETENTION_UNIT !== undefined) return settings.CORE_RETENTION_UNIT;
  throw new AppError('conflict', `The core's unit, days or seconds, is unknown. ${SET_UNIT}`);
}

export function nextRuns(
  { schedules, timeZone, now }: Pick<RetentionStateDeps, 'timeZone' | 'now'> & { schedules: Pick<Schedules, 'next'> },
  schedule: string,
  unit: RetentionUnit,
  count: number,
): Date[] {
  return schedule === NEVER ? [] : schedules.next(schedule, dialectOfUnit(unit), timeZone, now(), count);
}

/** Converts to the dialect of the core; undefined if that is not possible. */
export function inDialect(quartz: string, unit: RetentionUnit): string | undefined {
  return quartz === NEVER || unit === 'days' ? quartz : springOf(quartz).expression;
}

async function archivingOf({
  coreRetention,
}: RetentionStateDeps): Promise<{ shown: ArchivingView | null; notes: string[] }> {
  try {
    return { shown: toArchivingView(await coreRetention.missionArchiving()), notes: [] };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { shown: null, notes: [`Couldn't read when missions are archived: ${because(error)}.`] };
  }
}

function toArchivingView(archiving: MissionArchiving): ArchivingView {
  return {
    cron: archiving.cron,
    time_to_archive_after_no_activity_days: archiving.timeToArchiveAfterNoActivityDays,
    remove_from_archive_after_days: archiving.removeFromArchiveAfterDays,
    archive_mission_by_no_content_activity: archiving.archiveMissionByNoContentActivity,
    archive_mission_by_no_subscription_activity: archiving.archiveMissionByNoSubscriptionActivity,
  };
}

function sourcesOf({ raw, schedule }: RetentionInForce, settings: RetentionVariables): RetentionState['source'] {
  const owned = (type: Retained): boolean =>
    OWNED_TYPES.some((each) => each === type && settings[DAYS_VARIABLES[each]] !== undefined);
  const sourceOf = (type: Retained): PolicySource => (owned(type) ? 'env' : raw[type] === null ? 'none' : 'file');
  const types = Object.fromEntries(RETAINED.map((type) => [type, sourceOf(type)])) as Record<Retained, PolicySource>;
  return { ...types, cron: cronSourceOf(schedule, settings) };
}

function cronSourceOf(schedule: string, { RETENTION_CRON: variable }: RetentionVariables): CronSource {
  if (variable !== undefined) return 'env';
  if (schedule === NEVER) return 'none';
  return schedule === DEFAULT_SCHEDULE ? 'default' : 'file';
}

function notesOf(deps: RetentionStateDeps, inForce: RetentionInForce, unit: RetentionUnit): string[] {
  const { policy, schedule } = inForce;
  const notes: string[] = [];
  if (schedule === NEVER && !isKeepingAll(policy))
    notes.push('Days are set, but no schedule, so nothing is deleted. Set cron to schedule runs.');
  if (schedule !== NEVER && isKeepingAll(policy))
    notes.push('A schedule is set, but no days, so its runs delete nothing.');
  const fault = schedule === NEVER ? undefined : deps.schedules.fault(schedule, dialectOfUnit(unit));
  if (fault !== undefined)
    notes.push(`Couldn't compute the next runs of the schedule "${schedule}", because ${fault}.`);
  if (unit === 'seconds' && policy.missionpackages !== null) notes.push(PACKAGES_IGNORED);
  return [...notes, ...differences(inForce, unit, deps.settings)];
}

/** Notes on values of the core that differ from the variables. */
function differences(
  { policy, schedule }: RetentionInForce,
  unit: RetentionUnit,
  settings: RetentionVariables,
): string[] {
  const notes: string[] = [];
  for (const type of OWNED_TYPES) {
    const wanted = settings[DAYS_VARIABLES[type]];
    if (wanted !== undefined && wanted !== policy[type])
      notes.push(
        `${DAYS_VARIABLES[type]} is ${wanted}, but ${toDaysView(policy[type])} is in force; it is set again within two minutes.`,
      );
  }
  const { RETENTION_CRON: cron } = settings;
  if (cron !== undefined && !isSameSchedule(inDialect(cron, unit), schedule))
    notes.push(`RETENTION_CRON is "${cron}", but "${schedule}" is in force; it is set again within two minutes.`);
  return notes;
}

function isSameSchedule(a: string | undefined, b: string): boolean {
  return a !== undefined && plainCron(a) === plainCron(b);
}

/** The message of an error without its final period. */
export function because(error: unknown): string {
  return messageOf(error).replace(/\.$/, '');
}
