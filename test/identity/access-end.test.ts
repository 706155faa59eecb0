import { describe, expect, it } from 'vitest';
import { momentOf, readWallTime, wallTimeAt, wallTimeText } from '@holdfast/kit/time';
import { accessEnd, presetEnd } from '../../shared/identity/rules.ts';

const BERLIN = 'Europe/Berlin';
const at = (iso: string, timeZone = BERLIN) => ({ now: new Date(iso), timeZone });

describe('the end of access', () => {
  it('is never, or what is chosen', () => {
    expect(accessEnd({ choice: 'never', on: '' }, at('2026-05-01T10:00:00Z'))).toEqual({ at: null });
    expect(accessEnd({ choice: 'date', on: '2026-05-03T18:30' }, at('2026-05-01T10:00:00Z'))).toEqual({
      at: '2026-05-03T16:30:00Z',
    });
  });

  it('today is the next midnight of the clock there, also when the day there is another one', () => {
    expect(presetEnd('today', at('2026-05-01T10:00:00Z'))).toBe('2026-05-01T22:00:00Z');
    expect(presetEnd('today', at('2026-05-01T22:30:00Z'))).toBe('2026-05-02T22:00:00Z');
    expect(presetEnd('today', at('2026-12-31T12:00:00Z', 'Pacific/Auckland'))).toBe('2027-01-01T11:00:00Z');
  });

  it('after days is at the same time of the clock, also when the clock is changed between', () => {
    expect(presetEnd('days-2', at('2026-03-28T09:05:00Z'))).toBe('2026-03-30T08:05:00Z');
    expect(presetEnd('days-7', at('2026-10-24T08:05:00Z'))).toBe('2026-10-31T09:05:00Z');
    expect(presetEnd('days-30', at('2026-11-20T12:00:00Z', 'UTC'))).toBe('2026-12-20T12:00:00Z');
  });

  it('today is right on the days of 23 and of 25 hours', () => {
    expect(presetEnd('today', at('2026-03-29T00:30:00Z'))).toBe('2026-03-29T22:00:00Z');
    expect(presetEnd('today', at('2026-10-25T00:30:00Z'))).toBe('2026-10-25T23:00:00Z');
  });

  it.each(['', 'days-3', 'days-0', 'tomorrow', 'constructor'])('is not %j', (choice) => {
    expect(accessEnd({ choice, on: '' }, at('2026-05-01T10:00:00Z'))).toEqual({ fault: 'choose when access expires' });
  });

  it.each(['', '2026-02-30T10:00', '2026-05-01', '2026-13-01T10:00', '2026-05-01T24:00', 'soon', '0000-01-01T00:00'])(
    'cannot be at %j',
    (on) => {
      expect(accessEnd({ choice: 'date', on }, at('2026-05-01T10:00:00Z'))).toEqual({
        fault: 'choose the date and time at which access expires',
      });
    },
  );
});

describe('a time of the clock', () => {
  const moment = (text: string, zone = BERLIN): string => {
    const wall = readWallTime(text);
    return wall === undefined ? '' : new Date(momentOf(wall, zone)).toISOString();
  };

  it('that comes twice is the first one', () => {
    expect(moment('2026-10-25T02:30')).toBe('2026-10-25T00:30:00.000Z');
    expect(moment('2026-10-25T03:30')).toBe('2026-10-25T02:30:00.000Z');
  });

  it('that is left out comes after the change', () => {
    expect(moment('2026-03-29T02:30')).toBe('2026-03-29T01:30:00.000Z');
    expect(moment('2026-03-29T01:59')).toBe('2026-03-29T00:59:00.000Z');
    expect(moment('2026-03-29T03:00')).toBe('2026-03-29T01:00:00.000Z');
  });

  it('is right around a change far from UTC too', () => {
    expect(moment('2026-04-05T02:30', 'Pacific/Auckland')).toBe('2026-04-04T13:30:00.000Z');
    expect(moment('2026-09-27T02:30', 'Pacific/Auckland')).toBe('2026-09-26T14:30:00.000Z');
    expect(moment('2026-04-05T03:30', 'Pacific/Chatham')).toBe('2026-04-04T13:45:00.000Z');
  });

  it('comes back as it was written, in every zone and at every hour of a year', () => {
    for (const zone of ['UTC', BERLIN, 'Asia/Kathmandu', 'America/St_Johns', 'Australia/Lord_Howe', 'Pacific/Auckland'])
      for (let hour = 0; hour < 8760; hour += 7) {
        const ms = Date.UTC(2026, 0, 1, hour, 17);
        const wall = wallTimeAt(ms, zone);
        const again = momentOf(wall, zone);
        expect(wallTimeText(wallTimeAt(again, zone))).toBe(wallTimeText(wall));
        expect(ms - again === 0 || ms - again === 3_600_000 || ms - again === 1_800_000).toBe(true);
      }
  });
});
