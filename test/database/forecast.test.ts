// How fast something grows and when it is full: what is no growth, what is, and how sure that is.

import { describe, expect, it } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '@holdfast/kit/time';
import {
  fullIn,
  type FullIn,
  formatFull,
  paceOf,
  type Point,
  sensible,
  trendOf,
} from '../../shared/database/forecast.ts';

const NOW = Date.UTC(2026, 2, 4, 5);
const GB = 1e9;

/** One point an hour for so many days until now; `size` of the days since the first. */
function hourly(days: number, size: (day: number) => number): Point[] {
  return Array.from({ length: days * 24 + 1 }, (_, hour) => ({
    atMs: NOW - days * DAY_MS + hour * HOUR_MS,
    bytes: size(hour / 24),
  }));
}

const minutes = (sizes: readonly number[]): Point[] =>
  sizes.map((bytes, index) => ({ atMs: NOW - (sizes.length - 1 - index) * MINUTE_MS, bytes }));

const perDay = (points: readonly Point[], nowMs = NOW): number =>
  (trendOf(points, nowMs)?.bytesPerDay ?? Number.NaN) / GB;

describe('the trend', () => {
  it('is unknown before there are samples of six hours', () => {
    const points = hourly(1, (day) => day * GB);
    expect(trendOf(points.slice(-6), NOW)).toBeUndefined();
    expect(trendOf(points.slice(-7), NOW)).toBeDefined();
    expect(trendOf([], NOW)).toBeUndefined();
  });

  it.each([0.5, 2, 10, 40])('of %s days of steady growth is that growth', (days) =>
    expect(perDay(hourly(days, (day) => day * 2 * GB))).toBeCloseTo(2, 1),
  );

  it('does not take an import for growth, nor a VACUUM FULL for shrinking', () => {
    expect(perDay(hourly(28, (day) => (10 + day + (day > 13 ? 50 : 0)) * GB))).toBeCloseTo(1, 1);
    expect(perDay(hourly(28, (day) => (90 + day - (day > 13 ? 50 : 0)) * GB))).toBeCloseTo(1, 1);
    expect(perDay(hourly(2, (day) => (10 + day + (day > 1.5 ? 5 : 0)) * GB))).toBeCloseTo(1, 1);
  });

  it('may be as much as with an import that came once: it may come again', () => {
    const growth = trendOf(
      hourly(28, (day) => (10 + day + (day > 13 ? 50 : 0)) * GB),
      NOW,
    );
    expect(growth?.maxPerDay).toBeGreaterThan(2.5 * GB);
  });

  it('goes by the last eight weeks', () => {
    const growth = trendOf(
      hourly(100, (day) => day * GB),
      NOW,
    );
    expect(growth?.sinceMs).toBe(NOW - 56 * DAY_MS + HOUR_MS);
  });

  it('does not take what came and went for growth, not even while it is there', () => {
    const copy = (day: number): number => ((day * 24) % 24 === 5 ? 20 : 0);
    for (const days of [2, 3, 12]) {
      const points = hourly(days, (day) => (10 + day + copy(day)) * GB);
      expect(perDay(points)).toBeCloseTo(1, 1);
      const lastAt = points.findLastIndex((_, hour) => hour % 24 === 5);
      const meanwhile = points.slice(0, lastAt + 1);
      expect(perDay(meanwhile, meanwhile.at(-1)?.atMs)).toBeCloseTo(1, 0);
    }
  });

  it('counts what comes back every week', () =>
    expect(perDay(hourly(28, (day) => Math.floor(day / 7) * 7 * GB))).toBeCloseTo(1, 1));

  it('follows a feed that began ten days ago, and says how unsure it is', () => {
    const growth = trendOf(
      hourly(40, (day) => (day + Math.max(0, day - 30) * 4) * GB),
      NOW,
    );
    expect((growth?.bytesPerDay ?? 0) / GB).toBeGreaterThan(3);
    expect(growth?.minPerDay).toBeLessThan(2.5 * GB);
    expect(growth?.maxPerDay).toBeGreaterThanOrEqual(5 * GB);
  });

  it('is nought or less for what stands still or shrinks, so nothing is ever full', () => {
    for (const size of [() => 5 * GB, (day: number) => (50 - day) * GB]) {
      const growth = trendOf(hourly(20, size), NOW);
      expect(growth?.bytesPerDay).toBeLessThanOrEqual(0);
      expect(growth && fullIn(growth, 10 * GB)).toBeUndefined();
    }
  });

  it('survives a week without samples, and samples of a clock that was ahead', () => {
    const points = hourly(30, (day) => (10 + day) * GB);
    const gap = points.filter((_, hour) => hour < 10 * 24 || hour > 17 * 24);
    expect(perDay(gap)).toBeCloseTo(1, 1);
    const ahead = hourly(10, (day) => (900 + day * 100) * GB).map((point) => ({
      ...point,
      atMs: point.atMs + 400 * DAY_MS,
    }));
    expect(perDay([...points, ...ahead])).toBeCloseTo(1, 1);
    expect(perDay([...points.toReversed(), ...points])).toBeCloseTo(1, 1);
  });

  it('is less sure of half a day than of a month', () => {
    const width = (days: number): number => {
      const full = fullIn(
        trendOf(
          hourly(days, (day) => day * GB),
          NOW,
        )!,
        100 * GB,
      )!;
      return (full.latest ?? Infinity) / full.earliest;
    };
    expect(width(0.5)).toBeGreaterThan(4);
    expect(width(2)).toBeLessThan(4);
    expect(width(30)).toBeLessThan(1.5);
  });

  it('keeps free what a nightly backup takes for an hour', () => {
    const points = hourly(20, (day) => (10 + day + ((day * 24) % 24 === 2 ? 15 : 0)) * GB);
    expect(fullIn(trendOf(points, NOW)!, 20 * GB)?.days).toBeCloseTo(5, 0);
  });

  it('has the true date in its interval where the nights are quiet, also when that is soon', () => {
    const size = (day: number): number => (10 + day + 0.15 * Math.sin(day * 2 * Math.PI)) * GB;
    for (const hour of [0, 4, 8, 12, 16, 20]) {
      const from = hour / 24;
      const points = hourly(20, (day) => size(day + from));
      const { earliest, latest } = fullIn(trendOf(points, NOW)!, size(22 + from) - size(20 + from))!;
      expect([hour, earliest <= 2.01, latest === null || latest >= 2]).toEqual([hour, true, true]);
    }
  });
});

describe('the pace', () => {
  const feed = (size: number): number => 10 * GB + size * 0.1 * GB;

  it('is seen after six minutes of a feed, with the quiet before it left out', () => {
    const quiet = Array.from({ length: 6 }, () => 10 * GB);
    const since = (count: number): Point[] =>
      minutes([...quiet, ...Array.from({ length: count }, (_, at) => feed(at + 1))]);
    expect(paceOf(since(5), NOW)).toBeUndefined();
    expect(paceOf(since(6), NOW)?.bytesPerDay).toBeCloseTo(0.1 * GB * 1440, -6);
    expect(paceOf(minutes([0, 1, 2, 3, 4, 5].map(feed)), NOW)).toBeUndefined();
  });

  it('is none of an import of four minutes, at whatever moment it begins and is looked at', () => {
    for (let begins = 6; begins < 7; begins += 0.05) {
      const imported = (minute: number): number => 2 * GB * Math.min(1, Math.max(0, (minute - begins) / 4));
      const sizes = Array.from({ length: 21 }, (_, minute) => 10 * GB + imported(minute));
      for (let end = 2; end <= sizes.length; end++)
        expect([begins, end, paceOf(minutes(sizes.slice(0, end)), NOW)]).toEqual([begins, end, undefined]);
    }
  });

  it('ends with the feed, and with the samples', () => {
    const fed = Array.from({ length: 11 }, (_, at) => feed(at));
    expect(paceOf(minutes(fed), NOW)).toBeDefined();
    expect(paceOf(minutes([...fed, feed(10), feed(10), feed(10)]), NOW)).toBeUndefined();
    expect(paceOf(minutes(fed), NOW + 4 * MINUTE_MS)).toBeUndefined();
    expect(paceOf(minutes(fed), NOW - 60 * MINUTE_MS)).toBeUndefined();
    expect(paceOf([], NOW)).toBeUndefined();
  });

  it('is not told by less than four minutes, however many samples there are', () => {
    const hasty = Array.from({ length: 20 }, (_, at) => ({ atMs: NOW - (19 - at) * 10_000, bytes: feed(at) }));
    expect(paceOf(hasty, NOW)).toBeUndefined();
  });

  it('goes on over one minute that stands still, and has an interval', () => {
    const growth = paceOf(minutes([0, 1, 2, 3, 3, 5, 6, 7, 8, 9, 10].map(feed)), NOW);
    expect(growth?.minPerDay).toBeLessThan(growth?.bytesPerDay ?? 0);
    expect(growth?.maxPerDay).toBeGreaterThan(growth?.bytesPerDay ?? 0);
  });
});

it('what may stand still may never be full', () => {
  const growth = {
    basis: 'trend',
    bytesPerDay: 1,
    minPerDay: 0,
    maxPerDay: 2,
    dayDeviation: 0,
    swingBytes: 0,
  } as const;
  expect(fullIn({ ...growth, sinceMs: NOW }, 10)).toEqual({ days: 10, earliest: 5, latest: null });
});

describe('in words', () => {
  it.each<[FullIn, string]>([
    [{ days: 0.5, earliest: 0.42, latest: 0.625 }, 'about 12 hours (10 to 15)'],
    [{ days: 6.04, earliest: 4, latest: 9.2 }, 'about 6 days (4 to 9)'],
    [{ days: 33.3, earliest: 21, latest: null }, 'about 33 days (21, or never)'],
    [{ days: 487, earliest: 312, latest: 900 }, 'about 490 days (310 to more than 2 years)'],
    [{ days: 800, earliest: 312, latest: 900 }, 'more than 2 years'],
    [{ days: 0.01, earliest: 0, latest: 0.02 }, 'less than an hour'],
  ])('%j is %s', (full, words) => expect(formatFull(full)).toBe(words));

  it('has two digits', () => {
    expect([0, 0.456, 6.04, 12.4, 487, 4870].map(sensible)).toEqual([0, 0.5, 6, 12, 490, 4900]);
  });
});
