import { describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import { type Growth } from '../../shared/database/forecast.ts';
import { lastOfEach, reachOf, sizesAhead } from '../../shared/database/size-forecast.ts';

const GB = 1e9;
const NOW = Date.parse('2026-03-04T05:06:07.000Z');
const GROWTH: Growth = {
  basis: 'trend',
  bytesPerDay: GB,
  minPerDay: 0.5 * GB,
  maxPerDay: 2 * GB,
  dayDeviation: 0,
  swingBytes: 0,
  sinceMs: 0,
};
const inDays = (ms: number | null): number | null => (ms === null ? null : (ms - NOW) / DAY_MS);

describe('when something reaches a size', () => {
  it('is a date with what it may be as well', () => {
    const reach = reachOf(GROWTH, 20 * GB, 30 * GB, NOW);
    if (reach.state !== 'ahead') throw new Error(reach.state);
    expect([reach.atMs, reach.earliestMs, reach.latestMs].map(inDays)).toEqual([10, 5, 20]);
  });

  it('is now where it is that large already, whatever grows', () => {
    expect(reachOf(undefined, 30 * GB, 30 * GB, NOW)).toEqual({ state: 'reached' });
  });

  it('is never where it does not grow, or takes years', () => {
    expect(reachOf({ ...GROWTH, bytesPerDay: 0 }, 1, GB, NOW)).toEqual({ state: 'never' });
    expect(reachOf(GROWTH, 0, 1000 * GB, NOW)).toEqual({ state: 'never' });
  });

  it('is not known without growth or without a size', () => {
    expect(reachOf(undefined, 1, GB, NOW)).toEqual({ state: 'unknown' });
    expect(reachOf(GROWTH, null, GB, NOW)).toEqual({ state: 'unknown' });
  });

  it('has no last date where it may never come', () => {
    expect(reachOf({ ...GROWTH, minPerDay: 0 }, 0, GB, NOW)).toMatchObject({ latestMs: null });
  });
});

describe('how large it will be', () => {
  it('is between the least and the most', () => {
    const ahead = sizesAhead(GROWTH, { atMs: NOW, bytes: 10 * GB }, NOW + 4 * DAY_MS);
    expect(ahead).toEqual({ likely: 14 * GB, least: 12 * GB, most: 18 * GB });
  });

  it('is never below nothing', () => {
    const shrinking = { ...GROWTH, bytesPerDay: -9 * GB, minPerDay: -9 * GB };
    expect(sizesAhead(shrinking, { atMs: NOW, bytes: GB }, NOW + DAY_MS)).toMatchObject({ likely: 0, least: 0 });
  });
});

describe('a history in few rows', () => {
  it('has the last of each stretch, and none where nothing is known', () => {
    const points = [0, 1, 2, 9, 10].map((atMs) => ({ atMs, bytes: atMs }));
    expect(lastOfEach(points, 0, 10, 5).map(({ bytes }) => bytes)).toEqual([1, 2, 10]);
    expect(lastOfEach([], 0, 10, 5)).toEqual([]);
  });
});
