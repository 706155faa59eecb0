// Records how a real PostgreSQL grows, for the benchmark `forecast`: an hour of traffic is written
// at once, into the core's own table with all its indexes, then the size of the database is read.
// `node bench/growth-record.ts` writes bench/growth-curves again; HOLDFAST_BENCH_DATABASE names a
// database of the core that may be emptied, instead of a stack of its own. Where days are deleted,
// VACUUM follows at once: autovacuum counts real minutes, and these days take a second.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { benchStack } from './stack.ts';

const DAYS = 45;
const PAGE = 8192;
/** Of the first hour of every curve, a Monday. */
const BEGIN_MS = Date.UTC(2026, 0, 5);

interface Recipe {
  /** Events of that hour. */
  rows(hour: number): number;
  /** What is done at the end of that hour; `at` is its time. */
  afterwards?(hour: number, sql: postgres.Sql, at: Date): Promise<unknown>;
}

const dayOf = (hour: number): number => Math.floor(hour / 24);
const isNight = (hour: number): boolean => hour % 24 < 6;
const isWeekend = (hour: number): boolean => dayOf(hour) % 7 >= 5;
const isAt = (hour: number, day: number, oclock: number): boolean => hour === day * 24 + oclock;

async function deleteOlder(sql: postgres.Sql, at: Date, days: number): Promise<void> {
  await sql`DELETE FROM cot_router WHERE servertime < ${at.toISOString()}::timestamptz - ${days} * interval '1 day'`;
  await sql`VACUUM cot_router`;
}

const RECIPES: Record<string, Recipe> = {
  steady: { rows: () => 250 },
  'day-and-night': { rows: (hour) => (isNight(hour) ? 30 : 300) },
  'working-week': { rows: (hour) => (isWeekend(hour) ? 20 : isNight(hour) ? 40 : 420) },
  exercises: { rows: (hour) => ([2, 3, 9, 16, 17, 18, 23, 30, 31, 36, 37, 41].includes(dayOf(hour)) ? 900 : 90) },
  'growing-fleet': { rows: (hour) => Math.round(80 * 1.035 ** dayOf(hour)) },
  'import-step': { rows: (hour) => (isAt(hour, 18, 10) ? 60_000 : 220) },
  'vacuum-full': {
    rows: () => 250,
    async afterwards(hour, sql, at) {
      if (isAt(hour, 14, 3)) await deleteOlder(sql, at, 7);
      if (isAt(hour, 21, 3)) await sql`VACUUM FULL cot_router`;
    },
  },
  'kept-twelve-days': {
    rows: (hour) => (isNight(hour) ? 100 : 300),
    afterwards: async (hour, sql, at) => (hour % 24 === 3 ? deleteOlder(sql, at, 12) : undefined),
  },
  'deleted-too-late': {
    rows: (hour) => 100 + 8 * dayOf(hour),
    afterwards: async (hour, sql, at) => (hour % 24 === 3 ? deleteOlder(sql, at, 20) : undefined),
  },
};

async function record(name: string, recipe: Recipe, sql: postgres.Sql): Promise<void> {
  await sql`TRUNCATE cot_router CASCADE`;
  await sql`VACUUM FULL`;
  const pages: number[] = [];
  for (let hour = 0; hour < DAYS * 24; hour++) {
    const at = new Date(BEGIN_MS + hour * 3_600_000);
    await insert(sql, recipe.rows(hour), at);
    await recipe.afterwards?.(hour, sql, at);
    const [size] = await sql<{ bytes: string }[]>`SELECT pg_database_size(current_database())::text AS bytes`;
    pages.push(Math.round(Number(size?.bytes) / PAGE));
  }
  const changes = pages.slice(1).map((page, index) => page - (pages[index] ?? 0));
  const [version] = await sql<{ server_version: string }[]>`SHOW server_version`;
  const curve = { recorded: `PostgreSQL ${version?.server_version}`, pages: pages[0], changes: changes.join(' ') };
  const file = join(import.meta.dirname, 'growth-curves', `${name}.json`);
  writeFileSync(file, `${JSON.stringify(curve, undefined, 2)}\n`);
  process.stdout.write(`${name}: ${pages[0]} to ${pages.at(-1)} pages\n`);
}

async function insert(sql: postgres.Sql, rows: number, at: Date): Promise<void> {
  await sql`
    INSERT INTO cot_router (uid, cot_type, how, start, "time", stale, point_hae, point_ce, point_le, detail, servertime)
    SELECT 'ANDROID-' || lpad((n % 5000)::text, 16, '0'), 'a-f-G-U-C', 'm-g', at, at, at + interval '5 min', 412.5, 9.9, 9999999,
      '<detail><contact callsign="EAGLE ' || n % 5000 || '" endpoint="*:-1:stcp"/><track course="12.3" speed="1.2"/>'
        || '<__group name="Cyan" role="Team Member"/><status battery="87"/><takv os="34" version="5.2.0"/></detail>', at
    FROM (
      SELECT n, ${at.toISOString()}::timestamptz + n * (interval '1 hour' / ${Math.max(1, rows)}::float8) AS at
      FROM generate_series(1, ${rows}::int) n) event`;
}

async function recordAll(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => undefined });
  for (const [name, recipe] of Object.entries(RECIPES)) await record(name, recipe, sql);
  await sql.end({ timeout: 2 });
}

const given = process.env['HOLDFAST_BENCH_DATABASE'];
if (given === undefined) {
  const stack = await benchStack();
  try {
    await recordAll(stack.database);
  } finally {
    stack.stop();
  }
} else await recordAll(given);
