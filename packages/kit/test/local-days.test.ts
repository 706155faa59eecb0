import { describe, expect, it } from 'vitest';
import { beginOfDay, endOfDay } from '../time.ts';

describe('a day in a zone', () => {
  it.each([
    ['2026-01-31', 'UTC', '2026-01-31T00:00:00.000Z', '2026-02-01T00:00:00.000Z'],
    ['2026-07-01', 'Europe/Berlin', '2026-06-30T22:00:00.000Z', '2026-07-01T22:00:00.000Z'],
    ['2026-07-01', 'America/Los_Angeles', '2026-07-01T07:00:00.000Z', '2026-07-02T07:00:00.000Z'],
    ['2026-07-01', 'Pacific/Kiritimati', '2026-06-30T10:00:00.000Z', '2026-07-01T10:00:00.000Z'],
    ['2026-07-01', 'Asia/Kathmandu', '2026-06-30T18:15:00.000Z', '2026-07-01T18:15:00.000Z'],
  ])('%s begins and ends by the clocks of %s', (day, zone, begin, end) => {
    expect([beginOfDay(day, zone), endOfDay(day, zone)]).toEqual([begin, end]);
  });

  it.each([
    ['of 23 hours', '2026-03-29', '2026-03-28T23:00:00.000Z', '2026-03-29T22:00:00.000Z'],
    ['of 25 hours', '2026-10-25', '2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z'],
  ])('may be one %s', (_, day, begin, end) => {
    expect([beginOfDay(day, 'Europe/Berlin'), endOfDay(day, 'Europe/Berlin')]).toEqual([begin, end]);
  });

  it('begins at one o’clock where the clock is put forward at midnight', () => {
    expect(beginOfDay('2026-04-24', 'Africa/Cairo')).toBe('2026-04-23T22:00:00.000Z');
    expect(endOfDay('2026-04-23', 'Africa/Cairo')).toBe('2026-04-23T22:00:00.000Z');
  });

  it('begins with the first of two midnights where the clock is put back to midnight', () => {
    expect(beginOfDay('2026-11-01', 'America/Havana')).toBe('2026-11-01T04:00:00.000Z');
  });

  it('begins after the hour that the day before has twice', () => {
    expect(beginOfDay('2026-04-05', 'America/Santiago')).toBe('2026-04-05T04:00:00.000Z');
  });

  it('that was left out begins with the one after it', () => {
    expect(beginOfDay('2011-12-30', 'Pacific/Apia')).toBe(beginOfDay('2011-12-31', 'Pacific/Apia'));
  });

  it.each([
    '',
    '2026-02-30',
    '2026-13-01',
    '2026-1-1',
    '0000-01-01',
    '0001-01-01',
    '9999-12-31',
    '2026-01-01T00:00',
    '<b>',
    '2026-01-01 ',
  ])('is not %j', (text) => {
    expect([beginOfDay(text, 'UTC'), endOfDay(text, 'UTC')]).toEqual([undefined, undefined]);
  });
});
