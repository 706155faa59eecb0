// What every HealthTrend must do, held against the fake and against the table.

import { beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS, MINUTE_MS } from '@holdfast/kit/time';
import type { HealthSample, HealthTrend } from '../../shared/health/port.ts';

const NOW = Date.parse('2026-06-15T12:34:56.789Z');
const now = new Date(NOW).toISOString();
const before = (ms: number): string => new Date(NOW - ms).toISOString();
const ALL = '1970-01-01T00:00:00.000Z';

export function healthSample(at: string, figure: number | null = 25e12): HealthSample {
  const known = { status: 'warning', since: '2026-01-02T03:04:05.678Z', since_is_exact: true, figure } as const;
  return {
    at,
    modules: { database: known, 'an "odd" \\ name': { ...known, status: 'ok', since_is_exact: false, figure: null } },
  };
}

/** `make` gives one that is empty. */
export function healthTrendContract(what: string, make: () => HealthTrend | Promise<HealthTrend>): void {
  describe(`the trend of health (${what})`, () => {
    let trend: HealthTrend;
    beforeEach(async () => {
      trend = await make();
    });
    const kept = async (): Promise<string[]> => (await trend.read(ALL)).map(({ at }) => at);
    const keepAll = async (times: string[]): Promise<void> => {
      await Promise.all(times.map((at) => trend.keep(healthSample(at))));
    };

    it('knows nothing at first', async () => {
      expect([await trend.read(ALL), await trend.thin(now)]).toEqual([[], 0]);
    });

    it('gives samples as they were told, the oldest first, from the time on that is asked for', async () => {
      const [a, b, c] = [healthSample(before(3)), healthSample(before(2), 0.25), healthSample(before(1), null)];
      for (const sample of [c, a, b]) await trend.keep(sample);
      expect(await trend.read(before(3))).toEqual([a, b, c]);
      expect(await trend.read(before(2))).toEqual([b, c]);
      expect(await trend.read(now)).toEqual([]);
    });

    it('has one sample of a moment: the first that was told', async () => {
      await trend.keep(healthSample(now, 1));
      await trend.keep(healthSample(now, 2));
      expect(await trend.read(now)).toEqual([healthSample(now, 1)]);
    });

    it('thins by age: all of two days, one an hour of 14 days, and nothing older or of the future', async () => {
      const [fine, hourly] = [DAY_MS, 10 * DAY_MS].map((age) =>
        [0, 5, 55, 60].map((minutes) =>
          new Date(Date.parse(`${before(age).slice(0, 11)}05:00:00.000Z`) + minutes * MINUTE_MS).toISOString(),
        ),
      ) as [string[], string[]];
      const [last, gone] = [before(14 * DAY_MS - 1), before(14 * DAY_MS + 1)];
      await keepAll([...fine, ...hourly, last, gone, now, before(-1), before(-3000 * DAY_MS)]);
      expect(await trend.thin(now)).toBe(2 + 1 + 2);
      expect(await kept()).toEqual([last, hourly[0], hourly[3], ...fine, now]);
      expect(await trend.thin(now)).toBe(0);
    });
  });
}
