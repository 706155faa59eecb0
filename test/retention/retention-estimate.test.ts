import { describe, expect, it } from 'vitest';
import type { Retained } from '@holdfast/kit/retention';
import { estimatedSeconds, type TimedRun } from '../../shared/retention/rules.ts';

const run = (
  seconds: number | null,
  rows: Partial<Record<Retained, number>>,
  more: Partial<TimedRun> = {},
): TimedRun => ({
  state: 'done',
  startedAt: '2026-03-04T03:00:00.000Z',
  finishedAt: seconds === null ? null : new Date(Date.parse('2026-03-04T03:00:00.000Z') + seconds * 1000).toISOString(),
  rows,
  included: { cot: 0, files: 0 },
  ...more,
});

describe('how long a run takes', () => {
  it('is nothing for no rows, and a second at least for one', () => {
    expect(estimatedSeconds('cot', 0, [])).toBe(0);
    expect(estimatedSeconds('cot', 1, [])).toBe(1);
  });

  it('is the usual where no run says more', () => {
    expect(estimatedSeconds('cot', 1_000_000, [])).toBe(200);
    expect(estimatedSeconds('files', 1_000, [])).toBe(20);
  });

  it('is what the last runs of the type took', () => {
    const runs = [run(100, { cot: 100_000 }), run(100, { cot: 300_000 })];
    expect(estimatedSeconds('cot', 1_000_000, runs)).toBe(500);
  });

  it('forgets all but the last five', () => {
    const runs = [...Array.from({ length: 5 }, () => run(10, { cot: 10_000 })), run(1, { cot: 10_000_000 })];
    expect(estimatedSeconds('cot', 10_000, runs)).toBe(10);
  });

  it.each<[string, TimedRun]>([
    ['has too few rows', run(10, { cot: 3 })],
    ['was for the most part of another type', run(1_000, { cot: 2_000, files: 3_000 })],
    [
      'was for the most part of what went with missions',
      run(1_000, { cot: 2_000 }, { included: { cot: 9_000, files: 0 } }),
    ],
    ['has not ended', run(null, { cot: 10_000 })],
    ['has failed', run(1_000, { cot: 10_000 }, { state: 'failed' })],
    ['took no time', run(0, { cot: 10_000 })],
    ['has a time that is none', run(1, { cot: 10_000 }, { startedAt: 'yesterday' })],
  ])('is not told by a run that %s', (_, telling) => {
    expect(estimatedSeconds('cot', 1_000_000, [telling])).toBe(200);
  });

  it('counts for missions what went with them', () => {
    const runs = [run(60, { missions: 6 }, { included: { cot: 1_000_000, files: 50 } })];
    expect(estimatedSeconds('missions', 3, runs)).toBe(30);
  });
});
