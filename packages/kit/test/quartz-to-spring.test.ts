// Quartz for a release: the same times in Spring's six fields, or a reason why not.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cronSchedules } from '../cron/cron.ts';
import { springOf, withOpenDay } from '../cron/quartz.ts';
import { readSpringCron } from '../cron/spring-cron.ts';
import { anyCharacter, runs } from '../../../test/support/runs.ts';

/** No hour is left out there: Quartz and Spring differ in those. */
const ZONE = 'Asia/Kolkata';

describe('a schedule of Quartz for a TAK Server release', () => {
  it.each([
    ['0 0 3 * * ?', '0 0 3 * * ?'],
    ['0 0 3 * * ? *', '0 0 3 * * ?'],
    ['0 0 3 * * *', '0 0 3 * * ?'],
    ['0 0 3 ? * 1', '0 0 3 ? * 0'],
    ['0 0 3 ? * 7', '0 0 3 ? * 6'],
    ['0 0 3 ? * MON-FRI', '0 0 3 ? * 1-5'],
    ['0 0 3 ? * FRI-MON', '0 0 3 ? * 0,1,5,6'],
    ['0 0 3 ? * SUN,WED', '0 0 3 ? * 0,3'],
    ['0 0 3 ? * L', '0 0 3 ? * 6'],
    ['0 0 3 ? * 6L', '0 0 3 ? * 5L'],
    ['0 0 3 ? * SUNL', '0 0 3 ? * 0L'],
    ['0 0 3 ? * 2#1', '0 0 3 ? * 1#1'],
    ['0 0 3 ? * */2', '0 0 3 ? * 0,2,4,6'],
    ['0 0 3 ? * 2/2', '0 0 3 ? * 1,3,5'],
    ['0 0 3 ? * *', '0 0 3 ? * *'],
    ['0 0 3 LW * ?', '0 0 3 LW * ?'],
    ['0 0 3 15W,L JAN,MAR ?', '0 0 3 15W,L 1,3 ?'],
    ['5/20 0 22-2 1 * ?', '5-59/20 0 0,1,2,22,23 1 * ?'],
  ])('%s becomes %s', (quartz, spring) => expect(springOf(quartz)).toEqual({ expression: spring }));

  it.each([
    ['0 0 3 * * ? 2027', 'it is for the year 2027, and the cron of a TAK Server release (Spring) has no year'],
    ['0 0 3 * * ? 2027-2030', /^it is for the year 2027-2030, /],
    ['0 3 * * *', 'it has 5 fields instead of six or seven'],
    ['0 0 3 1 * 2', /exactly one of day-of-month and day-of-week must be \?/],
    ['', /fields instead of six or seven/],
    ['@daily', /fields instead of six or seven/],
  ])('%j has none, and it is said why', (quartz, why) => {
    expect(springOf(quartz)).toEqual({ fault: why instanceof RegExp ? expect.stringMatching(why) : why });
  });

  const number = (least: number, most: number) => fc.integer({ min: least, max: most });
  const item = (least: number, most: number, words: string[] = []) => {
    const value = fc.oneof(
      { weight: 3, arbitrary: number(least, most).map(String) },
      ...(words.length === 0 ? [] : [{ weight: 1, arbitrary: fc.constantFrom(...words) }]),
    );
    const step = number(1, Math.max(1, most - least));
    return fc.oneof(
      value,
      fc.constant('*'),
      fc.tuple(value, value).map(([from, to]) => `${from}-${to}`),
      step.map((each) => `*/${each}`),
      fc.tuple(value, value, number(1, 3)).map(([from, to, each]) => `${from}-${to}/${each}`),
      fc.tuple(value, step).map(([from, each]) => `${from}/${each}`),
    );
  };
  const list = (one: fc.Arbitrary<string>) => fc.array(one, { minLength: 1, maxLength: 3 }).map((all) => all.join(','));
  const months = ['JAN', 'feb', 'MAR', 'JUN', 'dec'];
  const weekdays = ['SUN', 'mon', 'WED', 'FRI', 'sat'];
  const day = fc.oneof(
    list(item(1, 31)),
    fc.constantFrom('L', 'LW', '15W', '1W', '31W', 'LW,3', '5,L,20W').map((special) => special),
  );
  const weekday = fc.oneof(
    list(item(1, 7, weekdays)),
    fc.constantFrom('L', '1L', '6L', 'SUNL', '2#1', '7#5', 'FRI#3', '2#1,2#3', '1,6L'),
  );
  const days = fc.oneof(
    day.map((each) => [each, '?']),
    weekday.map((each) => ['?', each]),
  );
  const quartz = fc
    .tuple(item(0, 59), item(0, 59), item(0, 23), days, list(item(1, 12, months)), fc.constantFrom('', ' *'))
    .map(([s, m, h, [dom, dow], month, year]) => `${s} ${m} ${h} ${dom} ${month} ${dow}${year}`);

  it('fires at the same times as the one of Quartz, and is one that Spring reads', () => {
    const after = new Date('2026-02-27T21:59:30Z');
    let fired = 0;
    fc.assert(
      fc.property(quartz, (expression) => {
        const { expression: spring = '' } = springOf(expression);
        expect(readSpringCron(spring).fault).toBeUndefined();
        const expected = cronSchedules.next(expression, 'quartz', ZONE, after, 8);
        fired += expected.length;
        expect([spring, cronSchedules.next(spring, 'spring', ZONE, after, 8)]).toEqual([spring, expected]);
      }),
      { numRuns: runs(400) },
    );
    expect(fired).toBeGreaterThan(runs(1000));
  });

  it('never throws, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        const { expression, fault } = springOf(text);
        expect((expression === undefined) !== (fault === undefined)).toBe(true);
      }),
    );
  });
});

describe('both day fields open', () => {
  it.each([
    ['0 0 3 * * *', '0 0 3 * * ?'],
    [' 0  0 3 *  * *  2030 ', '0 0 3 * * ? 2030'],
    ['0 0 3 * * ?', '0 0 3 * * ?'],
    ['0 0 3 1 * *', '0 0 3 1 * *'],
    ['*', '*'],
    ['-', '-'],
    ['', ''],
  ])('%j is taken as %j', (given, taken) => expect(withOpenDay(given)).toBe(taken));
});
