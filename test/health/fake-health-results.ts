// What processes share of their measurements, in memory.

import type { HealthResults, SharedResult } from '../../shared/health/port.ts';

interface Published {
  by: string;
  atMs: number;
  text: string;
}

export interface FakeHealthResults {
  /** Our own database is away. */
  unavailable: boolean;
  of(runner: string): HealthResults;
}

export function fakeHealthResults(nowMs: () => number): FakeHealthResults {
  const published = new Map<string, Published>();
  const world: FakeHealthResults = {
    unavailable: false,
    of(runner) {
      const returned = new Set<Published>();
      return {
        async publish(result) {
          const { module } = result.measurement;
          if (!world.unavailable) published.set(module, { by: runner, atMs: nowMs(), text: JSON.stringify(result) });
        },
        async ofOthers() {
          if (world.unavailable) return [];
          const fresh = [...published.values()].filter(
            (each) => each.by !== runner && nowMs() - each.atMs < 3000 && !returned.has(each),
          );
          for (const each of fresh) returned.add(each);
          return fresh
            .toSorted((a, b) => a.atMs - b.atMs)
            .map(({ text, atMs }) => ({ ...(JSON.parse(text) as SharedResult), ageMs: nowMs() - atMs }));
        },
      };
    },
  };
  return world;
}
