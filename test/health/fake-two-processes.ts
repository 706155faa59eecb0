// Two processes over one database that share what they measure.

import { run as pollHealth } from '../../jobs/poll-health.ts';
import { MemoryHealthCache } from '../../shared/health/cache.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import type { Measurement } from '../../shared/health/port.ts';
import { type FakeDeps, fakeDeps } from '../http/fake-deps.ts';
import { type FakeHealthResults, fakeHealthResults } from './fake-health-results.ts';
import { type World, world } from './fake-monitored.ts';

export const ALL = HEALTH_MODULES.map(({ name }) => name);
export const LOCAL = HEALTH_MODULES.filter(({ isLocal }) => isLocal).map(({ name }) => name);
export const SHARED = ALL.filter((name) => !LOCAL.includes(name));

export interface Two {
  around: World;
  results: FakeHealthResults;
  one: FakeDeps;
  two: FakeDeps;
  /** Both poll each second for so long; the modules that each measured. */
  pass(seconds: number, processes?: readonly FakeDeps[]): Promise<Map<FakeDeps, string[]>>;
}

/** They have one alert engine, as the database makes it one. */
export function twoProcesses(intervals: Record<string, number> = {}): Two {
  const around = world();
  const results = fakeHealthResults(() => around.now.getTime());
  const [one, two] = [fakeDeps({}, around), fakeDeps({}, around)];
  two.alerts = one.alerts;
  for (const [deps, id] of [
    [one, 'one'],
    [two, 'two'],
  ] as const) {
    deps.healthResults = results.of(id);
    deps.health = new MemoryHealthCache({
      intervals: { ...Object.fromEntries(ALL.map((name) => [name, 60])), ...intervals },
      sharing: { process: { id, name: id.toUpperCase() }, local: LOCAL },
      nowMs: () => around.now.getTime(),
    });
  }
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

export async function resultIn({ health }: FakeDeps, name: string): Promise<Measurement | undefined> {
  return (await health.state(name))?.measurement ?? undefined;
}

/** The whole of GET /api/health. */
export async function bodyOf({ health }: FakeDeps): Promise<string> {
  return (await health.current('full')).body;
}
