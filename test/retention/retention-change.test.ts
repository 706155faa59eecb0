import { describe, expect, it } from 'vitest';
import { KEEP_ALL, type RetentionUnit } from '@holdfast/kit/retention';
import { changedTypes, changeParts, daysFault, formatDays, formatLimited } from '../../shared/retention/rules.ts';

describe('days', () => {
  it.each<[number | null, RetentionUnit]>([
    [null, 'days'],
    [null, 'seconds'],
    [1, 'days'],
    [36_500, 'days'],
    [24_855, 'seconds'],
  ])('%s may be asked for where the core counts %s', (days, unit) => expect(daysFault(days, unit)).toBeUndefined());

  it.each<[number, RetentionUnit, string]>([
    [0, 'days', 'must be a whole number of days from 1 to 36500, not 0'],
    [-1, 'days', 'must be a whole number of days from 1 to 36500, not -1'],
    [1.5, 'days', 'must be a whole number of days from 1 to 36500, not 1.5'],
    [36_501, 'days', 'must be a whole number of days from 1 to 36500, not 36501'],
    [
      24_856,
      'seconds',
      'must be a whole number of days from 1 to 24855 (the core counts seconds in 32 bits), not 24856',
    ],
    [Number.NaN, 'days', 'must be a whole number of days from 1 to 36500, not NaN'],
    [Number.POSITIVE_INFINITY, 'days', 'must be a whole number of days from 1 to 36500, not Infinity'],
  ])('%s may not where the core counts %s: %s', (days, unit, fault) => expect(daysFault(days, unit)).toBe(fault));

  it('are told with the most that the core takes', () => {
    expect(formatDays('days')).toBe('a whole number of days from 1 to 36500');
  });
});

describe('a change', () => {
  it('has a part that keeps more and one that keeps less; for ever is longest', () => {
    const from = { ...KEEP_ALL, cot: 30, geochat: 30, files: 7 };
    const to = { ...KEEP_ALL, cot: 31, geochat: 29, files: null, missions: 5 };
    expect(changeParts(from, to)).toEqual({ longer: { cot: 31, files: null }, shorter: { geochat: 29, missions: 5 } });
    expect(changedTypes(from, to)).toEqual(['cot', 'geochat', 'files', 'missions']);
    expect(changeParts(to, to)).toEqual({ longer: {}, shorter: {} });
  });

  it('is told in days', () => {
    expect(formatLimited(KEEP_ALL)).toBe('nothing');
    expect(formatLimited({ ...KEEP_ALL, cot: 1, files: 90 })).toBe('cot 1 day, files 90 days');
  });
});
