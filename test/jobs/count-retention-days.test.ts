import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import type { Schedules } from '@holdfast/kit/cron';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';
import { run as countDays } from '../../jobs/count-retention-days.ts';
import type { RetentionFacts } from '../../shared/retention/port.ts';
import { type World, world } from '../health/fake-monitored.ts';
import { type FakeDeps, fakeDeps } from '../http/fake-deps.ts';
import { runAt } from '../retention/retention-history-contract.ts';

/** Noon, on a day that nothing is special about. */
const NOON = new Date('2026-05-20T12:00:00.000Z');
const never = new AbortController().signal;

/** Daily, at four in UTC. */
const daily: Schedules = {
  fault: () => undefined,
  next(_cron, _dialect, _zone, after) {
    const four = new Date(`${after.toISOString().slice(0, 10)}T04:00:00.000Z`);
    return [four > after ? four : new Date(four.getTime() + DAY_MS)];
  },
};

let around: World;
let deps: FakeDeps;
/** Statements that counted: type, first day, day after the last one. */
let requests: string[][];
beforeEach(() => {
  around = world();
  around.now = NOON;
  deps = fakeDeps({}, around);
  deps.schedules = daily;
  requests = [];
  const before = deps.retentionFacts;
  deps.retentionFacts = {
    ...deps.retentionFacts,
    perDay(...args) {
      requests.push(args);
      return before.perDay(...args);
    },
  };
});

const day = (ago: number): string => new Date(NOON.getTime() - ago * DAY_MS).toISOString().slice(0, 10);
/** So many rows on the day that is so many days ago. */
function fill(type: 'cot' | 'geochat', ago: number, rows: number): void {
  deps.retention.rows[type].push(...Array.from({ length: rows }, () => `${day(ago)}T08:00:00.000Z`));
}
const kept = async (type: 'cot' | 'geochat') =>
  (await deps.retentionHistory.days(type)).days.map((each) => [each.day, each.rows]);
const count = (signal = never) => countDays(deps, around.now, signal);
const later = (hours: number): void => void (around.now = new Date(around.now.getTime() + hours * HOUR_MS));

/** As if each row stood for so many: too many to be counted at once. */
function asLarge(factor: number): void {
  const before = deps.retentionFacts;
  const large: RetentionFacts['perDay'] = async (...args) =>
    (await before.perDay(...args)).map((each) => ({ ...each, rows: each.rows * factor }));
  deps.retentionFacts = { ...deps.retentionFacts, perDay: large };
}

describe('count-retention-days', () => {
  it('does nothing where there are no rows', async () => {
    expect(await count()).toEqual({ statements: 0, days: 0, complete: true });
    expect(requests).toEqual([]);
  });

  it('counts all days of both types, from the oldest row to today', async () => {
    for (const ago of [0, 1, 3, 40]) fill('cot', ago, ago + 1);
    fill('geochat', 2, 5);
    expect(await count()).toMatchObject({ days: 41 + 3, complete: true });
    expect(await kept('cot')).toEqual([
      [day(40), 41],
      [day(3), 4],
      [day(1), 2],
      [day(0), 1],
    ]);
    expect(await kept('geochat')).toEqual([[day(2), 5]]);
  });

  it('counts a small table whole, in one statement, each time', async () => {
    for (let ago = 0; ago < 90; ago++) fill('cot', ago, 3);
    await count();
    expect(requests.length).toBeLessThan(6);
    requests.length = 0;
    fill('cot', 50, 1);
    later(1);
    expect(await count()).toEqual({ statements: 1, days: 90, complete: true });
    expect(requests).toEqual([['cot', day(89), day(-1)]]);
    expect(await kept('cot')).toContainEqual([day(50), 4]);
  });

  it('counts a large table day by day', async () => {
    for (let ago = 0; ago < 6; ago++) fill('cot', ago, 2);
    asLarge(60_000);
    await count();
    expect(requests).toEqual([5, 4, 3, 2, 1, 0].map((ago) => ['cot', day(ago), day(ago - 1)]));
    expect((await kept('cot'))[0]).toEqual([day(5), 120_000]);
  });

  it('counts so many days at once as have a hundred thousand rows', async () => {
    for (let ago = 0; ago < 20; ago++) fill('cot', ago, 1);
    asLarge(25_000);
    await count();
    expect(requests).toEqual(
      [
        [19, 18],
        [18, 14],
        [14, 10],
        [10, 6],
        [6, 2],
        [2, -1],
      ].map(([from = 0, to = 0]) => ['cot', day(from), day(to)]),
    );
  });

  it('counts only today, yesterday and what is missing until the early hours', async () => {
    for (let ago = 0; ago < 30; ago++) if (ago !== 7) fill('cot', ago, 1);
    asLarge(100_000);
    await count();
    requests.length = 0;
    later(3);
    await count();
    expect(requests).toEqual([
      ['cot', day(7), day(6)],
      ['cot', day(1), day(-1)],
    ]);
    requests.length = 0;
    later(13.5);
    expect(await count()).toMatchObject({ days: 31 });
    requests.length = 0;
    later(1);
    await count();
    expect(requests.map(([, ...days]) => days)).toEqual([
      [day(7), day(6)],
      [day(0), day(-2)],
    ]);
  });

  it('counts all anew when a run of retention has ended, and removes the days before the oldest row', async () => {
    for (let ago = 0; ago < 30; ago++) fill('cot', ago, 1);
    asLarge(100_000);
    await count();
    requests.length = 0;
    deps.retention.rows.cot = deps.retention.rows.cot.filter((at) => at >= day(9));
    later(1);
    const started = new Date(around.now.getTime() - 60_000).toISOString();
    const ran = runAt(1, { startedAt: started, finishedAt: null, state: 'running' });
    await deps.retentionHistory.keepRuns([ran]);
    await count();
    expect(requests.map(([, from]) => from)).toEqual([day(1), day(0)]);
    expect((await kept('cot')).map(([each]) => each)[0]).toBe(day(9));
    requests.length = 0;
    later(1);
    await deps.retentionHistory.keepRuns([{ ...ran, state: 'done', finishedAt: around.now.toISOString() }]);
    later(1);
    expect(await count()).toMatchObject({ days: 10 });
  });

  it('forgets every day when no row is left, and days that are still to come', async () => {
    for (const ago of [-3, 0, 5]) fill('geochat', ago, 1);
    await deps.retentionHistory.keepDays('geochat', day(-3), day(-4), [{ day: day(-3), rows: 1 }]);
    await count();
    expect(await kept('geochat')).toEqual([
      [day(5), 1],
      [day(0), 1],
    ]);
    deps.retention.rows.geochat = [];
    await count();
    expect(await kept('geochat')).toEqual([]);
  });

  it('stops when it is told to, without a change more, and goes on there the next time', async () => {
    for (let ago = 0; ago < 10; ago++) fill('cot', ago, 1);
    asLarge(100_000);
    const stopping = new AbortController();
    const before = deps.retentionFacts;
    const stopsIn: RetentionFacts['perDay'] = async (...args) => {
      const counted = await before.perDay(...args);
      if (args[1] === day(6)) stopping.abort();
      return counted;
    };
    deps.retentionFacts = { ...deps.retentionFacts, perDay: stopsIn };
    expect(await count(stopping.signal)).toEqual({ statements: 3, days: 3, complete: false });
    expect(await kept('cot')).toEqual([9, 8, 7].map((ago) => [day(ago), 100_000]));
    expect(await countDays(deps, around.now, AbortSignal.abort())).toEqual({ statements: 0, days: 0, complete: false });
    requests.length = 0;
    expect(await count()).toMatchObject({ days: 7, complete: true });
    expect(requests[0]).toEqual(['cot', day(6), day(5)]);
  });

  it('counts nothing while the database of the core is away, which is no failure; another error is one', async () => {
    fill('cot', 0, 1);
    deps.retention.databaseError = new AppError('unavailable', "The core's database does not answer");
    expect(await count()).toEqual({ days: null, problem: "The core's database does not answer" });
    deps.retention.databaseError = new Error('no sense');
    await expect(count()).rejects.toThrow('no sense');
  });
});
