// What processes share of their measurements, in memory.

import type { HealthResults, PublishedResult, SharedResult } from '../../shared/health/port.ts';

interface Published {
  by: string;
  atMs: number;
  text: string;
}

export interface FakeHealthResults {
  /** Our own database is away. */
  unavailable: boolean;
  /** By the processes that read, how often they did. */
  reads: Map<string, number>;
  of(runner: string): HealthResults;
}

/** The name of a process is its id in capitals. */
export function fakeHealthResults(nowMs: () => number): FakeHealthResults {
  const published = new Map<string, Published>();
  const world: FakeHealthResults = {
    unavailable: false,
    reads: new Map(),
    of(runner) {
      const returned = new Set<Published>();
      const unpublished = new Map<string, PublishedResult>();
      const publish = async (result: PublishedResult): Promise<void> => {
        const { module } = result.measurement;
        if (world.unavailable) unpublished.set(module, result);
        else published.set(`${runner} ${module}`, { by: runner, atMs: nowMs(), text: JSON.stringify(result) });
      };
      return {
        publish,
        async ofOthers() {
          if (world.unavailable) return [];
          for (const result of unpublished.values()) await publish(result);
          unpublished.clear();
          world.reads.set(runner, (world.reads.get(runner) ?? 0) + 1);
          const fresh = [...published.values()].filter((each) => each.by !== runner && !returned.has(each));
          for (const each of fresh) returned.add(each);
          return fresh
            .toSorted((a, b) => a.atMs - b.atMs)
            .map(({ by, text, atMs }) => ({
              ...(JSON.parse(text) as Omit<SharedResult, 'process' | 'ageMs'>),
              process: { id: by, name: by.toUpperCase() },
              ageMs: nowMs() - atMs,
            }));
        },
      };
    },
  };
  return world;
}
