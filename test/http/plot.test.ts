import { describe, expect, it } from 'vitest';
import { formatFigure } from '@holdfast/kit/format';
import {
  areaPath,
  linear,
  linePath,
  niceRange,
  niceTicks,
  runsOf,
  thinned,
  timeTicks,
  withGaps,
} from '../../shared/http/plot.ts';

const same = (value: number): number => value;
const at = (time: string): number => Date.parse(`2026-03-${time}:00Z`);
const iso = (ms: number): string => new Date(ms).toISOString().slice(5, 16);

describe('a scale', () => {
  it('maps one span to another, also upside down, and a span of nothing to the middle', () => {
    expect([0, 5, 10].map(linear([0, 10], [100, 0]))).toEqual([100, 50, 0]);
    expect(linear([7, 7], [0, 40])(7)).toBe(20);
  });
});

describe('ticks', () => {
  it('stand at round values within the span', () => {
    expect(niceTicks(0, 100)).toEqual([0, 50, 100]);
    expect(niceTicks(0, 26e9)).toEqual([0, 10e9, 20e9]);
    expect(niceTicks(0, 0.3, 4)).toEqual([0, 0.1, 0.2, 0.3]);
    expect(niceTicks(-3, 3, 4)).toEqual([-2, 0, 2]);
    expect(niceTicks(5, 5)).toEqual([5]);
  });

  it('are never more than asked for, and never beyond the span', () => {
    for (const high of [0.001, 0.7, 1, 3, 9, 17, 99, 1234, 5e12])
      for (const most of [2, 3, 5, 8]) {
        const ticks = niceTicks(0, high, most);
        expect([high, most, ticks.length <= most, ticks.every((each) => each <= high)]).toEqual([
          high,
          most,
          true,
          true,
        ]);
      }
  });

  it('of time stand at round times, by the clock on the wall', () => {
    expect(timeTicks(at('04T05:06'), at('05T05:06'), 6).map(iso)).toEqual([
      '03-04T06:00',
      '03-04T12:00',
      '03-04T18:00',
      '03-05T00:00',
    ]);
    expect(timeTicks(at('04T05:06'), at('06T05:06'), 3, 3_600_000).map(iso)).toEqual(['03-04T23:00', '03-05T23:00']);
    expect(timeTicks(at('04T05:06') + 1, at('04T05:06') + 2)).toEqual([]);
  });

  it('have a range with room for them: from zero, or around what lies far from it', () => {
    expect(niceRange([10, 20])).toEqual([0, 21]);
    expect(niceRange([100, 110], false)).toEqual([99, 111]);
    expect(niceRange([0, 0])).toEqual([0, 1]);
  });
});

describe('a line', () => {
  const points = [
    { x: 0, y: 1 },
    { x: 1, y: 2 },
    { x: 2, y: null },
    { x: 3, y: 4 },
    { x: 9, y: 5.04 },
    { x: 10, y: 6 },
  ];

  it('has a gap where nothing is known, and a dot where one point stands alone', () => {
    expect(linePath(withGaps(points, 2), same, same)).toBe('M0 1L1 2M3 4h0M9 5L10 6');
    expect(linePath([], same, same)).toBe('');
  });

  it('has an area down to its base', () => {
    expect(areaPath(withGaps(points, 2), same, same, 0)).toBe('M0 0L0 1L1 2L1 0ZM9 0L9 5L10 6L10 0Z');
    expect(runsOf(withGaps(points, 2)).map((run) => run.length)).toEqual([2, 1, 2]);
  });

  it('keeps the highest of each stretch when there are too many points', () => {
    const many = Array.from({ length: 1000 }, (_, x) => ({ x, y: x === 555 ? 99 : x % 7 === 0 ? null : 1 }));
    const few = thinned(many, 50);
    expect([few.length, few.some(({ x, y }) => x === 555 && y === 99)]).toEqual([50, true]);
    expect(thinned(points, 50)).toEqual(points);
  });
});

describe('a figure in words', () => {
  it('has its unit', () => {
    expect([
      formatFigure(25e9, 'bytes'),
      formatFigure(41.53, 'percent'),
      formatFigure(1, 'days'),
      formatFigure(0.03251, 'seconds'),
      formatFigure(12.4, 'milliseconds'),
      formatFigure(3, 'count'),
    ]).toEqual(['25 GB', '41.5 %', '1 day', '0.033 s', '12 ms', '3']);
  });
});
