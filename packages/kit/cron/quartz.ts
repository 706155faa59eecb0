// Quartz schedules: seconds first, `?` in exactly one of the two day fields, 1 = Sunday, an
// optional year. Says what is wrong with one, and rewrites what common cron readers do not know
// (ranges that wrap around, L as a weekday).

interface Field {
  name: string;
  least: number;
  most: number;
  words: readonly string[];
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
const FIELDS: readonly Field[] = [
  { name: 'second', least: 0, most: 59, words: [] },
  { name: 'minute', least: 0, most: 59, words: [] },
  { name: 'hour', least: 0, most: 23, words: [] },
  { name: 'day-of-month', least: 1, most: 31, words: [] },
  { name: 'month', least: 1, most: 12, words: MONTHS },
  { name: 'day-of-week', least: 1, most: 7, words: WEEKDAYS },
  { name: 'year', least: 1970, most: 2099, words: [] },
];
const DAY_OF_MONTH = 3;
const DAY_OF_WEEK = 5;

export type QuartzReading = { pattern: string; fault?: never } | { pattern?: never; fault: string };

/** The schedule with numbers for names and lists for wrapped ranges, or what is wrong with it. */
export function readQuartz(expression: string): QuartzReading {
  const parts = expression.trim().toUpperCase().split(/\s+/);
  if (parts.length !== 6 && parts.length !== 7)
    return { fault: `it has ${parts.length} fields instead of six or seven` };
  const questions = parts.flatMap((part, index) => (part === '?' ? [index] : []));
  if (questions.length !== 1 || (questions[0] !== DAY_OF_MONTH && questions[0] !== DAY_OF_WEEK)) {
    return { fault: 'exactly one of day-of-month and day-of-week must be ?, and no other field' };
  }
  const rewritten: string[] = [];
  for (const [index, part] of parts.entries()) {
    const field = FIELDS[index];
    const list = field === undefined ? undefined : part.split(',').map((item) => rewriteItem(item, field));
    if (list === undefined || list.includes(undefined))
      return { fault: `"${part}" is no ${field?.name} of Quartz that Holdfast can run` };
    rewritten.push(list.join(','));
  }
  return { pattern: rewritten.join(' ') };
}

/**
 * The same with `?` as its day-of-week where both day fields are `*`, as a core takes it; anything
 * else comes back as it is.
 */
export function withOpenDay(expression: string): string {
  const parts = expression.trim().split(/\s+/);
  const isOpen = parts.length >= DAY_OF_WEEK && parts[DAY_OF_MONTH] === '*' && parts[DAY_OF_WEEK] === '*';
  return isOpen ? parts.with(DAY_OF_WEEK, '?').join(' ') : expression;
}

function rewriteItem(item: string, field: Field): string | undefined {
  if (item === '?') return item;
  if (field.name === 'day-of-month' && /^(L|LW|([1-9]|[12]\d|3[01])W)$/.test(item)) return item;
  if (field.name === 'day-of-week') {
    if (item === 'L') return '7';
    const special = /^(\w+?)(L|#[1-5])$/.exec(item);
    const day = special === null ? undefined : numberOf(special[1] ?? '', field);
    if (day !== undefined) return `${day}${special?.[2]}`;
  }
  return rewriteRange(item, field);
}

function rewriteRange(item: string, field: Field): string | undefined {
  const match = /^(\*|\w+)(?:-(\w+))?(?:\/(\d{1,4}))?$/.exec(item);
  if (match === null) return undefined;
  const [, from = '', to, step] = match;
  if (step !== undefined && Number(step) === 0) return undefined;
  if (from === '*') return to === undefined ? item : undefined;
  const first = numberOf(from, field);
  const last = to === undefined ? undefined : numberOf(to, field);
  if (first === undefined || (to !== undefined && last === undefined)) return undefined;
  if (last === undefined) return step === undefined ? String(first) : `${first}-${field.most}/${step}`;
  if (first <= last) return `${first}-${last}${step === undefined ? '' : `/${step}`}`;
  return field.name === 'year' ? undefined : wrapped(first, last, Number(step ?? 1), field);
}

function wrapped(first: number, last: number, step: number, { least, most }: Field): string {
  const size = most - least + 1;
  const values: number[] = [];
  for (let value = first; value <= last + size; value += step) values.push(value > most ? value - size : value);
  return values.toSorted((a, b) => a - b).join(',');
}

function numberOf(text: string, { least, most, words }: Field): number | undefined {
  const word = words.indexOf(text);
  if (word >= 0) return word + 1;
  if (!/^\d{1,4}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= least && value <= most ? value : undefined;
}

/**
 * A schedule of Quartz as a TAK Server release reads it: Spring's six fields, where weekdays count
 * from 0 = Sunday and there is no year.
 */
export type SpringConversion = { expression: string; fault?: never } | { expression?: never; fault: string };

const QUARTZ_TO_SPRING_DAY_OF_WEEK = 5;
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
  const weekdays = (fields[QUARTZ_TO_SPRING_DAY_OF_WEEK] ?? '').split(',').map(springWeekdays).join(',');
  return { expression: [...fields.slice(0, QUARTZ_TO_SPRING_DAY_OF_WEEK), weekdays].join(' ') };
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
