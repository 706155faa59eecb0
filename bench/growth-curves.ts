// Curves of growth for the benchmark `forecast`: those that a real PostgreSQL was recorded with
// (bench/growth-record.ts), and made ones for what a database alone does not do (backups beside it,
// gaps, feeds that begin and end), the same in every run.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';
import { type Point } from '../shared/database/forecast.ts';

export interface Curve {
  name: string;
  /** An hour apart where nothing is missing. */
  points: Point[];
}

const PAGE = 8192;
const BEGIN_MS = Date.UTC(2026, 0, 5);
const DAYS = 45;
const GB = 1e9;

export function recordedCurves(): Curve[] {
  const place = join(import.meta.dirname, 'growth-curves');
  return readdirSync(place)
    .toSorted()
    .map((file) => {
      const { pages, changes } = JSON.parse(readFileSync(join(place, file), 'utf8')) as {
        pages: number;
        changes: string;
      };
      let now = pages;
      const sizes = [now, ...changes.split(' ').map((change) => (now += Number(change)))];
      return { name: file.replace('.json', ''), points: hourly(sizes.map((each) => each * PAGE)) };
    });
}

function hourly(bytes: readonly number[]): Point[] {
  return bytes.map((each, hour) => ({ atMs: BEGIN_MS + hour * HOUR_MS, bytes: each }));
}

type Random = () => number;

/** Each curve says how much is written in an hour, and what lies beside it for a while. */
const MADE: Record<string, (random: Random) => { grows: (hour: number) => number; beside?: (hour: number) => number }> =
  {
    'noisy days': (random) => {
      const days = Array.from({ length: DAYS }, () => 1 + 1.2 * (random() - 0.5));
      return { grows: (hour) => (days[Math.floor(hour / 24)] ?? 1) * (GB / 24) };
    },
    'nightly backup': () => ({
      grows: () => GB / 24,
      beside: (hour) => (hour % 24 === 2 ? 15 * GB : 0),
    }),
    'weekly backup that stays': () => ({
      grows: () => GB / 24,
      beside: (hour) => (hour >= 7 * 24 ? 5 * GB : 0),
    }),
    'feed from day 20': () => ({ grows: (hour) => ((hour >= 20 * 24 ? 3 : 1) * GB) / 24 }),
    'feed until day 20': () => ({ grows: (hour) => ((hour < 20 * 24 ? 3 : 1) * GB) / 24 }),
    'wandering rate': (random) => {
      let rate = 1;
      const rates = Array.from({ length: DAYS }, () => (rate = Math.max(0.2, rate * (0.9 + 0.2 * random()))));
      return { grows: (hour) => ((rates[Math.floor(hour / 24)] ?? 1) * GB) / 24 };
    },
    'a random burst now and then': (random) => {
      const bursts = new Set(Array.from({ length: 12 }, () => Math.floor(random() * DAYS)));
      return { grows: (hour) => ((bursts.has(Math.floor(hour / 24)) ? 4 : 0.5) * GB) / 24 };
    },
  };

/** Days that nobody has sampled. */
const GAP = { from: 12, to: 19 };

export function madeCurves(): Curve[] {
  const made = Object.entries(MADE).map(([name, of], index) => ({ name, points: grown(of(seeded(1000 + index))) }));
  const steady = grown({ grows: (hour) => ((hour % 24 < 8 ? 0.3 : 1.35) * GB) / 24 });
  const known = steady.filter(({ atMs }) => {
    const day = (atMs - BEGIN_MS) / DAY_MS;
    return day < GAP.from || day >= GAP.to;
  });
  return [...made, { name: 'a week without samples', points: known }];
}

function grown({ grows, beside = () => 0 }: ReturnType<(typeof MADE)[string]>): Point[] {
  let bytes = 10 * GB;
  return hourly(Array.from({ length: DAYS * 24 }, (_, hour) => (bytes += grows(hour)) + beside(hour)));
}

/** The same numbers from 0 to 1 for the same seed. */
function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
