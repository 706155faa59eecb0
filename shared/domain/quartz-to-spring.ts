// A schedule of Quartz as a TAK Server release reads it: Spring's six fields, where weekdays count from 0 = Sunday and there is no
// year.

import { readQuartz, withOpenDay } from './quartz.ts';

export type SpringConversion = { expression: string; fault?: never } | { expression?: never; fault: string };

const DAY_OF_WEEK = 5;
const YEAR = 6;
const SATURDAY = 7;

/** It fires at the same times; or why there is none that would. */
export function springOf(quartz: string): SpringConversion {
  const { pattern, fault } = readQuartz(withOpenDay(quartz));
  if (pattern === undefined) return { fault };
  const fields = pattern.split(' ');
  const year = fields[YEAR] ?? '*';
  if (year !== '*')
    return { fault: `it is for the year ${year}, and the cron of a TAK Server release (Spring) has no year` };
  const weekdays = (fields[DAY_OF_WEEK] ?? '').split(',').map(springWeekdays).join(',');
  return { expression: [...fields.slice(0, DAY_OF_WEEK), weekdays].join(' ') };
}

/** Steps are written out: Spring counts those of `*` from Monday. */
function springWeekdays(item: string): string {
  if (item === '?' || item === '*') return item;
  const special = /^([1-7])(L|#[1-5])$/.exec(item);
  if (special !== null) return `${Number(special[1]) - 1}${special[2]}`;
  const [range = '', step] = item.split('/');
  const [first, last] = range === '*' ? [1, SATURDAY] : range.split('-').map(Number);
  if (first === undefined || last === undefined) return String(Number(range) - 1);
  if (step === undefined) return `${first - 1}-${last - 1}`;
  const days: number[] = [];
  for (let day = first; day <= last; day += Number(step)) days.push(day - 1);
  return days.join(',');
}
