// Crons of Quartz and of Spring by croner. Every text is foreign: what cannot be read has a fault and never fires, and nothing throws.

import { Cron } from 'croner';
import { readQuartz, withOpenDay } from '../domain/quartz.ts';
import { NEVER } from '../domain/retention.ts';
import { readSpringCron } from '../domain/spring-cron.ts';
import { messageOf } from '../domain/thrown.ts';
import type { CronDialect, Schedules } from '../ports/schedules.ts';
import { type CronerPattern, quartzPatterns, springPatterns } from './croner-patterns.ts';

const MOST_CHARACTERS = 500;
const MOST_TIMES = 100;

export const cronSchedules: Schedules = {
  fault(cron, dialect) {
    if (cron === NEVER) return undefined;
    if (cron.length > MOST_CHARACTERS) return `it is longer than ${MOST_CHARACTERS} characters`;
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
    if (cron.length > MOST_CHARACTERS) return [];
    try {
      const { patterns = [] } = read(cron, dialect);
      return times(patterns, timeZone, after, Math.min(count, MOST_TIMES));
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
