// Spring's cron: second minute hour day-of-month month day-of-week, 0 and 7 = Sunday, no year. Says
// what is wrong with one. Where both day fields are restricted, both must match.

interface Field {
  name: string;
  least: number;
  most: number;
  /** Names of values, the first of which stands for `first`. */
  words: readonly string[];
  first: number;
  isDay: boolean;
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'SUN'];
const PLAIN = { words: [], first: 0, isDay: false };
const FIELDS: readonly Field[] = [
  { name: 'second', least: 0, most: 59, ...PLAIN },
  { name: 'minute', least: 0, most: 59, ...PLAIN },
  { name: 'hour', least: 0, most: 23, ...PLAIN },
  { name: 'day-of-month', least: 1, most: 31, words: [], first: 0, isDay: true },
  { name: 'month', least: 1, most: 12, words: MONTHS, first: 1, isDay: false },
  { name: 'day-of-week', least: 0, most: 7, words: WEEKDAYS, first: 1, isDay: true },
];
const SUNDAY = 7;

const MACROS: Readonly<Record<string, string>> = {
  '@YEARLY': '0 0 0 1 1 *',
  '@ANNUALLY': '0 0 0 1 1 *',
  '@MONTHLY': '0 0 0 1 * *',
  '@WEEKLY': '0 0 0 * * 0',
  '@DAILY': '0 0 0 * * *',
  '@MIDNIGHT': '0 0 0 * * *',
  '@HOURLY': '0 0 * * * *',
};

/** `expression` has six fields in capitals, with one blank between them; a macro is written out. */
export type SpringCronReading = { expression: string; fault?: never } | { expression?: never; fault: string };

export function readSpringCron(text: string): SpringCronReading {
  const given = text.trim().toUpperCase();
  const macro = Object.hasOwn(MACROS, given) ? MACROS[given] : undefined;
  if (given.startsWith('@') && macro === undefined) return { fault: `"${text.trim()}" is no macro of Spring` };
  const parts = (macro ?? given).split(/\s+/);
  if (parts.length !== FIELDS.length) {
    const count = given === '' ? 0 : parts.length;
    const quartz = count === 7 ? ' (there is no year)' : '';
    return { fault: `it has ${count} fields instead of six${quartz}` };
  }
  for (const [index, field] of FIELDS.entries()) {
    const part = parts[index] ?? '';
    if (part === '?' && field.isDay) continue;
    if (!part.split(',').every((item) => isItem(item, field))) return { fault: `"${part}" is no ${field.name}` };
  }
  return { expression: parts.join(' ') };
}

function isItem(item: string, field: Field): boolean {
  if (field.name === 'day-of-month' && isSpecialDay(item, field)) return true;
  if (field.name === 'day-of-week' && isSpecialWeekday(item, field)) return true;
  const match = /^(\*|\w+)(?:-(\w+))?(?:\/(\d{1,4}))?$/.exec(item);
  if (match === null) return false;
  const [, from = '', to, step] = match;
  if (step !== undefined && Number(step) === 0) return false;
  if (from === '*') return to === undefined;
  const first = numberOf(from, field);
  if (first === undefined) return false;
  if (to === undefined) return true;
  const last = numberOf(to, field);
  const start = field.name === 'day-of-week' && first === SUNDAY ? 0 : first;
  return last !== undefined && start <= last;
}

/** The last day, days before it, the last weekday, the weekday nearest to a day. */
function isSpecialDay(item: string, field: Field): boolean {
  if (item === 'L' || item === 'LW') return true;
  const [, before, nearest] = /^(?:L-(\d{1,2})|(\d{1,2})W)$/.exec(item) ?? [];
  if (nearest !== undefined) return numberOf(nearest, field) !== undefined;
  return before !== undefined && Number(before) >= 1 && Number(before) < field.most;
}

/** The last, or the first to fifth, of that weekday in the month. */
function isSpecialWeekday(item: string, field: Field): boolean {
  const special = /^(\w+?)(?:L|#[1-5])$/.exec(item);
  return special !== null && numberOf(special[1] ?? '', field) !== undefined;
}

function numberOf(text: string, { least, most, words, first }: Field): number | undefined {
  const word = words.indexOf(text);
  if (word >= 0) return first + word;
  if (!/^\d{1,4}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= least && value <= most ? value : undefined;
}
