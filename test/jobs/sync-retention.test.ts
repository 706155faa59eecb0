// The job sync-retention: what the variables say is in force, by the core's own API or by its files, and nothing else is touched.

import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { KEEP_ALL } from '@holdfast/kit/retention';
import { isWanted, run } from '../../jobs/sync-retention.ts';
import type { WantedRetention } from '../../shared/retention/port.ts';
import { fakeDeps } from '../http/fake-deps.ts';

const never = new AbortController().signal;

function syncing(given: Partial<WantedRetention>) {
  const deps = fakeDeps();
  deps.monitored.wanted.retention = { cot: undefined, geochat: undefined, cron: undefined, unit: 'days', ...given };
  const { retention } = deps;
  retention.unit = given.unit ?? 'days';
  retention.tellsRuns = retention.unit === 'days';
  const calls: unknown[] = [];
  const core = { ...retention.coreRetention };
  const files = { ...retention.retentionFiles };
  retention.coreRetention.changePolicy = (change) => {
    calls.push(change);
    return core.changePolicy(change);
  };
  retention.coreRetention.changeSchedule = (cron) => {
    calls.push(cron);
    return core.changeSchedule(cron);
  };
  retention.retentionFiles.sync = (wanted) => {
    calls.push('files');
    return files.sync(wanted);
  };
  return { deps, retention, calls, sync: () => run(deps, deps.now(), never) };
}

describe('while the core runs', () => {
  it('puts right what the variables own, through its API, and says so', async () => {
    const { deps, retention, calls, sync } = syncing({ cot: 30, geochat: 90, cron: '0 0 4 ? * SUN' });
    Object.assign(retention.policy, { geochat: 90, files: 12 });
    expect(await sync()).toEqual({ changed: 2 });
    expect(calls).toEqual([{ cot: 30 }, '0 0 4 ? * SUN']);
    expect(retention.policy).toEqual({ ...KEEP_ALL, cot: 30, geochat: 90, files: 12 });
    expect(deps.log.events).toEqual([
      {
        level: 'info',
        event: 'retention.synced',
        fields: { where: 'core', messages: ['cot is kept 30 days', 'the schedule is 0 0 4 ? * SUN'] },
      },
    ]);
  });

  it('is quiet when everything is as it should be, however the schedule is spelt', async () => {
    const { deps, retention, calls, sync } = syncing({ cot: 30, cron: '0 0 4 ? * SUN' });
    Object.assign(retention, { policy: { ...KEEP_ALL, cot: 30, missions: 5 }, schedule: '0 0  4 ? * sun' });
    expect(await sync()).toEqual({ changed: 0 });
    expect([calls, deps.log.events]).toEqual([[], []]);
  });

  it('speaks to a release in seconds and in its own cron', async () => {
    const { calls, sync } = syncing({ geochat: 2, cron: '0 0 4 ? * 1', unit: 'seconds' });
    await sync();
    expect(calls).toEqual([{ geochat: 172_800 }, '0 0 4 ? * 0']);
  });

  it('sets the default schedule when days are set and there is none, and leaves that of a person', async () => {
    const { retention, calls, sync } = syncing({ cot: 30 });
    await sync();
    expect(calls).toEqual([{ cot: 30 }, '0 0 3 * * ?']);
    retention.schedule = '0 0 5 * * ?';
    expect(await sync()).toEqual({ changed: 0 });
  });

  it('leaves the days of a person where another variable sets others', async () => {
    const { retention, calls, sync } = syncing({ cot: 30 });
    Object.assign(retention, { policy: { ...KEEP_ALL, geochat: 90 }, schedule: '0 0 5 * * ?' });
    await sync();
    expect([calls, retention.policy]).toEqual([[{ cot: 30 }], { ...KEEP_ALL, cot: 30, geochat: 90 }]);
  });

  it('sets a schedule without days, and no days then', async () => {
    const { calls, sync } = syncing({ cron: '0 0 5 * * ?' });
    await sync();
    expect(calls).toEqual(['0 0 5 * * ?']);
  });

  it('is not wanted, and asks nobody, while no variable is set', async () => {
    const without = syncing({});
    expect(await isWanted(without.deps)).toBe(false);
    for (const given of [{ cot: 1 }, { geochat: 1 }, { cron: '0 0 5 * * ?' }])
      expect(await isWanted(syncing(given).deps)).toBe(true);
    Object.assign(without.retention, { policy: { ...KEEP_ALL, cot: 7 }, schedule: '0 0 1 * * ?' });
    expect(await without.sync()).toEqual({ changed: 0 });
    expect(without.calls).toEqual([]);
  });

  it('fails, and is tried again, when the core does not take it', async () => {
    const { retention, sync } = syncing({ cot: 30 });
    retention.coreRetention.changePolicy = async () => {
      throw new AppError('upstream', 'The core has cot at 12');
    };
    await expect(sync()).rejects.toThrow('The core has cot at 12');
  });

  it('refuses without a unit, and what a release cannot read', async () => {
    const without = syncing({ cot: 30 });
    without.deps.monitored.wanted.retention.unit = undefined;
    await expect(without.sync()).rejects.toMatchObject({ code: 'invalid' });
    const ofAYear = syncing({ cron: '0 0 4 * * ? 2099', unit: 'seconds' });
    await expect(ofAYear.sync()).rejects.toThrow(/can't be used by this core: it is for the year 2099/);
    expect([...without.calls, ...ofAYear.calls]).toEqual([]);
  });

  it('never gives days to a release, which would take them for seconds', async () => {
    const { retention, calls, sync } = syncing({ cot: 30, cron: '0 0 5 * * ?' });
    retention.tellsRuns = false;
    await expect(sync()).rejects.toThrow(/CORE_RETENTION_UNIT is days, but this core is a TAK Server release/);
    expect(calls).toEqual([]);
  });

  it('changes nothing more once its claim is lost', async () => {
    const { deps, calls } = syncing({ cot: 30 });
    await expect(run(deps, deps.now(), AbortSignal.abort(new Error('lost')))).rejects.toThrow('lost');
    expect(calls).toEqual([]);
  });

  it('leaves the schedule alone when its claim is lost while it sets the days', async () => {
    const { deps, retention, calls } = syncing({ cot: 30 });
    const lost = new AbortController();
    const core = { ...retention.coreRetention };
    retention.coreRetention.changePolicy = async (change) => {
      const changed = await core.changePolicy(change);
      lost.abort(new Error('lost'));
      return changed;
    };
    await expect(run(deps, deps.now(), lost.signal)).rejects.toThrow('lost');
    expect(calls).toEqual([{ cot: 30 }]);
  });
});

describe('while the core does not answer', () => {
  it('writes its files, so that its next start is right', async () => {
    const { retention, calls, sync } = syncing({ cot: 30 });
    retention.mood = 'down';
    await sync();
    expect(calls).toEqual(['files']);
    expect([retention.files.policy.cot, retention.files.schedule]).toEqual([30, '0 0 3 * * ?']);
    expect(retention.policy.cot).toBeNull();
  });

  it('says what was done to them', async () => {
    const { deps, retention, sync } = syncing({ cot: 30 });
    retention.mood = 'down';
    retention.retentionFiles.sync = async () => ({ written: ['a'], messages: ['a was written'] });
    expect(await sync()).toEqual({ changed: 1 });
    expect(deps.log.events).toMatchObject([{ event: 'retention.synced', fields: { where: 'files' } }]);
  });

  it('takes any other failure for what it is', async () => {
    const { retention, calls, sync } = syncing({ cot: 30 });
    retention.coreRetention.policy = async () => {
      throw new AppError('forbidden', 'not ours');
    };
    await expect(sync()).rejects.toThrow('not ours');
    expect(calls).toEqual([]);
  });
});
