import { describe, expect, it } from 'vitest';
import { dailyAt, formatSchedule, weeklyAt } from '../../shared/retention/format-schedule.ts';

describe('a schedule in words', () => {
  it.each([
    ['-', 'quartz', 'no schedule'],
    ['0 0 3 * * ?', 'quartz', 'every day at 03:00'],
    ['0 30 14 * * *', 'spring', 'every day at 14:30'],
    ['0 0 3 ? * MON', 'quartz', 'every Monday at 03:00'],
    ['0 0 3 ? * 1', 'quartz', 'every Sunday at 03:00'],
    ['0 0 3 * * 1', 'spring', 'every Monday at 03:00'],
    ['0 0 3 * * 7', 'spring', 'every Sunday at 03:00'],
    ['0 0 3 * * 0', 'spring', 'every Sunday at 03:00'],
    ['0 0 3 1 * ?', 'quartz', undefined],
    ['0 0 3 ? * MON-FRI', 'quartz', undefined],
    ['0 0/5 * * * ?', 'quartz', undefined],
    ['30 0 3 * * ?', 'quartz', undefined],
    ['0 0 3 ? * 9', 'quartz', undefined],
    ['0 0 3 * * ? 2030', 'quartz', undefined],
    ['nonsense', 'quartz', undefined],
  ] as const)('%s of %s is %s', (cron, dialect, words) => {
    expect(formatSchedule(cron, dialect)).toBe(words);
  });
});

describe('a schedule that somebody chooses', () => {
  it('is every day, or one day of the week, at a time', () => {
    expect(dailyAt('03:05')).toBe('0 5 3 * * ?');
    expect(weeklyAt('SUN', '23:00')).toBe('0 0 23 ? * SUN');
  });

  it.each(['', '3', '24:00', '03:60', '03:00:00', '<b>', ' 3:00'])('is none at "%s"', (time) => {
    expect([dailyAt(time), weeklyAt('MON', time)]).toEqual([undefined, undefined]);
  });

  it('is none on a day that does not exist', () => {
    expect(weeklyAt('XXX', '03:00')).toBeUndefined();
  });
});
