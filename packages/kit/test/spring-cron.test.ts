import { describe, expect, it } from 'vitest';
import { readSpringCron } from '../cron/spring-cron.ts';

describe("Spring's cron", () => {
  it.each([
    '0 0 4 * * *',
    '0 0 4 * * ?',
    '0 0 4 ? * ?',
    '0 0 4 1 * MON',
    '*/15 0-30/5 8,12,18 * JAN-MAR mon-fri',
    '5/10 * * * * *',
    '0 0 0 L * ?',
    '0 0 0 L-3 * ?',
    '0 0 0 LW * ?',
    '0 0 0 15W * ?',
    '0 0 0 1,15W,L * ?',
    '0 0 0 ? * 5L',
    '0 0 0 ? * FRIL',
    '0 0 0 ? * MON#2',
    '0 0 0 ? * 0',
    '0 0 0 ? * 7',
    '0 0 0 ? * 7-2',
    '0 0 0 ? * SUN-TUE',
    '  0   0 4 * * *  ',
  ])('takes %j', (text) => {
    expect(readSpringCron(text)).toEqual({ expression: text.trim().replaceAll(/\s+/g, ' ').toUpperCase() });
  });

  it.each([
    ['@daily', '0 0 0 * * *'],
    ['@midnight', '0 0 0 * * *'],
    ['@HOURLY', '0 0 * * * *'],
    ['@weekly', '0 0 0 * * 0'],
    ['@monthly', '0 0 0 1 * *'],
    ['@yearly', '0 0 0 1 1 *'],
    ['@annually', '0 0 0 1 1 *'],
  ])('writes the macro %s out', (text, expression) => expect(readSpringCron(text)).toEqual({ expression }));

  it.each([
    ['', 'it has 0 fields instead of six'],
    ['-', 'it has 1 fields instead of six'],
    ['0 4 * * *', 'it has 5 fields instead of six'],
    ['0 0 4 * * ? 2026', 'it has 7 fields instead of six (there is no year)'],
    ['@never', '"@never" is no macro of Spring'],
    ['60 0 4 * * *', '"60" is no second'],
    ['0 60 4 * * *', '"60" is no minute'],
    ['0 0 24 * * *', '"24" is no hour'],
    ['? 0 4 * * *', '"?" is no second'],
    ['0 0 4 0 * *', '"0" is no day-of-month'],
    ['0 0 4 32 * *', '"32" is no day-of-month'],
    ['0 0 4 32W * *', '"32W" is no day-of-month'],
    ['0 0 4 L-0 * *', '"L-0" is no day-of-month'],
    ['0 0 4 ?,1 * *', '"?,1" is no day-of-month'],
    ['0 0 4 * 13 *', '"13" is no month'],
    ['0 0 4 * ? *', '"?" is no month'],
    ['0 0 4 * MON *', '"MON" is no month'],
    ['0 0 4 * DEC-JAN *', '"DEC-JAN" is no month'],
    ['0 0 4 * * 8', '"8" is no day-of-week'],
    ['0 0 4 * * L', '"L" is no day-of-week'],
    ['0 0 4 * * FRI-MON', '"FRI-MON" is no day-of-week'],
    ['0 0 4 * * MON#6', '"MON#6" is no day-of-week'],
    ['0 0 4 * * MON#0', '"MON#0" is no day-of-week'],
    ['*/0 0 4 * * *', '"*/0" is no second'],
    ['5-1 0 4 * * *', '"5-1" is no second'],
    ['*-5 0 4 * * *', '"*-5" is no second'],
    ['1, 0 4 * * *', '"1," is no second'],
    ['-1 0 4 * * *', '"-1" is no second'],
    ['1.5 0 4 * * *', '"1.5" is no second'],
    ['0 0 4 * * __proto__', '"__PROTO__" is no day-of-week'],
  ])('refuses %j: %s', (text, fault) => expect(readSpringCron(text)).toEqual({ fault }));
});
