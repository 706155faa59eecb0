// Crons of Quartz and of Spring by croner. Every text is foreign: what cannot be read has a fault
// and never fires, and nothing throws.

import { Cron } from 'croner';
import { messageOf } from '../app-error.ts';
import { readQuartz, withOpenDay } from './quartz.ts';
import { NEVER } from '../retention.ts';
import { readSpringCron } from './spring-cron.ts';

/**
 * Quartz and Spring as patterns that croner reads: plain lists for what it knows otherwise, and a
 * pattern of its own for each day that it takes alone (LW) or not at all (L-3).
 */
export interface CronerPattern {
  pattern: string;
  /** 1 = Sunday instead of 0. */
  alternativeWeekdays?: boolean;
  /** It fires so many days after the days of the pattern. */
  dayOffset?: number;
}

const DAY_OF_MONTH = 3;
const DAY_OF_WEEK = 5;

/** Of what readQuartz has rewritten. */
export function quartzPatterns(normal: string): CronerPattern[] {
  return daysApart(normal.replaceAll('?', '*').split(' ')).map((fields) => ({
    pattern: fields.join(' '),
    alternativeWeekdays: true,
  }));
}

/**
 * Of what readSpringCron has read. None when croner cannot tell: days before the last that must
 * also be the n-th weekday.
 */
export function springPatterns(expression: string): CronerPattern[] {
  const fields = expression
    .replaceAll('?', '*')
    .split(' ')
    .map((part, index) => plain(part, index));
  const patterns = daysApart(fields).map(beforeLast);
  return patterns.includes(undefined) ? [] : patterns.filter((each) => each !== undefined);
}

/** One for each day that cannot stand in a list, and one for the others. */
function daysApart(fields: readonly string[]): string[][] {
  const items = (fields[DAY_OF_MONTH] ?? '').split(',');
  const alone = items.filter((item) => item === 'LW' || item.startsWith('L-'));
  const together = items.filter((item) => !alone.includes(item));
  const days = together.length === 0 ? alone : [...alone, together.join(',')];
  return days.map((day) => fields.with(DAY_OF_MONTH, day));
}

/** `L-3` of a Monday is the last day of a month, on a Thursday, with an offset. */
function beforeLast(fields: readonly string[]): CronerPattern | undefined {
  const [, before] = /^L-(\d+)$/.exec(fields[DAY_OF_MONTH] ?? '') ?? [];
  if (before === undefined) return { pattern: fields.join(' ') };
  const weekdays = fields[DAY_OF_WEEK] ?? '';
  if (/[L#]/.test(weekdays)) return undefined;
  const shift = (day: string): string => (day === '*' ? day : String((Number(day) + Number(before)) % 7));
  const shifted = weekdays.split(',').map(shift).join(',');
  const pattern = fields.with(DAY_OF_MONTH, 'L').with(DAY_OF_WEEK, shifted).join(' ');
  return { pattern, dayOffset: -Number(before) };
}

interface Bounds {
  least: number;
  most: number;
}

const BOUNDS: readonly Bounds[] = [
  { least: 0, most: 59 },
  { least: 0, most: 59 },
  { least: 0, most: 23 },
  { least: 1, most: 31 },
  { least: 1, most: 12 },
  { least: 1, most: 7 },
];
const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

function plain(part: string, index: number): string {
  return part
    .split(',')
    .flatMap((item) => values(item, index))
    .join(',');
}

/** Numbers, written out; Sunday is 0. */
function values(item: string, index: number): string[] {
  const bounds = BOUNDS[index];
  if (item === '*' || bounds === undefined) return [item];
  const isWeekday = index === DAY_OF_WEEK;
  const special = isWeekday ? /^(\w+?)(L|#[1-5])$/.exec(item) : null;
  if (special !== null) return [`${numberOf(special[1] ?? '') % 7}${special[2]}`];
  if (index === DAY_OF_MONTH && /[LW]/.test(item)) return [item];
  const [range = '', step] = item.split('/');
  const [from = '', to] = range.split('-');
  const given = numberOf(from);
  const start = isWeekday && to !== undefined && given === bounds.most ? 0 : given;
  const first = range === '*' ? bounds.least : start;
  const last = range === '*' || (to === undefined && step !== undefined) ? bounds.most : numberOf(to ?? from);
  const all = new Set<number>();
  for (let value = first; value <= last; value += Number(step ?? 1)) all.add(isWeekday ? value % 7 : value);
  return [...all].toSorted((a, b) => a - b).map(String);
}

function numberOf(text: string): number {
  if (MONTHS.includes(text)) return MONTHS.indexOf(text) + 1;
  return WEEKDAYS.includes(text) ? WEEKDAYS.indexOf(text) : Number(text);
}

const MAX_CHARACTERS = 500;
const MAX_TIMES = 100;

export const cronSchedules: Schedules = {
  fault(cron, dialect) {
    if (cron === NEVER) return undefined;
    if (cron.length > MAX_CHARACTERS) return `it is longer than ${MAX_CHARACTERS} characters`;
    const { patterns, fault } = read(cron, dialect);
    if (fault !== undefined) return fault;
    try {
      return patterns.length === 0 || times(patterns, 'UTC', new Date(), 1).length > 0
        ? undefined
        : 'it never fires again';
    } catch (error) {
      return `it cannot be read: ${messageOf(error)}`;
    }
  },
  next(cron, dialect, timeZone, after, count) {
    if (cron.length > MAX_CHARACTERS) return [];
    try {
      const { patterns = [] } = read(cron, dialect);
      return times(patterns, timeZone, after, Math.min(count, MAX_TIMES));
    } catch {
      return [];
    }
  },
};

type Reading = { patterns: CronerPattern[]; fault?: never } | { patterns?: never; fault: string };

/** No patterns: it is right, and when it fires cannot be told. */
function read(cron: string, dialect: CronDialect): Reading {
  if (dialect === 'quartz') {
    const { pattern, fault } = readQuartz(withOpenDay(cron));
    return pattern === undefined ? { fault } : { patterns: quartzPatterns(pattern) };
  }
  const { expression, fault } = readSpringCron(cron);
  return expression === undefined ? { fault } : { patterns: springPatterns(expression) };
}

function times(patterns: readonly CronerPattern[], timezone: string, after: Date, count: number): Date[] {
  const all = patterns.flatMap(({ pattern, ...options }) =>
    new Cron(pattern, { ...options, timezone, domAndDow: true, paused: true }).nextRuns(count, after),
  );
  const each = new Set(all.map((time) => time.getTime()));
  return [...each]
    .toSorted((a, b) => a - b)
    .slice(0, count)
    .map((time) => new Date(time));
}

/**
 * Crons as the cores read them. Quartz: the variable RETENTION_CRON and the embedded core. Spring:
 * a TAK Server release.
 */
export type CronDialect = 'quartz' | 'spring';

export interface Schedules {
  /**
   * What is wrong with it, in words that follow "because"; undefined when nothing is. `-` is right.
   */
  fault(cron: string, dialect: CronDialect): string | undefined;
  /**
   * The next times after that moment, at most `count`; none for `-` and for what cannot be read.
   */
  next(cron: string, dialect: CronDialect, timeZone: string, after: Date, count: number): Date[];
}
