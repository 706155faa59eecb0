// Two processes that share what they measure.

import { describe, expect, it } from 'vitest';
import { run as pollHealth } from '../../jobs/poll-health.ts';
import { MemoryHealthCache } from '../../shared/health/cache.ts';
import type { ModuleState } from '../../shared/health/port.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import { type FakeDeps, fakeDeps } from '../http/fake-deps.ts';
import { type FakeHealthResults, fakeHealthResults } from './fake-health-results.ts';
import { healthResultsContract, resultOf } from './health-results-contract.ts';
import { type World, world } from './fake-monitored.ts';

const own = fakeHealthResults(() => 0);
healthResultsContract('in memory', (runner) => own.of(runner));

interface Two {
  around: World;
  results: FakeHealthResults;
  one: FakeDeps;
  two: FakeDeps;
  /** Both poll each second for so long; the modules that each measured. */
  pass(seconds: number, processes?: readonly FakeDeps[]): Promise<Map<FakeDeps, string[]>>;
}

function twoProcesses(): Two {
  const around = world();
  const results = fakeHealthResults(() => around.now.getTime());
  const [one, two] = [fakeDeps({}, around), fakeDeps({}, around)];
  one.healthResults = results.of('one');
  two.healthResults = results.of('two');
  return {
    around,
    results,
    one,
    two,
    async pass(seconds, processes = [one, two]) {
      const measured = new Map(processes.map((each) => [each, [] as string[]]));
      for (let second = 0; second < seconds; second++) {
        for (const each of processes) measured.get(each)?.push(...(await pollHealth(each, around.now)).measured);
        around.now = new Date(around.now.getTime() + 1000);
      }
      return measured;
    },
  };
}

const bodyOf = async ({ health }: FakeDeps) => health.current('full');
const stateOf = async ({ health }: FakeDeps, name: string): Promise<ModuleState | undefined> =>
  (await health.states()).find(({ module }) => module === name);

describe('health of two processes', () => {
  it('is measured by both at the start, then by one, and is the same in both', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    const first = await both.pass(1);
    for (const each of [one, two]) expect(first.get(each)).toHaveLength(HEALTH_MODULES.length);
    const later = await both.pass(300);
    const counts = [one, two].map((each) => later.get(each)?.length ?? 0).toSorted((a, b) => a - b);
    expect(counts).toEqual([0, 5 * HEALTH_MODULES.length]);
    await both.pass(2);
    expect(await bodyOf(one)).toEqual(await bodyOf(two));
  });

  it('goes on within ten seconds of the interval when the one that measured is gone', async () => {
    const both = twoProcesses();
    await both.pass(2);
    const later = await both.pass(61);
    const [gone, left] = (later.get(both.one)?.length ?? 0) > 0 ? [both.one, both.two] : [both.two, both.one];
    expect(later.get(gone)).toHaveLength(HEALTH_MODULES.length);
    const alone = await both.pass(72, [left]);
    expect(alone.get(left)).toHaveLength(HEALTH_MODULES.length);
    expect(await left.health.isComplete()).toBe(true);
  });

  it('is measured at once where it was forgotten, and then known to the other', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    await both.pass(10);
    for (const each of [one, two]) {
      await each.health.forget('disk');
      const measured = await both.pass(2);
      expect([measured.get(each), measured.get(each === one ? two : one)]).toEqual([['disk'], []]);
    }
    expect(await stateOf(one, 'disk')).toEqual(await stateOf(two, 'disk'));
  });

  it('is measured by both while the database does not answer', async () => {
    const both = twoProcesses();
    await both.pass(5);
    both.results.unavailable = true;
    const measured = await both.pass(75);
    for (const each of [both.one, both.two])
      expect(measured.get(each)?.length).toBeGreaterThanOrEqual(HEALTH_MODULES.length);
  });
});

describe('an adopted measurement', () => {
  const cacheAt = (clock: { nowMs: number }) =>
    new MemoryHealthCache({ intervals: { disk: 60 }, nowMs: () => clock.nowMs });

  it('needs one of its own before, and never replaces a newer one', () => {
    const clock = { nowMs: 1_000_000 };
    const cache = cacheAt(clock);
    const { measurement } = resultOf('disk');
    expect(cache.adopt({ ...resultOf('disk'), ageMs: 0 })).toBe(false);
    cache.put({ ...measurement, message: 'own' });
    expect(cache.adopt({ ...resultOf('disk'), ageMs: 1 })).toBe(false);
    clock.nowMs += 5000;
    expect(cache.adopt({ ...resultOf('unknown'), ageMs: 0 })).toBe(false);
    expect(cache.adopt({ ...resultOf('disk', { message: 'theirs' }), ageMs: 100 })).toBe(true);
    expect(cache.states()).toMatchObject([
      { measurement: { message: 'theirs' }, since: '2026-06-15T12:34:56.789Z', since_is_exact: false },
    ]);
    expect(cache.history('disk')).toMatchObject({ failuresInRow: 2, pollsInRow: 3 });
  });

  it('does not replace the one that is being made', () => {
    const clock = { nowMs: 1_000_000 };
    const cache = cacheAt(clock);
    cache.put(resultOf('disk').measurement);
    clock.nowMs += 61_000;
    expect(cache.takeDue(clock.nowMs)).toEqual(['disk']);
    expect(cache.adopt({ ...resultOf('disk'), ageMs: 0 })).toBe(false);
  });
});
