// Formats retention schedules in words, and builds the simple ones: every day, or one day of the
// week.

import { NEVER, plainCron } from '@holdfast/kit/retention';

export const WEEKDAYS = ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'SUN'] as const;
export type Weekday = (typeof WEEKDAYS)[number];

export const WEEKDAY_NAMES: Readonly<Record<Weekday, string>> = {
  MON: 'Monday',
  TUE: 'Tuesday',
  WED: 'Wednesday',
  THU: 'Thursday',
  FRI: 'Friday',
  SAT: 'Saturday',
  SUN: 'Sunday',
};

const SUNDAY_FIRST: readonly Weekday[] = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

/** `every day at 03:00`, `every Monday at 03:00`, `no schedule`; undefined for anything else. */
export function formatSchedule(cron: string, dialect: 'quartz' | 'spring'): string | undefined {
  if (cron.trim() === NEVER) return 'no schedule';
  const match = /^0 (\d{1,2}) (\d{1,2}) (\S+) \* (\S+)( \*)?$/.exec(plainCron(cron));
  if (match === null) return undefined;
  const [, minute = '', hour = '', day, weekday = ''] = match;
  if ((day !== '*' && day !== '?') || Number(hour) > 23 || Number(minute) > 59) return undefined;
  const time = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`;
  if (weekday === '?' || weekday === '*') return `every day at ${time}`;
  const name = weekdayOf(weekday, dialect);
  return name === undefined ? undefined : `every ${WEEKDAY_NAMES[name]} at ${time}`;
}

/** Sunday is 1 in Quartz, 0 and 7 in Spring. */
function weekdayOf(text: string, dialect: 'quartz' | 'spring'): Weekday | undefined {
  if (/^\d$/.test(text)) return SUNDAY_FIRST[dialect === 'quartz' ? Number(text) - 1 : Number(text) % 7];
  return WEEKDAYS.find((each) => each === text);
}

/** Minutes and hours of `03:05`; undefined if it is not a time. */
function clockTime(time: string): [minute: number, hour: number] | undefined {
  const match = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(time);
  return match === null ? undefined : [Number(match[2]), Number(match[1])];
}

/** In Quartz; undefined if `time` is not a time of day. */
export function dailyAt(time: string): string | undefined {
  const at = clockTime(time);
  return at && `0 ${at[0]} ${at[1]} * * ?`;
}

/** In Quartz; undefined if `time` is not a time of day or `day` not a weekday. */
export function weeklyAt(day: string, time: string): string | undefined {
  const at = clockTime(time);
  const known = WEEKDAYS.find((each) => each === day);
  return at && known && `0 ${at[0]} ${at[1]} ? * ${known}`;
}
