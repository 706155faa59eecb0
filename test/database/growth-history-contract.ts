// What every GrowthBook must do, held against the fake and against the tables.

import { beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS, MINUTE_MS } from '@holdfast/kit/time';
import type { GrowthHistory, GrowthSample, TableSize } from '../../shared/database/port.ts';

const NOW = Date.parse('2026-06-15T12:34:56.789Z');
const now = new Date(NOW).toISOString();
const before = (ms: number): string => new Date(NOW - ms).toISOString();

export function sampleAt(at: string, change: Partial<GrowthSample> = {}): GrowthSample {
  return {
    at,
    database_bytes: 5_000_000_000_000,
    wal_bytes: 16_777_216,
    max_wal_bytes: 1_073_741_824,
    mounts: [
      { mount: '/', total_bytes: 9e12, free_bytes: 1, holds_database: false, holds_wal: false },
      { mount: '/srv/"a" \\ b', total_bytes: 9e12, free_bytes: 7e12, holds_database: true, holds_wal: true },
    ],
    ...change,
  };
}

const size = (table: string, bytes: number, schema = 'public'): TableSize => ({
  schema,
  table,
  bytes,
  rows: bytes / 2,
});

/** `make` gives one that is empty. */
export function growthHistoryContract(what: string, make: () => GrowthHistory | Promise<GrowthHistory>): void {
  describe(`the book of growth (${what})`, () => {
    let store: GrowthHistory;
    beforeEach(async () => {
      store = await make();
    });
    const keepAll = async (times: string[]): Promise<void> => {
      await Promise.all(times.map((at) => store.keepSample(sampleAt(at))));
    };
    const kept = async (): Promise<string[]> => (await store.samples('1970-01-01T00:00:00.000Z')).map(({ at }) => at);

    it('knows nothing at first', async () => {
      expect(await store.samples('1970-01-01T00:00:00.000Z')).toEqual([]);
      expect(await store.tables('1970-01-01')).toEqual([]);
      expect(await store.thin(now)).toBe(0);
    });

    it('gives samples as they were told, the oldest first, from the time on that is asked for', async () => {
      const gone = { database_bytes: null, wal_bytes: null, max_wal_bytes: null, mounts: [] };
      const [a, b, c] = [sampleAt(before(3)), sampleAt(before(2), gone), sampleAt(before(1), { wal_bytes: null })];
      for (const sample of [c, a, b]) await store.keepSample(sample);
      expect(await store.samples(before(3))).toEqual([a, b, c]);
      expect(await store.samples(before(2))).toEqual([b, c]);
      expect(await store.samples(before(0))).toEqual([]);
    });

    it('has one sample of a moment: the last that was told', async () => {
      await store.keepSample(sampleAt(now));
      await store.keepSample(sampleAt(now, { database_bytes: 7, mounts: [] }));
      expect(await store.samples(now)).toEqual([sampleAt(now, { database_bytes: 7, mounts: [] })]);
    });

    it('keeps the tables of each day, and replaces what is known of one day', async () => {
      await store.keepTables('2026-06-14', [size('b', 8e12), size('a', 2)]);
      await store.keepTables('2026-06-15', [size('a', 4), size('old', 6), size('a', 8, 'Other "x"')]);
      await store.keepTables('2026-06-15', [size('a', 10), size('new', 12)]);
      const [first, second] = [
        [size('a', 2), size('b', 8e12)],
        [size('a', 10), size('new', 12)],
      ];
      const today = second.map((each) => ({ ...each, day: '2026-06-15' }));
      expect(await store.tables('2026-06-01')).toEqual([
        ...first.map((each) => ({ ...each, day: '2026-06-14' })),
        ...today,
      ]);
      expect(await store.tables('2026-06-15')).toEqual(today);
      await store.keepTables('2026-06-14', []);
      expect(await store.tables('2026-06-01')).toEqual(today);
      expect(await store.tables('2026-06-16')).toEqual([]);
    });

    it('thins by age: all of two days, one an hour of two months, one a day of 400 days, and nothing older', async () => {
      const [fine, hourly, daily] = [DAY_MS, 10 * DAY_MS, 200 * DAY_MS].map((age) =>
        [0, 1, 30, 3 * 60].map((minutes) =>
          new Date(Date.parse(before(age).slice(0, 11).concat('05:00:00.000Z')) + minutes * MINUTE_MS).toISOString(),
        ),
      ) as [string[], string[], string[]];
      const [last, gone] = [before(400 * DAY_MS - 1), before(400 * DAY_MS + 1)];
      await keepAll([...fine, ...hourly, ...daily, last, gone]);
      expect(await store.thin(now)).toBe(2 + 3 + 1);
      expect(await kept()).toEqual([last, daily[0], hourly[0], hourly[3], ...fine]);
      expect(await store.thin(now)).toBe(0);
    });

    it('removes what a clock that was wrong has seen of the future', async () => {
      await keepAll([before(1), now, before(-1), before(-3000 * DAY_MS)]);
      for (const day of ['2025-05-10', '2025-05-11', '2026-06-15', '2026-06-16', '2034-01-01'])
        await store.keepTables(day, [size('a', 2)]);
      expect(await store.thin(now)).toBe(2);
      expect(await kept()).toEqual([before(1), now]);
      expect((await store.tables('2020-01-01')).map(({ day }) => day)).toEqual(['2025-05-11', '2026-06-15']);
    });

    it('has all that it should have after ten weeks, and no more', async () => {
      const [days, halfHours] = [70, 48];
      for (let day = days; day > 0; day--) {
        const of = Array.from({ length: halfHours }, (_, each) => before(day * DAY_MS - each * 30 * MINUTE_MS));
        await keepAll(of);
        await store.thin(before((day - 1) * DAY_MS));
      }
      const ages = (await kept()).map((at) => (NOW - Date.parse(at)) / DAY_MS);
      expect(ages.filter((age) => age <= 2)).toHaveLength(2 * halfHours);
      expect(Math.abs(ages.filter((age) => age > 2 && age <= 60).length - 58 * 24)).toBeLessThanOrEqual(1);
      expect(Math.abs(ages.filter((age) => age > 60).length - 10)).toBeLessThanOrEqual(2);
    });
  });
}
