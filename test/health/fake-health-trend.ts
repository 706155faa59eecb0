// Health over time, in memory.

import { AppError } from '@holdfast/kit/app-error';
import { DAY_MS } from '@holdfast/kit/time';
import type { HealthSample, HealthTrend } from '../../shared/health/port.ts';

export interface FakeHealthTrend extends HealthTrend {
  samples: HealthSample[];
  /** Our own database is away. */
  unavailable: boolean;
}

export function fakeHealthTrend(): FakeHealthTrend {
  const answered = (): FakeHealthTrend => {
    if (made.unavailable) throw new AppError('unavailable', 'Our own database does not answer');
    return made;
  };
  const made: FakeHealthTrend = {
    samples: [],
    unavailable: false,
    async keep(sample) {
      if (answered().samples.some(({ at }) => at === sample.at)) return;
      made.samples = [...made.samples, structuredClone(sample)].toSorted((a, b) => a.at.localeCompare(b.at));
    },
    read: async (since) => structuredClone(answered().samples.filter(({ at }) => at >= since)),
    async thin(now) {
      const { samples } = answered();
      const seen = new Set<string>();
      made.samples = samples.filter(({ at }) => {
        const age = (Date.parse(now) - Date.parse(at)) / DAY_MS;
        if (age > 14 || age < 0) return false;
        const slot = age > 2 ? at.slice(0, 13) : at;
        return !seen.has(slot) && seen.add(slot);
      });
      return samples.length - made.samples.length;
    },
  };
  return made;
}
