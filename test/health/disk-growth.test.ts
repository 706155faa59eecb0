// When the disk is full, and who fills it: what the module says of feeds, imports, copies, gaps and clocks.

import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { DAY_MS, MINUTE_MS } from '@holdfast/kit/time';
import { GB, growingWorld, type GrowingWorld } from '../database/fake-growing-world.ts';
import { mount } from './fake-monitored.ts';

/** Fills what is free in twelve hours. */
const FEED = (80 * GB) / 720;
const QUIET = 0.2e6;

async function afterDaysOfQuiet(days = 3): Promise<GrowingWorld> {
  const growing = growingWorld();
  await growing.minutes(days * 1440, () => growing.write(QUIET));
  return growing;
}

/** An hour apart for so many days until now. */
function pastOf(
  growing: GrowingWorld,
  days: number,
  size: (daysAgo: number) => number,
  beside: (daysAgo: number) => number = () => 0,
): void {
  for (let hour = days * 24; hour >= 0; hour--) growing.past(hour / 24, size(hour / 24), beside(hour / 24));
}

describe('a feed that would fill the disk in twelve hours', () => {
  it.each([0, 1, 2, 3, 4])(
    'is named within ten minutes, and forgotten within fifteen (module %s minutes later)',
    async (later) => {
      const growing = await afterDaysOfQuiet();
      expect((await growing.measure('disk')).status).toBe('ok');
      const seen: string[] = [];
      for (let minute = 1; minute <= 10; minute++) {
        await growing.minutes(1, () => growing.write(FEED));
        if (minute % 5 !== later) continue;
        const { status, message } = await growing.measure('disk');
        if (status === 'warning') seen.push(message);
      }
      expect(seen.at(-1)).toMatch(
        /^\/: full in about 1[12] hours \(\d+ to 1[45]\) at the pace of the last 10 minutes: UID FEED-7 \(a-f-G-U-C, callsign WESTBANK\) sends 96 % of the bytes of events; /,
      );
      await growing.minutes(50, () => growing.write(FEED));
      expect((await growing.measure('disk')).status).toBe('warning');
      await growing.minutes(15, () => growing.write(QUIET));
      expect(await growing.measure('disk')).toMatchObject({ status: 'ok', data: { mounts: [{ basis: 'trend' }] } });
    },
  );

  it('is critical when three hours are left', async () => {
    const growing = await afterDaysOfQuiet(1);
    await growing.minutes(12, () => growing.write(FEED * 6));
    expect((await growing.measure('disk')).status).toBe('critical');
  });

  it('has no name while nobody can say who sends, and says why', async () => {
    const growing = await afterDaysOfQuiet(1);
    growing.of.growth.fillers = () => {
      throw new AppError('unavailable', 'too slow.');
    };
    await growing.minutes(8, () => growing.write(FEED));
    const { status, message } = await growing.measure('disk');
    expect([status, message]).toEqual(['warning', expect.stringContaining('largest senders unknown: too slow; ')]);
  });

  it.each([
    [0.02, 'are a-f-G-U-C, no UID stands out; '],
    [0.2, 'are a-f-G-U-C, no UID stands out (UID FEED-7 (a-f-G-U-C, callsign WESTBANK) sends most, 20 %); '],
  ])('is named by its type where the largest UID has %s of it', async (share, says) => {
    const growing = await afterDaysOfQuiet(1);
    const of = growing.of.growth.fillers;
    growing.of.growth.fillers = (seconds) => ({
      ...of(seconds),
      uids: of(seconds).uids.map((uid) => ({ ...uid, share })),
    });
    await growing.minutes(8, () => growing.write(FEED));
    expect((await growing.measure('disk')).message).toContain(`97 % of the bytes of events ${says}`);
  });

  it('is not blamed on a client where none came: something else fills the database', async () => {
    const growing = await afterDaysOfQuiet(1);
    const nothing = growing.of.growth.fillers;
    growing.of.growth.fillers = (seconds) => ({ ...nothing(seconds), sampled: 0, uids: [], types: [] });
    await growing.minutes(8, () => growing.write(FEED));
    expect((await growing.measure('disk')).message).toContain('no events arrived in that time');
  });

  it('is one beside the database, and no matter of the pace', async () => {
    const growing = await afterDaysOfQuiet(1);
    await growing.minutes(30, () => (growing.freeBytes -= FEED));
    expect((await growing.measure('disk')).status).toBe('ok');
  });
});

describe('nothing is raised by', () => {
  it('a stack that has just been started, whatever is written beside it and into it', async () => {
    const growing = growingWorld();
    expect((await growing.measure('disk')).data).toMatchObject({
      mounts: [{ full_in_days: null, basis: 'none', reason: 'a forecast needs 6 hours of samples' }],
    });
    await growing.minutes(4, () => growing.write(1 * GB));
    await growing.minutes(300, () => (growing.freeBytes -= 0.1 * GB));
    expect((await growing.measure('disk')).status).toBe('ok');
  });

  it('an import of 5 GB in three minutes, with 80 GB free', async () => {
    const growing = await afterDaysOfQuiet();
    await growing.minutes(3, () => growing.write((5 * GB) / 3));
    for (let minute = 0; minute < 60; minute++) {
      expect([minute, (await growing.measure('disk')).status]).toEqual([minute, 'ok']);
      await growing.minutes(minute < 20 ? 1 : 30, () => growing.write(QUIET));
    }
  });

  it('the copy that a VACUUM FULL makes each night', async () => {
    const copy = (daysAgo: number): number => (Math.round(daysAgo * 24) % 24 === 2 ? 30 * GB : 0);
    for (const days of [1, 2, 3, 20]) {
      const growing = growingWorld();
      pastOf(growing, days, (ago) => 20 * GB - ago * QUIET * 1440, copy);
      expect([days, (await growing.measure('disk')).status]).toEqual([days, 'ok']);
    }
  });

  it('a database that shrinks', async () => {
    const growing = growingWorld(2 * GB);
    pastOf(growing, 20, (ago) => (20 + ago) * GB);
    const { status, data } = await growing.measure('disk');
    expect([status, data]).toEqual(['ok', expect.objectContaining({ growth_problem: null })]);
    expect(data['mounts']).toMatchObject([{ full_in_days: null, reason: 'the disk is not filling up' }]);
  });

  it('a clock that jumps, in whichever direction', async () => {
    const growing = await afterDaysOfQuiet(1);
    const now = growing.of.now.getTime();
    for (const jump of [-2 * 365 * DAY_MS, -DAY_MS / 2, 3 * MINUTE_MS, 365 * DAY_MS]) {
      growing.of.now = new Date(now + jump);
      expect([jump, (await growing.measure('disk')).status]).toEqual([jump, 'ok']);
    }
  });

  it('samples that have ended: what was is not told as what is', async () => {
    const growing = growingWorld(2 * GB);
    pastOf(growing, 20, (ago) => (20 - ago * 0.5) * GB);
    expect((await growing.measure('disk')).status).toBe('critical');
    growing.of.now = new Date(growing.of.now.getTime() + 120 * MINUTE_MS);
    const { status, message } = await growing.measure('disk');
    expect([status, message]).toEqual([
      'ok',
      expect.stringContaining('Growth is unknown: the last sample is 2 hours old'),
    ]);
  });

  it('WAL that grows up to its limit', async () => {
    const growing = growingWorld(12 * GB);
    for (let hour = 48; hour >= 0; hour--) {
      growing.walBytes = ((48 - hour) / 48) * GB;
      growing.past(hour / 24, 20 * GB, growing.walBytes);
    }
    expect((await growing.measure('disk')).data['mounts']).toMatchObject([{ reason: 'the disk is not filling up' }]);
  });

  it("Holdfast's own database being away: growth is not known then, and the message says so", async () => {
    const growing = growingWorld();
    growing.of.growth.growthHistory.samples = () =>
      Promise.reject(new AppError('unavailable', 'No answer within 5 s.'));
    for (const module of ['disk', 'database']) {
      const { status, message } = await growing.measure(module);
      expect([status, message]).toEqual(['ok', expect.stringContaining('Growth is unknown: No answer within 5 s')]);
    }
  });
});

describe('the long run', () => {
  const grows = (perDay: number, days: number, freeGb: number): GrowingWorld => {
    const growing = growingWorld(freeGb * GB);
    pastOf(growing, days, (ago) => (20 - ago * perDay) * GB);
    growing.of.growth.fillers = (seconds) => ({ ...growingWorld().of.growth.fillers(seconds), bytes: perDay * GB });
    return growing;
  };

  it.each([
    [0.5, 20, 'ok'],
    [0.5, 12, 'warning'],
    [0.5, 2, 'critical'],
  ])('of %d GB a day with %d GB free is %s', async (perDay, free, status) =>
    expect((await grows(perDay, 28, free).measure('disk')).status).toBe(status),
  );

  it('names the date, the growth and who fills it', async () => {
    expect((await grows(0.5, 28, 12).measure('disk')).message).toMatch(
      /^\/: full in about 24 days \(\d+ to \d+\), growing 500 MB a day: UID FEED-7 .* sends 96 %.*; warning at 30 days\.$/,
    );
  });

  it('survives a week without samples', async () => {
    const growing = growingWorld(12 * GB);
    for (let hour = 28 * 24; hour >= 0; hour--)
      if (hour < 10 * 24 || hour > 17 * 24) growing.past(hour / 24, (20 - (hour / 24) * 0.5) * GB);
    expect((await growing.measure('disk')).data['mounts']).toMatchObject([{ full_in_days: 24, basis: 'trend' }]);
  });

  it('is never critical while nobody can be sure, as after half a day', async () => {
    const growing = growingWorld(2 * GB);
    pastOf(growing, 0.5, (ago) => (20 - ago * 0.6) * GB);
    const { status, data } = await growing.measure('disk');
    expect(data['mounts']).toMatchObject([{ full_in_days: expect.closeTo(3.3, 0) }]);
    expect(status).toBe('warning');
  });

  it('counts WAL that may still come as used', async () => {
    const growing = growingWorld(12 * GB);
    growing.walBytes = 0;
    pastOf(growing, 28, (ago) => (20 - ago * 0.5) * GB);
    expect((await growing.measure('disk')).data['mounts']).toMatchObject([{ full_in_days: 22 }]);
  });

  it('does not take everything that is free for WAL that may never come', async () => {
    const growing = growingWorld(0.8 * GB);
    growing.walBytes = 0.1 * GB;
    pastOf(growing, 28, (ago) => (20 - ago * 0.001) * GB);
    const { status, data } = await growing.measure('disk');
    expect([status, data['mounts']]).toEqual(['ok', [expect.objectContaining({ full_in_days: 200 })]]);
  });

  it('of another disk is its own: neither its clients nor its policy are told', async () => {
    const growing = grows(0.5, 28, 12);
    for (const [index, sample] of growing.of.growth.samples.entries())
      sample.mounts.push({
        mount: '/logs',
        total_bytes: 50 * GB,
        free_bytes: (10 + (28 * 24 - index) / 24) * GB,
        holds_database: false,
        holds_wal: false,
      });
    growing.of.mounts.push(mount('/logs', 40));
    const { status, details } = await growing.measure('disk');
    const logs = /^\/logs: full in about 10 days \([^)]*\), growing 1 GB a day; warning at 30 days\.$/;
    expect([status, details]).toEqual([
      'warning',
      [expect.stringMatching(logs), expect.stringMatching(/^\/: full in about 24 days .* UID FEED-7/)],
    ]);
  });

  it('that is not the database is said to be something else', async () => {
    const growing = growingWorld(12 * GB);
    pastOf(
      growing,
      28,
      () => 20 * GB,
      (ago) => -ago * 0.5 * GB,
    );
    expect((await growing.measure('disk')).message).toContain('mostly not the database');
  });
});
