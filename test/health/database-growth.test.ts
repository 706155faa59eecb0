// What the module `database` shows of growth, and that asking it often asks the database little.

import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { DEFAULT_SCHEDULE, KEEP_ALL } from '@holdfast/kit/retention';
import { DAY_MS, MINUTE_MS } from '@holdfast/kit/time';
import { GB, growingWorld, type GrowingWorld } from '../database/fake-growing-world.ts';

/** 28 days of half a gigabyte a day, all of it events, with 60 GB free of 200. */
async function grown(): Promise<GrowingWorld> {
  const growing = growingWorld(60 * GB);
  const { growth, retention, retentionHistory, now } = growing.of;
  for (let hour = 28 * 24; hour >= 0; hour--) growing.past(hour / 24, (20 - hour / 48) * GB);
  const day = (ago: number): string => new Date(now.getTime() - ago * DAY_MS).toISOString().slice(0, 10);
  const days = Array.from({ length: 28 }, (_, ago) => ({ day: day(ago), rows: 500_000 })).toReversed();
  await retentionHistory.keepDays('cot', day(28), day(-1), days);
  for (const [ago, bytes] of [
    [7, 15.5 * GB],
    [0, 19 * GB],
  ] as const)
    await growth.growthHistory.keepTables(day(ago), [
      { schema: 'public', table: 'cot_router', bytes, rows: bytes / 1000 },
      { schema: 'public', table: 'resource', bytes: 0.5 * GB, rows: 100 },
    ]);
  Object.assign(growing.of.wanted.retention, { unit: 'days' });
  Object.assign(retention, { policy: { ...KEEP_ALL }, schedule: DEFAULT_SCHEDULE });
  return growing;
}

describe('the module database', () => {
  it('shows how fast it grows, until when, who fills it, what grew, and what would hold it', async () => {
    const { status, message, data } = await (await grown()).measure('database');
    expect([status, message]).toEqual(['ok', '30 MB (18 MB live). A test write succeeded. Growing 500 MB a day.']);
    expect(data).toMatchObject({
      growth_bytes_per_day: expect.closeTo(0.5 * GB, -7),
      growth_basis: 'trend',
      full_in_days: 120,
      fillers: { seconds: 86_400, uids: [{ name: 'FEED-7', share: 0.96 }] },
      grown_tables: [{ schema: 'public', table: 'cot_router', grown_bytes: 3.5 * GB, grown_days: 7 }],
      policy: {
        state: 'suggested',
        cot_days: 69,
        says: 'COT_RETENTION_DAYS=69 would hold the database at about 40 GB',
      },
    });
    const { full_in_days_earliest: earliest, full_in_days_latest: latest } = data as Record<string, number>;
    expect([earliest! <= 120, latest! >= 120]).toEqual([true, true]);
  });

  it('asks for none of that while it is asked again and again', async () => {
    const growing = await grown();
    const requests: string[] = [];
    const { growth, retention } = growing.of;
    const { growthHistory, growthFacts } = growth;
    const [store, facts] = [{ ...growthHistory }, { ...growthFacts }];
    Object.assign(growthHistory, {
      samples: (since: string) => (requests.push('samples'), store.samples(since)),
      tables: (since: string) => (requests.push('tables'), store.tables(since)),
    });
    growthFacts.fillers = (seconds) => (requests.push('fillers'), facts.fillers(seconds));
    retention.coreRetention.policy = () => (requests.push('policy'), Promise.resolve({ ...KEEP_ALL }));
    await growing.measure('database');
    expect(new Set(requests)).toEqual(new Set(['samples', 'tables', 'fillers', 'policy']));
    requests.length = 0;
    for (let time = 0; time < 40; time++) {
      growing.of.now = new Date(growing.of.now.getTime() + 1000);
      await growing.measure('database');
    }
    expect(requests).toEqual([]);
    growing.of.now = new Date(growing.of.now.getTime() + 5 * MINUTE_MS);
    await growing.measure('database');
    expect(requests).not.toContain('fillers');
    expect(requests).toContain('samples');
  });

  it('says in the data that growth is not known yet, and nothing of it in the message', async () => {
    const { status, message, data } = await growingWorld().measure('database');
    expect([status, message]).toEqual(['ok', '30 MB (18 MB live). A test write succeeded.']);
    expect(data).toMatchObject({
      growth_bytes_per_day: null,
      full_in_days: null,
      growth_basis: 'none',
      growth_reason: 'a forecast needs 6 hours of samples',
      policy: { state: 'unknown' },
      grown_tables: [],
    });
  });

  it('is not worse because who fills it cannot be told, and says why', async () => {
    const growing = await grown();
    growing.of.growth.fillers = () => {
      throw new AppError('unavailable', 'too slow.');
    };
    const { status, data } = await growing.measure('database');
    expect([status, data['fillers'], data['fillers_problem']]).toEqual(['ok', null, 'too slow']);
  });

  it('names no policy before whole days were counted', async () => {
    const growing = await grown();
    await growing.of.retentionHistory.keepDays('cot', '2020-01-01', '2030-01-01', []);
    expect((await growing.measure('database')).data['policy']).toMatchObject({
      state: 'unknown',
      says: expect.stringContaining('no full day of events has been counted lately'),
    });
  });
});

describe('the policy', () => {
  it('does not help against files, which the retention of events leaves alone', async () => {
    const growing = await grown();
    growing.of.retention.policy = { ...KEEP_ALL, cot: 30 };
    const today = growing.of.now.toISOString().slice(0, 10);
    await growing.of.growth.growthHistory.keepTables(today, [
      { schema: 'public', table: 'cot_router', bytes: 15.5 * GB, rows: 15.5e6 },
      { schema: 'public', table: 'resource', bytes: 4 * GB, rows: 800 },
    ]);
    expect((await growing.measure('database')).data['policy']).toMatchObject({
      state: 'nothing_helps',
      says: expect.stringContaining('the table public.resource'),
    });
  });

  it('is known where there is chat alone', async () => {
    const growing = await grown();
    const { retentionHistory, growth, now } = growing.of;
    const day = (ago: number): string => new Date(now.getTime() - ago * DAY_MS).toISOString().slice(0, 10);
    await retentionHistory.keepDays('cot', '2020-01-01', '2030-01-01', []);
    const days = Array.from({ length: 28 }, (_, ago) => ({ day: day(ago), rows: 1_000_000 })).toReversed();
    await retentionHistory.keepDays('geochat', day(28), day(-1), days);
    for (const ago of [7, 0])
      await growth.growthHistory.keepTables(day(ago), [
        { schema: 'public', table: 'cot_router', bytes: 0.1 * GB, rows: 0 },
        { schema: 'public', table: 'cot_router_chat', bytes: (18 - ago / 2) * GB, rows: 36e6 },
      ]);
    expect((await growing.measure('database')).data['policy']).toMatchObject({
      state: 'suggested',
      says: expect.stringContaining('GEOCHAT_RETENTION_DAYS='),
    });
  });

  it('is known at a pace on the first day too, when no table had rows as it was looked at', async () => {
    const growing = growingWorld(6 * GB);
    const today = growing.of.now.toISOString().slice(0, 10);
    await growing.of.growth.growthHistory.keepTables(today, [
      { schema: 'public', table: 'cot_router', bytes: 65_536, rows: 0 },
    ]);
    await growing.minutes(9, () => growing.write(0.01 * GB));
    expect((await growing.measure('database')).data).toMatchObject({
      growth_basis: 'pace',
      policy: { state: 'nothing_helps', says: expect.stringContaining('reduce the senders') },
    });
  });
});

describe('the module disk', () => {
  it('only notes a date that the retention in force will not let come', async () => {
    const growing = await grown();
    for (const sample of growing.of.growth.samples)
      for (const mount of sample.mounts) {
        mount.free_bytes -= 48 * GB;
        mount.total_bytes -= 170 * GB;
      }
    expect((await growing.measure('disk')).status).toBe('warning');
    growing.of.now = new Date(growing.of.now.getTime() + MINUTE_MS);
    growing.of.retention.policy = { ...KEEP_ALL, cot: 30 };
    const { status, message } = await growing.measure('disk');
    expect([status, message]).toEqual(['note', expect.stringContaining('COT_RETENTION_DAYS=30 (in force) holds')]);
  });
});
