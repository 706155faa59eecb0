// The core's tables as growth sees them, and what Holdfast remembers of it, in memory.

import { AppError } from '@holdfast/kit/app-error';
import { DAY_MS } from '@holdfast/kit/time';
import type {
  Fillers,
  GrowthHistory,
  GrowthFacts,
  GrowthSample,
  TableDay,
  TableSize,
} from '../../shared/database/port.ts';

export interface FakeGrowth {
  tables: TableSize[];
  /** What comes in each second, by which any window is answered. */
  fillers: (seconds: number) => Fillers;
  /** The database of the core is away. */
  unavailable: boolean;
  samples: GrowthSample[];
  days: TableDay[];
  growthFacts: GrowthFacts;
  growthHistory: GrowthHistory;
}

const FINE_DAYS = 2;
const HOURLY_DAYS = 60;
const KEPT_DAYS = 400;

export function fakeGrowth(): FakeGrowth {
  const made: FakeGrowth = {
    tables: [{ schema: 'public', table: 'cot_router', bytes: 1e9, rows: 1e6 }],
    fillers: (seconds) => ({ seconds, sampled: 0, rows: 0, bytes: 0, types: [], uids: [] }),
    unavailable: false,
    samples: [],
    days: [],
    growthFacts: {
      tables: async () => structuredClone(answered(made).tables),
      fillers: async (seconds) => structuredClone(answered(made).fillers(seconds)),
    },
    growthHistory: {
      async keepSample(sample) {
        made.samples = [...made.samples.filter(({ at }) => at !== sample.at), structuredClone(sample)].toSorted(
          (a, b) => a.at.localeCompare(b.at),
        );
      },
      samples: async (since) => structuredClone(made.samples.filter(({ at }) => at >= since)),
      async keepTables(day, tables) {
        made.days = made.days.filter((each) => each.day !== day);
        made.days.push(...tables.map((table) => ({ ...structuredClone(table), day })));
      },
      tables: async (sinceDay) =>
        structuredClone(made.days.filter(({ day }) => day >= sinceDay)).toSorted((a, b) =>
          `${a.day} ${a.schema} ${a.table}`.localeCompare(`${b.day} ${b.schema} ${b.table}`),
        ),
      async thin(now) {
        const before = made.samples.length;
        const seen = new Set<string>();
        made.samples = made.samples.filter(({ at }) => {
          const age = (Date.parse(now) - Date.parse(at)) / DAY_MS;
          if (age > KEPT_DAYS || age < 0) return false;
          const slot = age > HOURLY_DAYS ? at.slice(0, 10) : age > FINE_DAYS ? at.slice(0, 13) : at;
          return !seen.has(slot) && seen.add(slot);
        });
        const oldest = new Date(Date.parse(now) - KEPT_DAYS * DAY_MS).toISOString().slice(0, 10);
        made.days = made.days.filter(({ day }) => day >= oldest && day <= now.slice(0, 10));
        return before - made.samples.length;
      },
    },
  };
  return made;
}

function answered(of: FakeGrowth): FakeGrowth {
  if (of.unavailable) throw new AppError('unavailable', "The core's database does not answer");
  return of;
}
