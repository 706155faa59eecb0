// Compares the core's retention values with the variables and its files, and finds values that look
// like the other unit: days read as seconds delete nearly everything.

import { messageOf } from '@holdfast/kit/app-error';
import type { CronDialect, Schedules } from '@holdfast/kit/cron';
import {
  DAYS_VARIABLES,
  daysOf,
  inUnit,
  maxDays,
  NEVER,
  OWNED_TYPES,
  plainCron,
  RETAINED,
  type Retained,
  type RetentionUnit,
  toDaysView,
} from '@holdfast/kit/retention';
import { DAY_SECONDS } from '@holdfast/kit/time';
import type { CoreRetentionPolicy } from '../../core/port.ts';
import { dialectOfUnit, type RetentionInForce, retentionInForce } from '../../retention/in-force.ts';
import type { RetentionFileContents, WantedRetention } from '../../retention/port.ts';
import type { Finding } from '../evaluate.ts';
import type { Monitored } from '../monitored.ts';
import type { SeenRuns } from './retention-runs.ts';

export interface Mismatch {
  /** The type, or `schedule`. */
  name: string;
  /** What it differs from: a variable, the file of the core, or a plausible value in its unit. */
  kind: 'variable' | 'file' | 'unit';
  /** The value of the core, in its unit. */
  core: string;
  /** The expected value, in the same format. */
  wanted: string;
  says: string;
}

export interface InForceAtCore {
  raw: CoreRetentionPolicy;
  schedule: string;
}

/** Mismatches with the values that variables set. */
export function againstVariables(
  { raw, schedule }: InForceAtCore,
  wanted: WantedRetention,
  unit: RetentionUnit,
  isSameSchedule: (cron: string, quartz: string) => boolean,
): Mismatch[] {
  const found: Mismatch[] = [];
  for (const type of OWNED_TYPES) {
    const days = wanted[type];
    if (days === undefined || raw[type] === inUnit(days, unit)) continue;
    const [core, requested] = [format(raw[type], unit), format(inUnit(days, unit), unit)];
    const says = `the core keeps ${type} ${core}, but ${DAYS_VARIABLES[type]} says ${requested}`;
    found.push({ name: type, kind: 'variable', core, wanted: requested, says });
  }
  const { cron } = wanted;
  if (cron !== undefined && !isSameSchedule(schedule, cron)) {
    const says = `the core's schedule is ${shown(schedule)}, but RETENTION_CRON says ${shown(cron)}`;
    found.push({ name: 'schedule', kind: 'variable', core: schedule, wanted: cron, says });
  }
  return found;
}

/**
 * Mismatches with the files: one changed after the start of the core applies only from its next
 * start.
 */
export function againstFiles(
  { raw, schedule }: InForceAtCore,
  files: RetentionFileContents,
  unit: RetentionUnit,
): Mismatch[] {
  const because = 'the core reads its files only when it starts';
  const found = RETAINED.filter((type) => raw[type] !== files.policy[type]).map((type): Mismatch => {
    const [core, wanted] = [format(raw[type], unit), format(files.policy[type], unit)];
    const says = `the core keeps ${type} ${core}, but its file says ${wanted}: ${because}`;
    return { name: type, kind: 'file', core, wanted, says };
  });
  if (plainCron(schedule) !== plainCron(files.schedule)) {
    const says = `the core's schedule is ${shown(schedule)}, but its file says ${shown(files.schedule)}: ${because}`;
    found.push({ name: 'schedule', kind: 'file', core: schedule, wanted: files.schedule, says });
  }
  return found;
}

/** Values that are implausible in that unit. */
export function againstUnit(raw: CoreRetentionPolicy, unit: RetentionUnit, isRelease: boolean): Mismatch[] {
  return RETAINED.flatMap((type) => {
    const value = raw[type];
    return value === null ? [] : implausible(type, value, unit, isRelease);
  });
}

function implausible(name: Retained, value: number, unit: RetentionUnit, isRelease: boolean): Mismatch[] {
  const core = format(value, unit);
  if (unit === 'days' && isRelease) {
    const says = `CORE_RETENTION_UNIT is days, but this core is a TAK Server release and keeps ${name} ${format(value, 'seconds')}`;
    return [{ name, kind: 'unit', core: format(value, 'seconds'), wanted: core, says }];
  }
  if (unit === 'seconds' && value < DAY_SECONDS) {
    const says = `${name} is ${value} seconds, which looks like days: rows older than ${value} seconds would be deleted`;
    return [{ name, kind: 'unit', core, wanted: format(inUnit(value, unit), unit), says }];
  }
  if (unit === 'days' && value > maxDays(unit)) {
    const says = `${name} is ${value} days, which looks like seconds (${secondsInDays(value)} days)`;
    return [{ name, kind: 'unit', core, wanted: format(secondsInDays(value), unit), says }];
  }
  return [];
}

const COMPARED_TIMES = 20;

/** Compares the core's cron with our Quartz expression by the times at which they fire. */
export function sameSchedule(
  schedules: Schedules,
  dialect: CronDialect,
  timeZone: string,
  now: Date,
): (cron: string, quartz: string) => boolean {
  const times = (cron: string, of: CronDialect): string =>
    schedules
      .next(cron, of, timeZone, now, COMPARED_TIMES)
      .map((at) => at.getTime())
      .join(' ');
  return (cron, quartz) => {
    if (plainCron(cron) === NEVER || plainCron(quartz) === NEVER) return plainCron(cron) === plainCron(quartz);
    const [ofCore, ofOurs] = [times(cron, dialect), times(quartz, 'quartz')];
    // Some valid expressions have no computable times; they are not judged.
    const isUnknown = ofCore === '' && schedules.fault(cron, dialect) === undefined;
    return isUnknown || ofCore === ofOurs;
  };
}

/** Drops mismatches with a file for values that are wrong already. */
export function withoutEchoes(mismatches: readonly Mismatch[]): Mismatch[] {
  const wrong = new Set(mismatches.filter(({ kind }) => kind !== 'file').map(({ name }) => name));
  return mismatches.filter(({ kind, name }) => kind !== 'file' || !wrong.has(name));
}

export function judgeMismatches(mismatches: readonly { says: string }[]): Finding[] {
  return mismatches.map(({ says }) => ({ kind: 'fact', status: 'critical', says }));
}

function format(value: number | null, unit: RetentionUnit): string {
  if (value === null) return 'forever';
  if (unit === 'days') return `${value} days`;
  return `${value} seconds (${secondsInDays(value)} days)`;
}

function secondsInDays(seconds: number): number | null {
  return toDaysView(daysOf(seconds, 'seconds'));
}

function shown(cron: string): string {
  return plainCron(cron) === NEVER ? 'never (-)' : cron;
}

export type Files = { contents: RetentionFileContents; problem: null } | { contents: undefined; problem: string };

export async function readFiles(files: Monitored['retentionFiles']): Promise<Files> {
  return files.read().then(
    (contents): Files => ({ contents, problem: null }),
    (error: unknown): Files => ({ contents: undefined, problem: messageOf(error).replace(/\.$/, '') }),
  );
}

export interface Seen {
  unit: RetentionUnit;
  inForce: RetentionInForce;
  files: Files;
}

/**
 * Reads mismatches with files twice: a change reaches memory and file at slightly different times.
 */
export async function mismatchesOf(
  monitored: Monitored,
  seen: Seen & { runs: SeenRuns },
  now: Date,
): Promise<Mismatch[]> {
  const first = mismatchesIn(monitored, seen, now);
  if (!first.some(({ kind }) => kind === 'file')) return withoutEchoes(first);
  const [inForce, files] = await Promise.all([
    retentionInForce(monitored, seen.unit),
    readFiles(monitored.retentionFiles),
  ]);
  const second = new Set(mismatchesIn(monitored, { ...seen, inForce, files }, now).map(({ says }) => says));
  return withoutEchoes(first.filter(({ kind, says }) => kind !== 'file' || second.has(says)));
}

export function mismatchesIn(
  { wanted, schedules, timeZone }: Monitored,
  { unit, inForce, files, runs }: Seen & { runs: SeenRuns },
  now: Date,
): Mismatch[] {
  const unlikely = againstUnit(inForce.raw, unit, runs.isRelease);
  if (inForce.from === 'files') return unlikely;
  const isSame = sameSchedule(schedules, dialectOfUnit(unit), timeZone, now);
  return [
    ...againstVariables(inForce, wanted.retention, unit, isSame),
    ...unlikely,
    ...(files.contents === undefined ? [] : againstFiles(inForce, files.contents, unit)),
  ];
}
