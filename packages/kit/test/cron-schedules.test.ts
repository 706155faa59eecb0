// When a cron fires, as Quartz and as Spring read it.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CronDialect, cronSchedules } from '../cron/cron.ts';
import { DEFAULT_SCHEDULE } from '../retention.ts';
import { anyCharacter } from '../../../test/support/runs.ts';

const AFTER = new Date('2026-01-01T00:00:00Z');

const days = (cron: string, dialect: CronDialect, count = 4, timeZone = 'UTC', after = AFTER): string[] =>
  cronSchedules.next(cron, dialect, timeZone, after, count).map((time) => {
    const weekday = time.toLocaleDateString('en-US', { weekday: 'short', timeZone: 'UTC' });
    return `${weekday} ${time.toISOString().slice(5, 16)}`;
  });

describe('the next times', () => {
  it('of the default schedule are three in the morning, in both dialects', () => {
    const expected = ['Thu 01-01T03:00', 'Fri 01-02T03:00'];
    expect([days(DEFAULT_SCHEDULE, 'quartz', 2), days(DEFAULT_SCHEDULE, 'spring', 2)]).toEqual([expected, expected]);
  });

  it('of a weekday are a day apart in the two dialects: 1 is Sunday for Quartz and Monday for Spring', () => {
    expect(days('0 0 3 ? * 1', 'quartz', 1)).toEqual(['Sun 01-04T03:00']);
    expect(days('0 0 3 ? * 1', 'spring', 1)).toEqual(['Mon 01-05T03:00']);
    expect([days('0 0 3 * * 0', 'spring', 1), days('0 0 3 * * 7', 'spring', 1)]).toEqual([
      ['Sun 01-04T03:00'],
      ['Sun 01-04T03:00'],
    ]);
  });

  it.each([
    ['0 0 3 13 * FRI', ['Fri 02-13T03:00', 'Fri 03-13T03:00', 'Fri 11-13T03:00']],
    ['0 0 3 1-7 * MON', ['Mon 01-05T03:00', 'Mon 02-02T03:00', 'Mon 03-02T03:00']],
    ['0 0 3 * * 7-2', ['Sun 01-04T03:00', 'Mon 01-05T03:00', 'Tue 01-06T03:00']],
    ['0 0 3 * * */2', ['Fri 01-02T03:00', 'Sun 01-04T03:00', 'Mon 01-05T03:00']],
    ['0 0 3 L-3 * ?', ['Wed 01-28T03:00', 'Wed 02-25T03:00', 'Sat 03-28T03:00']],
    ['0 0 3 L-3 * WED', ['Wed 01-28T03:00', 'Wed 02-25T03:00', 'Wed 10-28T03:00']],
    ['0 0 3 LW,15W * ?', ['Thu 01-15T03:00', 'Fri 01-30T03:00', 'Mon 02-16T03:00']],
    ['0 0 3 ? * FRIL', ['Fri 01-30T03:00', 'Fri 02-27T03:00', 'Fri 03-27T03:00']],
    ['0 0 3 ? * SUN#1', ['Sun 01-04T03:00', 'Sun 02-01T03:00', 'Sun 03-01T03:00']],
    ['@weekly', ['Sun 01-04T00:00', 'Sun 01-11T00:00', 'Sun 01-18T00:00']],
    ['@daily', ['Fri 01-02T00:00', 'Sat 01-03T00:00', 'Sun 01-04T00:00']],
    ['0 5/90 3 * * *', ['Thu 01-01T03:05', 'Fri 01-02T03:05', 'Sat 01-03T03:05']],
  ])('of %s as Spring reads it: where both day fields are restricted, both must match', (cron, expected) =>
    expect(days(cron, 'spring', 3)).toEqual(expected),
  );

  it.each([
    ['0 0 3 * * *', ['Thu 01-01T03:00', 'Fri 01-02T03:00']],
    ['0 0 3 ? * 6L', ['Fri 01-30T03:00', 'Fri 02-27T03:00']],
    ['0 0 3 LW,1 * ?', ['Thu 01-01T03:00', 'Fri 01-30T03:00']],
    ['0 0 3 ? * SAT-SUN', ['Sat 01-03T03:00', 'Sun 01-04T03:00']],
  ])('of %s as Quartz reads it', (cron, expected) => expect(days(cron, 'quartz', 2)).toEqual(expected));

  it('of a year that is given are in that year alone', () => {
    const times = cronSchedules.next('0 0 3 31 12 ? 2027', 'quartz', 'UTC', AFTER, 5);
    expect(times).toEqual([new Date('2027-12-31T03:00:00Z')]);
  });

  it('are in the time zone of the core: once on the day that has the hour twice, and after the hour that is missing', () => {
    const berlin = (cron: string, from: string, count: number): string[] =>
      cronSchedules
        .next(cron, 'quartz', 'Europe/Berlin', new Date(from), count)
        .map((time) => time.toISOString().slice(0, 16));
    expect(berlin('0 30 2 * * ?', '2026-03-28T12:00:00Z', 2)).toEqual(['2026-03-29T01:00', '2026-03-30T00:30']);
    expect(berlin('0 30 2 * * ?', '2026-10-24T12:00:00Z', 2)).toEqual(['2026-10-25T00:30', '2026-10-26T01:30']);
    expect(days('0 0 3 * * ?', 'spring', 1, 'Asia/Kathmandu')).toEqual(['Thu 01-01T21:15']);
  });

  it('come after the given moment, not at it', () => {
    const at = new Date('2026-01-01T03:00:00Z');
    expect(cronSchedules.next(DEFAULT_SCHEDULE, 'quartz', 'UTC', at, 1)).toEqual([new Date('2026-01-02T03:00:00Z')]);
  });

  it.each([
    ['-', 'UTC'],
    ['', 'UTC'],
    ['0 0 3 30 2 ?', 'UTC'],
    ['0 0 3 * * ? 2020', 'UTC'],
    ['0 0 3 L-3 * MON#1', 'UTC'],
    ['0 0 3 * * ?', 'No/Where'],
    [`0 0 3 ${'1,'.repeat(400)}1 * ?`, 'UTC'],
  ])('of %j in %s are none', (cron, timeZone) => {
    for (const dialect of ['quartz', 'spring'] as const)
      expect(cronSchedules.next(cron, dialect, timeZone, AFTER, 5)).toEqual([]);
  });
});

describe('what is wrong with a schedule', () => {
  it.each<[string, CronDialect]>([
    ['-', 'quartz'],
    ['-', 'spring'],
    ['0 0 3 * * ?', 'quartz'],
    ['0 0 3 * * *', 'quartz'],
    ['0 0 3 * * *', 'spring'],
    ['0 0 3 1 * MON', 'spring'],
    ['0 0 3 L-3 * MON#1', 'spring'],
    ['@daily', 'spring'],
  ])('%s of %s: nothing', (cron, dialect) => expect(cronSchedules.fault(cron, dialect)).toBeUndefined());

  it.each<[string, CronDialect, string | RegExp]>([
    ['', 'quartz', 'it has 1 fields instead of six or seven'],
    ['@daily', 'quartz', /fields/],
    ['0 0 3 1 * MON', 'quartz', /exactly one of day-of-month and day-of-week must be \?/],
    ['0 0 3 * * ? 2020', 'quartz', 'it never fires again'],
    ['0 0 3 30 2 ?', 'spring', 'it never fires again'],
    ['*/90 0 3 * * ?', 'quartz', /^it cannot be read: /],
    ['0 0 3 * * ? 2030', 'spring', 'it has 7 fields instead of six (there is no year)'],
    ['0'.repeat(501), 'spring', 'it is longer than 500 characters'],
  ])('%s of %s: %s', (cron, dialect, why) => {
    const fault = cronSchedules.fault(cron, dialect);
    if (why instanceof RegExp) expect(fault).toMatch(why);
    else expect(fault).toBe(why);
  });

  it('is said, and never thrown, whatever the text', () => {
    const words = fc.constantFrom(
      '0',
      '*',
      '?',
      '-',
      'L',
      'W',
      '#',
      '/',
      ',',
      '59',
      '31',
      'MON',
      'JAN',
      '2099',
      '@',
      ' ',
    );
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.array(words, { maxLength: 24 }).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(text, fc.constantFrom<CronDialect>('quartz', 'spring'), (cron, dialect) => {
        const fault = cronSchedules.fault(cron, dialect);
        const next = cronSchedules.next(cron, dialect, 'UTC', AFTER, 2);
        expect(fault === undefined || next.length === 0 || fault === 'it never fires again').toBe(true);
      }),
    );
  });
});
