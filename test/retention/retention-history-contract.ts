// What every RetentionBook must do, held against the fake and against the tables.

import { beforeEach, describe, expect, it } from 'vitest';
import { KEEP_ALL } from '@holdfast/kit/retention';
import type { RetentionHistory, RetentionRun } from '../../shared/retention/port.ts';

const START = Date.parse('2026-03-04T05:06:07.089Z');
const minute = (count: number): string => new Date(START + count * 60_000).toISOString();

export function runAt(minutes: number, change: Partial<RetentionRun> = {}): RetentionRun {
  return {
    id: `run-${minutes}`,
    source: 'core',
    trigger: 'schedule',
    state: 'done',
    startedAt: minute(minutes),
    finishedAt: minute(minutes + 1),
    limits: { cot: minute(-1000), missions: minute(-2000) },
    rows: { cot: 12, missions: 0 },
    included: { cot: 3, files: 4 },
    expected: 19,
    bytes: 5_000_000_000_000,
    error: null,
    ...change,
  };
}

/** `make` gives one that is empty. */
export function retentionHistoryContract(what: string, make: () => RetentionHistory | Promise<RetentionHistory>): void {
  describe(`the book of retention (${what})`, () => {
    let store: RetentionHistory;
    beforeEach(async () => {
      store = await make();
    });
    const ids = async (offset = 0, limit = 2000) => (await store.runs(offset, limit)).results.map(({ id }) => id);

    it('knows nothing at first', async () => {
      await store.keepRuns([]);
      expect(await store.runs(0, 10)).toEqual({ results: [], count: 0 });
      expect(await store.lastDone()).toBeUndefined();
      for (const type of ['cot', 'geochat'] as const) expect(await store.days(type)).toEqual({ days: [] });
    });

    it('gives runs as they were told, newest first, page by page', async () => {
      const nothing = { finishedAt: null, limits: {}, rows: {}, expected: null, bytes: null };
      const [a, b, c] = [
        runAt(1),
        runAt(2, { source: 'log', state: 'failed', error: 'no "disk" \\ left:\n\u{1F4A3}' }),
        runAt(3, { ...nothing, state: 'running', trigger: 'order' }),
      ];
      await store.keepRuns([b, a]);
      await store.keepRuns([c]);
      expect(await store.runs(0, 10)).toEqual({ results: [c, b, a], count: 3 });
      expect(await store.runs(1, 1)).toEqual({ results: [b], count: 3 });
      expect(await store.runs(3, 10)).toEqual({ results: [], count: 3 });
    });

    it('brings a run up to date by its id', async () => {
      await store.keepRuns([runAt(1, { state: 'running', rows: { cot: 1 }, finishedAt: null })]);
      await store.keepRuns([runAt(1, { state: 'running', rows: { cot: 9 }, finishedAt: null }), runAt(2)]);
      expect((await store.runs(1, 1)).results).toMatchObject([{ state: 'running', rows: { cot: 9 } }]);
      await store.keepRuns([runAt(1)]);
      expect(await store.runs(0, 10)).toEqual({ results: [runAt(2), runAt(1)], count: 2 });
    });

    it.each(['done', 'failed', 'interrupted'] as const)(
      'never brings one back to running that is %s',
      async (state) => {
        const [ended, running] = [runAt(1, { state }), runAt(1, { state: 'running', finishedAt: null, rows: {} })];
        await store.keepRuns([ended]);
        await store.keepRuns([running]);
        expect((await store.runs(0, 9)).results).toEqual([ended]);
        await store.keepRuns([runAt(2), { ...ended, id: 'another' }, { ...running, id: 'another' }]);
        expect((await store.runs(0, 9)).results.find(({ id }) => id === 'another')).toMatchObject({ state });
      },
    );

    it('takes what was interrupted as done when another run has finished it', async () => {
      await store.keepRuns([runAt(1, { state: 'interrupted' })]);
      await store.keepRuns([runAt(1)]);
      expect((await store.runs(0, 9)).results).toEqual([runAt(1)]);
    });

    it('knows the newest that is done', async () => {
      await store.keepRuns([runAt(5, { state: 'failed' }), runAt(3), runAt(4), runAt(6, { state: 'running' })]);
      expect(await store.lastDone()).toEqual(runAt(4));
    });

    it('keeps the newest thousand, of those that are added too', async () => {
      await store.keepRuns(Array.from({ length: 1005 }, (_, index) => runAt(index)));
      expect(await store.runs(999, 9)).toEqual({ results: [runAt(5)], count: 1000 });
      await store.keepRuns([runAt(2), runAt(2000), runAt(6, { rows: { cot: 77 } })]);
      expect((await ids()).slice(0, 1)).toEqual(['run-2000']);
      expect(await store.runs(999, 9)).toEqual({ results: [runAt(6, { rows: { cot: 77 } })], count: 1000 });
    });

    it('knows since when something is in force: the first time that it was seen so without a break', async () => {
      const [days, other] = [
        { policy: { ...KEEP_ALL, cot: 30.5 }, schedule: '0 0 3 * * ?' },
        { policy: KEEP_ALL, schedule: '-' },
      ];
      expect(await store.seenInForce(minute(1), days)).toBe(minute(1));
      expect(await store.seenInForce(minute(2), days)).toBe(minute(1));
      expect(await store.seenInForce(minute(3), { ...days, schedule: '0 0 4 * * ?' })).toBe(minute(3));
      expect(await store.seenInForce(minute(4), other)).toBe(minute(4));
      expect(await store.seenInForce(minute(5), days)).toBe(minute(5));
      expect(await store.seenInForce(minute(6), structuredClone(days))).toBe(minute(5));
    });

    it('keeps rows per day of each type', async () => {
      await store.keepDays('cot', '2026-01-01', '2026-01-04', [
        { day: '2026-01-03', rows: 3_000_000_000 },
        { day: '2026-01-01', rows: 1 },
      ]);
      await store.keepDays('geochat', '2026-01-01', '2026-01-02', [{ day: '2026-01-01', rows: 7 }]);
      const { days } = await store.days('cot');
      expect(days).toMatchObject([
        { day: '2026-01-01', rows: 1 },
        { day: '2026-01-03', rows: 3_000_000_000 },
      ]);
      for (const { countedAt } of days) expect(countedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect((await store.days('geochat')).days).toMatchObject([{ day: '2026-01-01', rows: 7 }]);
    });

    it('replaces the days of a range and no others; one that is missing has no rows', async () => {
      const day = (number: number, rows: number) => ({ day: `2026-01-0${number}`, rows });
      await store.keepDays(
        'cot',
        '2026-01-01',
        '2026-01-06',
        [1, 2, 3, 4, 5].map((each) => day(each, each)),
      );
      await store.keepDays('geochat', '2026-01-01', '2026-01-03', [day(2, 9)]);
      await store.keepDays('cot', '2026-01-02', '2026-01-04', [day(3, 33)]);
      const kept = async (type: 'cot' | 'geochat') =>
        (await store.days(type)).days.map(({ day: each, rows }) => [each, rows]);
      expect(await kept('cot')).toEqual([
        ['2026-01-01', 1],
        ['2026-01-03', 33],
        ['2026-01-04', 4],
        ['2026-01-05', 5],
      ]);
      await store.keepDays('cot', '2026-01-01', '2026-01-05', []);
      expect(await kept('cot')).toEqual([['2026-01-05', 5]]);
      expect(await kept('geochat')).toEqual([['2026-01-02', 9]]);
    });
  });
}
