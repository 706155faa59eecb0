// Samples the size of the core's database and the use of the disks, each table once a day, and
// thins old samples. Rule `leftOut`: only what can't be measured now is missing in the sample.

import { messageOf } from '@holdfast/kit/app-error';
import { HOUR_MS } from '@holdfast/kit/time';
import type { CoreDatabase, DatabaseSize } from '../../core/database/port.ts';
import type { Disks, DiskUse } from '../../host/port.ts';
import type { HealthMemory } from '../../jobs/port.ts';
import type { GrowthHistory, GrowthFacts, GrowthSample, MountSample } from '../port.ts';
import { fillsAtPace } from './report.ts';

export interface SampleGrowthDeps {
  growthHistory: GrowthHistory;
  growthFacts: Pick<GrowthFacts, 'tables'>;
  health: HealthMemory;
  monitored: {
    wanted: { databaseDirectory: string | undefined };
    coreDatabase: Pick<CoreDatabase, 'size'>;
    disks: Disks;
  };
}

type Part = 'database' | 'disks' | 'tables';

export interface SampledGrowth {
  /** False if it was stopped before. */
  sampled: boolean;
  /** How many tables were stored for the day; null if that was done before, or failed. */
  tables: number | null;
  /** Number of removed samples. */
  thinned: number;
  /** The parts that could not be measured, with the reason. */
  left_out: Partial<Record<Part, string>>;
}

/** Offsets to check, because a health module may cache growth for most of a minute. */
const LATELY_MS = [0, 60_000, 120_000];

/** Rejects if our own database is unavailable. After `signal` aborts, it changes nothing more. */
export async function sampleGrowth(deps: SampleGrowthDeps, now: Date, signal: AbortSignal): Promise<SampledGrowth> {
  const { growthHistory, growthFacts, health, monitored } = deps;
  const done: SampledGrowth = { sampled: false, tables: null, thinned: 0, left_out: {} };
  const [size, mounts, before] = await Promise.all([
    unlessUnavailable('database', done, () => sizeWithoutCopies(monitored.coreDatabase)),
    unlessUnavailable('disks', done, () => monitored.disks.use()),
    growthHistory.samples(before2Hours(now)),
  ]);
  if (signal.aborted) return done;
  const sample = sampleOf(now, size, mounts ?? [], monitored.wanted.databaseDirectory);
  await growthHistory.keepSample(sample);
  done.sampled = true;
  const lately = [...before, sample];
  // The start and the end of a filling disk must show at once.
  if (LATELY_MS.some((ago) => fillsAtPace(lately, now.getTime() - ago))) await health.forget('disk');

  const today = now.toISOString().slice(0, 10);
  const known = (await growthHistory.tables(today)).some(({ day }) => day === today);
  const tables = known ? undefined : await unlessUnavailable('tables', done, () => growthFacts.tables());
  if (signal.aborted) return done;
  if (tables !== undefined) await growthHistory.keepTables(today, tables);
  done.tables = tables?.length ?? null;

  if (signal.aborted || !isTimeToThin(before, now)) return done;
  done.thinned = await growthHistory.thin(now.toISOString());
  return done;
}

async function unlessUnavailable<T>(part: Part, done: SampledGrowth, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    done.left_out[part] = messageOf(error);
    return undefined;
  }
}

/**
 * A rewrite (VACUUM FULL) locks a table, and its copy counts in the size of the database, which is
 * not growth.
 */
async function sizeWithoutCopies(coreDatabase: Pick<CoreDatabase, 'size'>): Promise<SampledSize> {
  const { total_bytes, wal_bytes, max_wal_bytes, locked_tables: locked } = await coreDatabase.size();
  return { total_bytes: locked.length === 0 ? total_bytes : null, wal_bytes, max_wal_bytes };
}

type SampledSize = Pick<DatabaseSize, 'wal_bytes' | 'max_wal_bytes'> & { total_bytes: number | null };

function sampleOf(
  now: Date,
  size: SampledSize | undefined,
  mounts: readonly DiskUse[],
  directory: string | undefined,
): GrowthSample {
  return {
    at: now.toISOString(),
    database_bytes: size?.total_bytes ?? null,
    wal_bytes: size?.wal_bytes ?? null,
    max_wal_bytes: size?.max_wal_bytes ?? null,
    mounts: mounts.map((mount) => mountSample(mount, directory)),
  };
}

function mountSample(use: DiskUse, directory: string | undefined): MountSample {
  const { mount, total_bytes, free_bytes, paths } = use;
  const holds = (place: string): boolean => paths.includes(place);
  const holds_database = directory !== undefined && holds(directory);
  const holds_wal = directory !== undefined && holds(`${directory.replace(/\/+$/, '')}/pg_wal`);
  return { mount, total_bytes, free_bytes, holds_database, holds_wal };
}

function before2Hours(now: Date): string {
  return new Date(now.getTime() - 2 * HOUR_MS).toISOString();
}

/**
 * True with the first sample of an hour, and if there are samples from the future. A wrong clock
 * would make all samples look too old or in the future, so it must have run steadily for an hour.
 */
function isTimeToThin(before: readonly GrowthSample[], now: Date): boolean {
  const times = before.map(({ at }) => Date.parse(at));
  const hour = Math.floor(now.getTime() / HOUR_MS) * HOUR_MS;
  const isSteady = times.some((at) => at <= now.getTime() - HOUR_MS);
  const isFirst = !times.some((at) => at >= hour && at <= now.getTime());
  return isSteady && (isFirst || times.some((at) => at > now.getTime()));
}
