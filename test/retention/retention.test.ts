// What the module says of policy, schedule and runs: each finding by itself, and that it is silent otherwise.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import { DEFAULT_SCHEDULE, KEEP_ALL, NEVER, type RetentionPolicy } from '@holdfast/kit/retention';
import { retention } from '../../shared/health/modules/retention.ts';
import type { Measurement } from '../../shared/health/port.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { atDay, fakeMonitored, history, NOW, type World, world } from '../health/fake-monitored.ts';

/** The default schedule fires at 03:00; it is 05:06:07 on the fourth. */
const LAST_NIGHT = '2026-03-04T03:00:00.000Z';
let around: World;
beforeEach(() => {
  around = world();
});

const measure = (failuresInRow = 0): Promise<Measurement> =>
  retention.measure(fakeMonitored(around), DEFAULT_THRESHOLDS, history({ failuresInRow }));

/** In force at the core, written in its files, and asked for since `since`. */
async function keeping(days: Partial<RetentionPolicy>, schedule = DEFAULT_SCHEDULE, since = atDay(-30)): Promise<void> {
  const policy = { ...KEEP_ALL, ...days };
  Object.assign(around.retention, { policy, schedule });
  around.retention.files = { policy: { ...policy }, exemptKeywords: [], schedule };
  await around.retentionHistory.seenInForce(since, { policy, schedule });
}

function run(startedAt: string, more: Partial<CoreRetentionRun> = {}): CoreRetentionRun {
  const finishedAt = new Date(Date.parse(startedAt) + 60_000).toISOString();
  return {
    id: `run of ${startedAt}`,
    trigger: 'schedule',
    state: 'done',
    startedAt,
    finishedAt,
    limits: { cot: atDay(-30) },
    rows: { cot: 1200 },
    included: { cot: 0, files: 0 },
    expected: 1200,
    bytes: 1_200_000,
    error: null,
    ...more,
  };
}

const ran = (startedAt: string, more: Partial<CoreRetentionRun> = {}): number =>
  around.retention.runs.unshift(run(startedAt, more));

describe('retention that is not set up', () => {
  it('is ok, says that nothing is deleted, and counts no rows', async () => {
    around.retention.databaseError = new Error('this must not be asked');
    expect(await measure()).toMatchObject({
      status: 'ok',
      message: 'Nothing is deleted: no days are set.',
      details: [],
      data: { unit: 'days', keeps_everything: true, overdue_runs: null, first_run_rows: null, last_run: null },
    });
  });

  it('says that a schedule alone deletes nothing, however long ago it should have run', async () => {
    await keeping({});
    expect(await measure()).toMatchObject({
      status: 'ok',
      message: 'Nothing is deleted: no days are set. The schedule 0 0 3 * * ? deletes nothing.',
      data: { next_run: '2026-03-05T03:00:00.000Z', overdue_runs: null },
    });
  });

  it('does not care about old failures, nor whether our own database answers', async () => {
    ran(LAST_NIGHT, { state: 'failed', error: 'no space' });
    around.retentionHistory.runs = async () => Promise.reject(new AppError('unavailable', 'it is away'));
    expect((await measure()).status).toBe('ok');
  });
});

describe('retention that does what it should', () => {
  it('is ok, and tells policy, last run and next run', async () => {
    await keeping({ cot: 30, geochat: 90 });
    ran(LAST_NIGHT, { rows: { cot: 1200, geochat: 30 }, included: { cot: 3, files: 1 } });
    expect(await measure()).toMatchObject({
      status: 'ok',
      message:
        'Kept: cot 30 days, geochat 90 days. Last run 2026-03-04 03:00:00 UTC (1234 rows), next 2026-03-05 03:00:00 UTC.',
      details: [],
      data: {
        time_zone: 'UTC',
        core_answers: true,
        policy_from: 'core',
        policy: { ...KEEP_ALL, cot: 30, geochat: 90 },
        schedule: DEFAULT_SCHEDULE,
        next_run_timestamp_seconds: Date.parse('2026-03-05T03:00:00.000Z') / 1000,
        in_force_since: atDay(-30),
        last_run: { started_at: LAST_NIGHT, state: 'done', rows: 1234, error: null },
        last_run_timestamp_seconds: Date.parse(LAST_NIGHT) / 1000,
        overdue_runs: 0,
        mismatch_count: 0,
        rows_over_age: [],
      },
    });
  });

  it('tells days and rows of each type', async () => {
    await keeping({ cot: 30 });
    ran(LAST_NIGHT);
    const { data } = await measure();
    expect(data['types']).toEqual([
      { name: 'cot', kept_days: 30, core_value: 30, last_run_rows: 1200, over_age: false },
      ...['geochat', 'files', 'missionpackages', 'missions'].map((name) => ({
        name,
        kept_days: null,
        core_value: null,
        last_run_rows: null,
        over_age: false,
      })),
    ]);
  });
});

describe('days without a schedule', () => {
  it('are a note: nothing runs', async () => {
    await keeping({ cot: 30 }, NEVER);
    around.retention.rows.cot = [atDay(-400)];
    expect(await measure()).toMatchObject({
      status: 'note',
      message: 'days are set, but no schedule: nothing is deleted until RETENTION_CRON or cron is set.',
      data: { overdue_runs: 0, next_run: null },
    });
  });
});

describe('a run that is due', () => {
  const overdue = async (): Promise<[string, unknown]> => {
    const { status, data } = await measure();
    return [status, data['overdue_runs']];
  };

  it.each([
    ['2026-03-04T03:09:59.000Z', 'ok', 0],
    ['2026-03-04T03:10:00.000Z', 'ok', 0],
    ['2026-03-04T03:10:01.000Z', 'warning', 1],
    ['2026-03-05T03:10:00.000Z', 'warning', 1],
    ['2026-03-05T03:10:01.000Z', 'critical', 2],
  ])('at %s, ten minutes or more after 03:00, is %s: %d overdue', async (now, ...expected) => {
    await keeping({ cot: 30 });
    ran('2026-03-03T03:00:00.000Z');
    around.now = new Date(now);
    expect(await overdue()).toEqual(expected);
  });

  it('is named with its schedule and when it was due', async () => {
    await keeping({ cot: 30 });
    ran('2026-03-02T03:00:00.000Z');
    expect(await measure()).toMatchObject({
      status: 'critical',
      message: 'the schedule 0 0 3 * * ?: 2 runs did not start, first due at 2026-03-03 03:00:00 UTC; critical from 2.',
      data: { overdue_since: '2026-03-03T03:00:00.000Z' },
    });
  });

  it.each([
    ['was ordered after it', run('2026-03-04T04:30:00.000Z', { trigger: 'order' })],
    ['has failed, which is another matter', run(LAST_NIGHT, { state: 'failed', error: 'x' })],
    ['was going on at that moment', run('2026-03-04T02:59:00.000Z', { finishedAt: '2026-03-04T03:05:00.000Z' })],
    [
      'is still going on',
      run('2026-03-03T03:00:00.000Z', { state: 'running', finishedAt: null, error: null, rows: { cot: 1 } }),
    ],
  ])('is not missed when a run %s', async (_, given) => {
    await keeping({ cot: 30 });
    around.retention.runs.unshift(given);
    expect((await overdue())[1]).toBe(0);
  });

  it('is missed when the run that was going on then was cut off', async () => {
    await keeping({ cot: 30 });
    ran('2026-03-04T02:59:00.000Z', { state: 'interrupted', finishedAt: '2026-03-04T05:00:00.000Z' });
    expect((await overdue())[1]).toBe(1);
  });

  it('counts from when policy and schedule are in force', async () => {
    await keeping({ cot: 30 }, DEFAULT_SCHEDULE, '2026-03-04T03:00:01.000Z');
    expect(await overdue()).toEqual(['ok', 0]);
    around = world();
    await keeping({ cot: 30 }, DEFAULT_SCHEDULE, '2026-03-04T02:59:59.000Z');
    expect(await overdue()).toEqual(['warning', 1]);
  });

  it('counts by the clock of the time zone of the core', async () => {
    await keeping({ cot: 30 });
    ran('2026-03-03T03:00:00.000Z');
    const monitored = { ...fakeMonitored(around), timeZone: 'America/New_York' };
    const { data } = await retention.measure(monitored, DEFAULT_THRESHOLDS, history());
    expect([data['next_run'], data['overdue_since']]).toEqual(['2026-03-04T08:00:00.000Z', '2026-03-03T08:00:00.000Z']);
  });

  it('of every second is not counted without end', async () => {
    await keeping({ cot: 30 }, '* * * * * ?');
    expect(await measure()).toMatchObject({
      status: 'critical',
      message: expect.stringContaining('100 runs or more did not start'),
      data: { overdue_runs: 100 },
    });
  });
});

describe('rows that a run left', () => {
  beforeEach(async () => {
    await keeping({ cot: 30, geochat: 90 });
    ran(LAST_NIGHT);
  });

  it('are a warning that names their type', async () => {
    around.retention.rows.cot = [atDay(-31)];
    expect(await measure()).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/^rows of cot are older than the limit of the last successful run/),
      data: { rows_over_age: ['cot'] },
    });
  });

  it.each([
    ['are younger than its limit', () => (around.retention.rows.cot = [atDay(-30)])],
    ['are of a type whose days were set after it', () => (around.retention.rows.geochat = [atDay(-100)])],
  ])('are none when they %s', async (_, change) => {
    change();
    expect(await measure()).toMatchObject({ status: 'ok', data: { rows_over_age: [] } });
  });

  it('are none of a type that has no days any more', async () => {
    await keeping({ geochat: 90 });
    around.retention.rows.cot = [atDay(-31)];
    expect((await measure()).data['rows_over_age']).toEqual([]);
  });

  it('are not known where a look takes too long, which is a note and never ok', async () => {
    around.retention.isSlow = true;
    const { status, message, data } = await measure();
    expect([status, message]).toEqual(['note', "couldn't check cot in time for rows that the last run left."]);
    const types = data['types'] as { name: string; over_age: boolean | null }[];
    expect(types.find(({ name }) => name === 'cot')?.over_age).toBeNull();
    expect(data).toMatchObject({ rows_over_age: [], not_in_time: ['cot'] });
  });

  it('are not looked for while a run is going on', async () => {
    around.retention.rows.cot = [atDay(-31)];
    ran('2026-03-04T05:00:00.000Z', { state: 'running', finishedAt: null });
    expect(await measure()).toMatchObject({ status: 'ok', data: { running: true, rows_over_age: [] } });
  });

  it('are not looked for after a run that did not say that it is done', async () => {
    around.retention.runs.splice(0);
    around.retention.rows.cot = [atDay(-31)];
    ran(LAST_NIGHT, { state: 'failed', error: 'no space' });
    expect((await measure()).data['rows_over_age']).toEqual([]);
  });
});

describe('the last run', () => {
  beforeEach(() => keeping({ cot: 30 }));

  it('that has failed is a warning with its error', async () => {
    ran(LAST_NIGHT, { state: 'failed', error: 'no space left on device.' });
    expect(await measure()).toMatchObject({
      status: 'warning',
      message: 'the last run (2026-03-04 03:00:00 UTC) failed: no space left on device.',
    });
  });

  it.each([
    [
      'The core stopped, or another core replaced it. The next run deletes the rest.',
      'The core stopped, or another core replaced it. The next run deletes the rest',
    ],
    [null, 'the next run deletes the rest'],
  ])(
    'that was interrupted is a warning, and the next one deletes the rest, which is said once: %s',
    async (error, says) => {
      ran(LAST_NIGHT, { state: 'interrupted', error });
      expect((await measure()).message).toBe(`the last run (2026-03-04 03:00:00 UTC) was interrupted: ${says}.`);
    },
  );

  it('is the newest of those that the core tells and those that are written down', async () => {
    ran('2026-03-03T03:00:00.000Z', { state: 'failed', error: 'no space' });
    await around.retentionHistory.keepRuns([{ ...run(LAST_NIGHT), source: 'core' }]);
    expect(await measure()).toMatchObject({ status: 'ok', data: { last_run: { started_at: LAST_NIGHT } } });
  });

  it('is told as the core has it now, not as it was written down', async () => {
    ran(LAST_NIGHT);
    await around.retentionHistory.keepRuns([{ ...run(LAST_NIGHT, { state: 'running' }), source: 'core' }]);
    expect(await measure()).toMatchObject({ status: 'ok', data: { running: false, last_run: { state: 'done' } } });
  });
});

describe('a first run', () => {
  const NEXT_NIGHT = '2026-03-05T03:00:00.000Z';
  const order = (cot: string): CoreRetentionRun =>
    run('2026-03-05T05:06:07.000Z', { trigger: 'order', limits: { cot } });
  const old = (count: number): string[] => Array.from({ length: count }, () => '2025-01-01T00:00:00.000Z');
  beforeEach(() => keeping({ cot: 30 }, DEFAULT_SCHEDULE, NOW.toISOString()));

  it.each([
    [1_000_000, 'ok'],
    [1_000_001, 'note'],
  ])('that will delete %d rows is %s', async (rows, status) => {
    around.retention.rows.cot = old(rows);
    const { status: found, message, data } = await measure();
    expect([found, data['first_run_rows']]).toEqual([status, rows]);
    if (status === 'note')
      expect(message).toMatch(
        /^the first run with these days, at 2026-03-05 03:00:00 UTC, will delete 1000001 rows; check GET/,
      );
  });

  it('is not counted any more when one is done', async () => {
    around.retention.rows.cot = old(10);
    expect((await measure()).data['first_run_rows']).toBe(10);
    around.now = new Date('2026-03-05T04:00:00.000Z');
    ran('2026-03-05T03:00:00.000Z');
    around.retention.rows.cot = [];
    expect((await measure()).data['first_run_rows']).toBeNull();
  });

  it.each([
    ['none', [], 7],
    ['one before these days were in force', [run(LAST_NIGHT)], 7],
    ['one that has failed', [run(NEXT_NIGHT, { state: 'failed', error: 'x' })], 7],
    ['an order with an older cutoff', [order(atDay(-60))], 7],
    ['an order that left a type out', [run(NEXT_NIGHT, { trigger: 'order', limits: {} })], 7],
    ['an order with these days', [order(atDay(-29))], null],
    ['one of the schedule, and an order with an older cutoff after it', [order(atDay(-60)), run(NEXT_NIGHT)], null],
  ] as const)('lies ahead until a run with these days is done: %s', async (_, runs, expected) => {
    around.retention.rows.cot = old(7);
    around.retention.runs = [...runs];
    around.now = new Date('2026-03-05T06:00:00.000Z');
    expect((await measure()).data['first_run_rows']).toBe(expected);
  });

  it('lies ahead again when days were made fewer', async () => {
    around.now = new Date('2026-03-05T06:00:00.000Z');
    ran(NEXT_NIGHT);
    expect((await measure()).data['first_run_rows']).toBeNull();
    around.retention.rows.cot = old(1_000_001);
    await keeping({ cot: 20 }, DEFAULT_SCHEDULE, '2026-03-05T05:00:00.000Z');
    expect(await measure()).toMatchObject({
      data: { first_run_rows: 1_000_001 },
      details: expect.arrayContaining([expect.stringMatching(/^the first run with these days, at 2026-03-06/)]),
    });
  });

  it('that takes too long to count is told by an estimate', async () => {
    around.retention.rows.cot = old(1_000_000);
    around.retention.isSlow = true;
    expect(await measure()).toMatchObject({
      status: 'note',
      message: expect.stringContaining('will delete about 1100000 rows'),
      data: { first_run_exact: false },
    });
  });
});

describe('the thresholds', () => {
  it('of overdue runs are those of the module', async () => {
    await keeping({ cot: 30 });
    ran('2026-03-03T03:00:00.000Z');
    const modules = { ...DEFAULT_THRESHOLDS.modules };
    modules['retention'] = { interval: 300, warning: 2, critical: 5, alert_min_level: 'warning' };
    const thresholds = { ...DEFAULT_THRESHOLDS, modules };
    expect((await retention.measure(fakeMonitored(around), thresholds, history())).status).toBe('ok');
  });
});
