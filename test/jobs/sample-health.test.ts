import { beforeEach, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '@holdfast/kit/time';
import { JOBS } from '../../jobs/index.ts';
import { run as pollHealth } from '../../jobs/poll-health.ts';
import { run as sampleHealth } from '../../jobs/sample-health.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import type { ModuleState } from '../../shared/health/port.ts';
import { mount, type World, world } from '../health/fake-monitored.ts';
import { type FakeDeps, fakeDeps } from '../http/fake-deps.ts';

const NOON = Date.parse('2026-05-20T12:00:07.000Z');
const iso = (ms: number): string => new Date(ms).toISOString();

let around: World;
let deps: FakeDeps;
beforeEach(() => {
  around = world();
  around.now = new Date(NOON);
  deps = fakeDeps({}, around);
});

/** The process begins anew: what it had in memory is gone. */
function restart(): void {
  const { samples } = deps.healthTrend;
  deps = fakeDeps({}, around);
  deps.healthTrend.samples = samples;
}

async function measureAt(ms: number): Promise<void> {
  around.now = new Date(ms);
  await pollHealth(deps, around.now);
}
async function sampleAt(ms: number): Promise<Record<string, unknown>> {
  await measureAt(ms);
  return sampleHealth(deps, around.now);
}
async function stateOf(module: string): Promise<ModuleState | undefined> {
  return (await deps.health.states()).find((each) => each.module === module);
}
const times = (): string[] => deps.healthTrend.samples.map(({ at }) => at.slice(11, 16));

describe('sample-health', () => {
  it('notes the status of every module with its telling figure, at the beginning of five minutes', async () => {
    around.mounts = [mount('/', 41.5), mount('/srv', 83)];
    expect(await sampleAt(NOON + MINUTE_MS)).toEqual({ sampled: true, thinned: 0 });
    const [sample] = deps.healthTrend.samples;
    expect(sample?.at).toBe('2026-05-20T12:00:00.000Z');
    expect(Object.keys(sample?.modules ?? {})).toEqual(HEALTH_MODULES.map(({ name }) => name));
    const since = iso(NOON + MINUTE_MS);
    expect(sample?.modules).toMatchObject({
      disk: { status: 'warning', figure: 83, since, since_is_exact: false },
      database: { status: 'ok', figure: 30e6 },
      core: { figure: 30 },
      config: { figure: null },
    });
  });

  it('waits until every module was measured, and notes each five minutes once', async () => {
    expect(await sampleHealth(deps, around.now)).toEqual({ sampled: false, thinned: 0 });
    for (let minute = 1; minute <= 11; minute++) await sampleAt(NOON + minute * MINUTE_MS);
    expect(times()).toEqual(['12:00', '12:05', '12:10']);
  });

  it('asks our own database for nothing while there is nothing to note', async () => {
    await sampleAt(NOON);
    deps.healthTrend.unavailable = true;
    expect(await sampleAt(NOON + MINUTE_MS)).toEqual({ sampled: false, thinned: 0 });
    await expect(sampleAt(NOON + 5 * MINUTE_MS)).rejects.toThrow('does not answer');
    deps.healthTrend.unavailable = false;
    await sampleAt(NOON + 6 * MINUTE_MS);
    expect(times()).toEqual(['12:00', '12:05']);
  });

  it('is of one mind with another process on the moment', async () => {
    await sampleAt(NOON);
    restart();
    await deps.health.remember([]);
    around.mounts = [mount('/', 99)];
    await sampleAt(NOON + 2 * MINUTE_MS);
    expect(deps.healthTrend.samples).toHaveLength(1);
    expect(deps.healthTrend.samples[0]?.modules['disk']?.figure).toBe(41.5);
  });

  it('thins with the first sample of an hour', async () => {
    await sampleAt(NOON);
    const known = deps.healthTrend.samples[0];
    if (known !== undefined) deps.healthTrend.samples.unshift({ ...known, at: iso(NOON - 20 * 86_400_000) });
    expect(await sampleAt(NOON + 58 * MINUTE_MS)).toEqual({ sampled: true, thinned: 0 });
    expect(await sampleAt(NOON + 61 * MINUTE_MS)).toEqual({ sampled: true, thinned: 1 });
  });

  it('looks each minute in every process', () => {
    const job = JOBS.find(({ name }) => name === 'sample-health');
    expect([job?.claim, job?.cron]).toEqual(['none', '* * * * *']);
  });
});

describe('since when a module is what it is', () => {
  it('is not known before a measurement, at least since the first, and exact after a change', async () => {
    expect(await stateOf('disk')).toEqual({ module: 'disk', measurement: null, since: null, since_is_exact: false });
    await measureAt(NOON);
    expect(await stateOf('disk')).toMatchObject({ since: iso(NOON), since_is_exact: false });
    around.mounts = [mount('/', 85)];
    await measureAt(NOON + MINUTE_MS);
    await measureAt(NOON + 2 * MINUTE_MS);
    expect(await stateOf('disk')).toMatchObject({ since: iso(NOON + MINUTE_MS), since_is_exact: true });
  });

  it('survives a restart, whether the record is read before or after the first measurement', async () => {
    await measureAt(NOON);
    around.mounts = [mount('/', 85)];
    await sampleAt(NOON + MINUTE_MS);
    for (const order of ['measured first', 'read first']) {
      restart();
      around.now = new Date(NOON + 14 * MINUTE_MS);
      if (order === 'read first') await sampleHealth(deps, around.now);
      await sampleAt(NOON + 14 * MINUTE_MS);
      expect(await stateOf('disk')).toMatchObject({ since: iso(NOON + MINUTE_MS), since_is_exact: true });
      expect(await stateOf('database')).toMatchObject({ since: iso(NOON), since_is_exact: false });
    }
  });

  it('is at least the first measurement after hours in which nobody looked, whatever was noted before them', async () => {
    await measureAt(NOON - MINUTE_MS);
    around.mounts = [mount('/', 85)];
    await sampleAt(NOON);
    const later = NOON + 600 * MINUTE_MS;
    for (const order of ['measured first', 'read first']) {
      restart();
      around.now = new Date(later);
      if (order === 'read first') await sampleHealth(deps, around.now);
      await sampleAt(later);
      expect(await stateOf('disk')).toMatchObject({ since: iso(later), since_is_exact: false });
    }
  });

  it('is at least the first measurement where another status was noted before the restart', async () => {
    await sampleAt(NOON);
    restart();
    around.mounts = [mount('/', 85)];
    await sampleAt(NOON + 9 * MINUTE_MS);
    expect(await stateOf('disk')).toMatchObject({ since: iso(NOON + 9 * MINUTE_MS), since_is_exact: false });
  });

  it('begins anew when nobody measures it any more', async () => {
    await measureAt(NOON);
    around.now = new Date(NOON + 10 * MINUTE_MS);
    const disk = await stateOf('disk');
    expect(disk).toMatchObject({ since: around.now.toISOString(), since_is_exact: true });
    expect(disk?.measurement).toMatchObject({ status: 'critical' });
    expect(disk?.measurement?.figure).toBeUndefined();
  });

  it('keeps the samples of a day in memory', async () => {
    expect(await deps.health.remembered()).toBeUndefined();
    await sampleAt(NOON);
    await sampleAt(NOON + 24 * 60 * MINUTE_MS + MINUTE_MS);
    expect((await deps.health.remembered())?.map(({ at }) => at)).toEqual(['2026-05-21T12:00:00.000Z']);
  });
});
