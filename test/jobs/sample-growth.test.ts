import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '@holdfast/kit/time';
import { JOBS } from '../../jobs/index.ts';
import { run as sampleGrowth } from '../../jobs/sample-growth.ts';
import { JobRunner } from '../../shared/jobs/run.ts';
import { secondsPass } from './seconds-pass.ts';
import { mount, type World, world } from '../health/fake-monitored.ts';
import { type FakeDeps, fakeDeps } from '../http/fake-deps.ts';

const NOON = Date.parse('2026-05-20T12:00:00.000Z');
const GB = 1e9;
const never = new AbortController().signal;

let around: World;
let deps: FakeDeps;
beforeEach(() => {
  around = world();
  around.now = new Date(NOON);
  deps = fakeDeps({}, around);
});

const sample = (signal = never) => sampleGrowth(deps, around.now, signal);
const at = (ms: number): void => void (around.now = new Date(ms));
const times = (): string[] => around.growth.samples.map((each) => each.at);
const iso = (ms: number): string => new Date(ms).toISOString();
/** A run each so many minutes, `until` not among them. */
async function runs(from: number, until: number, everyMinutes = 1): Promise<void> {
  for (let ms = from; ms < until; ms += everyMinutes * MINUTE_MS) {
    at(ms);
    await sample();
  }
}

describe('sample-growth', () => {
  it('notes the database, its WAL and every mount, and which of them hold these', async () => {
    const use = { used_pct: 50, inodes_used_pct: null };
    around.wanted.databaseDirectory = '/srv/pg/';
    around.mounts = [
      { mount: '/', paths: ['/', '/data'], total_bytes: 100 * GB, free_bytes: 50 * GB, ...use },
      { mount: '/srv', paths: ['/srv/pg/'], total_bytes: 10 * GB, free_bytes: 5 * GB, ...use },
      { mount: '/wal', paths: ['/srv/pg/pg_wal'], total_bytes: 1 * GB, free_bytes: 1 * GB, ...use },
    ];
    expect(await sample()).toEqual({ sampled: true, tables: 1, thinned: 0, left_out: {} });
    const { total_bytes, wal_bytes, max_wal_bytes } = around.size;
    const none = { holds_database: false, holds_wal: false };
    expect(around.growth.samples).toEqual([
      {
        at: iso(NOON),
        database_bytes: total_bytes,
        wal_bytes,
        max_wal_bytes,
        mounts: [
          { mount: '/', total_bytes: 100 * GB, free_bytes: 50 * GB, ...none },
          { mount: '/srv', total_bytes: 10 * GB, free_bytes: 5 * GB, ...none, holds_database: true },
          { mount: '/wal', total_bytes: 1 * GB, free_bytes: 1 * GB, ...none, holds_wal: true },
        ],
      },
    ]);
  });

  it('does not guess where the database lies when that is not known', async () => {
    around.wanted.databaseDirectory = undefined;
    await sample();
    const [{ mounts } = { mounts: [] }] = around.growth.samples;
    expect(mounts.length).toBeGreaterThan(0);
    for (const mount of mounts) expect(mount).toMatchObject({ holds_database: false, holds_wal: false });
  });

  it('leaves out what is away and keeps the rest', async () => {
    around.databaseError = 'no server';
    around.growth.unavailable = true;
    expect(await sample()).toMatchObject({
      sampled: true,
      tables: null,
      left_out: { database: 'no server', tables: "The core's database does not answer" },
    });
    around.databaseError = undefined;
    deps.monitored.disks.use = async () =>
      Promise.reject(new Error('the file system of /srv has not answered for 5 s'));
    at(NOON + MINUTE_MS);
    expect((await sample())['left_out']).toMatchObject({ disks: expect.stringContaining('/srv') });
    expect(around.growth.samples).toMatchObject([
      { database_bytes: null, wal_bytes: null, max_wal_bytes: null, mounts: [expect.anything()] },
      { database_bytes: around.size.total_bytes, mounts: [] },
    ]);
  });

  it('fails when our own database is away', async () => {
    deps.growthHistory.keepSample = async () => Promise.reject(new AppError('unavailable', 'Our own database'));
    await expect(sample()).rejects.toThrow('Our own database');
  });

  it('notes the tables once a day in UTC, and again at the next run when they could not be read', async () => {
    at(Date.parse('2026-05-20T23:58:00.000Z'));
    around.growth.unavailable = true;
    expect(await sample()).toMatchObject({ tables: null });
    around.growth.unavailable = false;
    const done: unknown[] = [];
    for (let minutes = 1; minutes < 5; minutes++) {
      at(Date.parse('2026-05-20T23:58:00.000Z') + minutes * MINUTE_MS);
      done.push((await sample())['tables']);
    }
    expect(done).toEqual([1, 1, null, null]);
    expect(around.growth.days.map(({ day }) => day)).toEqual(['2026-05-20', '2026-05-21']);
  });

  it('thins once an hour', async () => {
    await runs(NOON - 3 * DAY_MS, NOON - 2 * DAY_MS - HOUR_MS, 10);
    await runs(NOON - 2 * HOUR_MS, NOON);
    expect(times().filter((each) => each < iso(NOON - 2 * DAY_MS - HOUR_MS))).toHaveLength(23);
    const store = deps.growthHistory;
    let thinned = 0;
    deps.growthHistory = { ...store, thin: (now) => (thinned++, store.thin(now)) };
    await runs(NOON, NOON + 2 * HOUR_MS);
    expect(thinned).toBe(2);
  });

  it('has a gap where the stack was off, and no invented samples', async () => {
    await runs(NOON, NOON + 3 * MINUTE_MS);
    await runs(NOON + 7 * DAY_MS, NOON + 7 * DAY_MS + 2 * MINUTE_MS);
    expect(times()).toEqual([0, 1, 2, 7 * 24 * 60, 7 * 24 * 60 + 1].map((minutes) => iso(NOON + minutes * MINUTE_MS)));
  });

  it.each([-10, 10])(
    'forgets what it saw while the clock was wrong for a while, and nothing else: %d years',
    async (years) => {
      const [began, wrong] = [NOON - 2 * HOUR_MS, NOON + 10 * MINUTE_MS];
      await runs(began, wrong);
      const right = times();
      await runs(wrong + years * 365 * DAY_MS, wrong + years * 365 * DAY_MS + 20 * MINUTE_MS);
      expect(times()).toHaveLength(right.length + 20);
      const after = wrong + 20 * MINUTE_MS;
      await runs(after, NOON + 2 * HOUR_MS);
      expect(times().slice(0, right.length)).toEqual(right);
      expect(times()).toHaveLength(4 * 60 - 20);
      const days = around.growth.days.map(({ day }) => day);
      expect(days).toEqual(['2026-05-20']);
    },
  );

  it('changes nothing more once it has lost its claim', async () => {
    const lost = new AbortController();
    lost.abort();
    expect(await sample(lost.signal)).toMatchObject({ sampled: false });
    expect([around.growth.samples, around.growth.days]).toEqual([[], []]);
  });

  it('does not take the copy that a VACUUM FULL makes for growth', async () => {
    around.size.locked_tables = ['public.cot_router'];
    around.size.total_bytes *= 2;
    expect(await sample()).toMatchObject({ sampled: true, left_out: {} });
    expect(around.growth.samples).toMatchObject([{ database_bytes: null, wal_bytes: around.size.wal_bytes }]);
  });

  it('has the disk measured at once while something fills it quickly, and when that has ended', async () => {
    around.wanted.databaseDirectory = '/data/pgdata';
    around.mounts = [{ ...mount('/', 60), free_bytes: 80 * GB, paths: ['/data/pgdata'] }];
    const requests: number[] = [];
    for (let minute = 0; minute < 30; minute++) {
      at(NOON + minute * MINUTE_MS);
      if (minute > 10 && minute <= 20) around.size.total_bytes += 0.11 * GB;
      deps.health.forget = (module) => void (module === 'disk' && requests.push(minute));
      await sample();
    }
    expect(requests).toEqual([16, 17, 18, 19, 20, 21, 22, 23]);
  });

  it('takes one sample a minute, however many processes there are', async () => {
    const job = JOBS.filter(({ name }) => name === 'sample-growth');
    const runners = ['a', 'b', 'c'].map((runner) => new JobRunner(job, deps, runner));
    for (let second = 0; second < 300; second += 5) {
      at(NOON + second * 1000);
      secondsPass(runners, around.now);
      await Promise.all(runners.map((runner) => runner.idle()));
    }
    expect(times()).toHaveLength(5);
    expect(new Set(times().map((each) => each.slice(0, 16))).size).toBe(5);
  });
});
