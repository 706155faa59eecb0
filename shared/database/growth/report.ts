// Forecasts the growth of the core's database and of the disks from kept samples. The report is
// cached briefly, so that frequent requests do not read two months of samples each time.

import { messageOf } from '@holdfast/kit/app-error';
import { formatDuration } from '@holdfast/kit/format';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';
import { withTimeout } from '@holdfast/kit/timeout';
import {
  fullIn,
  type FullIn,
  type Growth,
  MAX_DAYS,
  MAX_TREND_MS,
  paceOf,
  type Point,
  sensible,
  trendOf,
} from '../forecast.ts';
import type { GrowthHistory, GrowthSample, MountSample } from '../port.ts';

export interface GrowthDeps {
  growthHistory: Pick<GrowthHistory, 'samples' | 'tables'>;
  now: () => Date;
}

/** The figures to show. Days have two digits; null if there is no date. */
export interface GrowthFigures {
  growth_bytes_per_day: number | null;
  full_in_days: number | null;
  full_in_days_earliest: number | null;
  full_in_days_latest: number | null;
  basis: 'trend' | 'pace' | 'none';
  /** ISO 8601: of the first sample that counts. */
  samples_since: string | null;
  /** Why there is no date; null if there is one. */
  reason: string | null;
}

/** A growth rate with its forecast. */
export interface Forecast {
  growth: Growth | undefined;
  full: FullIn | undefined;
  /** Why there is no date; null if there is one. */
  reason: string | null;
}

export interface MountForecast extends Forecast {
  mount: string;
  holdsDatabase: boolean;
  /** The newest sample of it. */
  sample: MountSample;
  /** Free bytes, minus WAL still to come. */
  roomBytes: number;
}

export interface GrowthReport {
  /** Growth of the database itself; `full` is about the disk that holds it. */
  database: Forecast;
  databaseBytes: number | null;
  mounts: MountForecast[];
  /** Why nothing is known; null if something is. */
  problem: string | null;
}

/** A pace that would take longer to fill the disk is ordinary daytime traffic. */
const PACE_DAYS = 1;
/**
 * The fraction of free bytes that always counts as room: WAL grows by at most three bytes per
 * stored byte.
 */
const MIN_ROOM = 0.25;
/** Older samples say nothing about now. */
const FRESH_MS = HOUR_MS;
const REMEMBERED_MS = 50_000;
/** The forecast must not wait for our own database. */
const SAMPLES_WITHIN_MS = 3_000;
const TOO_FEW = 'a forecast needs 6 hours of samples';
const NONE: Forecast = { growth: undefined, full: undefined, reason: TOO_FEW };

const remembered = new WeakMap<object, { atMs: number; report: GrowthReport }>();

/** Never rejects. At most `REMEMBERED_MS` old. */
export async function growthReport({ growthHistory, now }: GrowthDeps): Promise<GrowthReport> {
  const nowMs = now().getTime();
  const known = remembered.get(growthHistory);
  if (known !== undefined && nowMs >= known.atMs && nowMs - known.atMs < REMEMBERED_MS) return known.report;
  const since = new Date(nowMs - MAX_TREND_MS).toISOString();
  const report = await withTimeout(SAMPLES_WITHIN_MS, "Holdfast's own database", () =>
    growthHistory.samples(since),
  ).then(
    (samples) => reportFrom(samples, nowMs),
    (error: unknown) => unknownReport(`growth is unknown: ${messageOf(error).replace(/\.$/, '')}`),
  );
  remembered.set(growthHistory, { atMs: nowMs, report });
  return report;
}

/** True if the disk of the database would be full within a day at the pace of that time. */
export function fillsAtPace(samples: readonly GrowthSample[], nowMs: number): boolean {
  return reportFrom(samples, nowMs).database.growth?.basis === 'pace';
}

function unknownReport(problem: string): GrowthReport {
  return { database: { ...NONE, reason: problem }, databaseBytes: null, mounts: [], problem };
}

/** A sample with its time parsed once: two months are thousands of samples. */
interface Timed extends Omit<GrowthSample, 'at'> {
  atMs: number;
}

function reportFrom(all: readonly GrowthSample[], nowMs: number): GrowthReport {
  const samples = all
    .map(({ at, database_bytes, wal_bytes, max_wal_bytes, mounts }): Timed => {
      return { atMs: Date.parse(at), database_bytes, wal_bytes, max_wal_bytes, mounts };
    })
    .filter(({ atMs }) => atMs <= nowMs);
  const last = samples.at(-1);
  if (last === undefined) return { ...unknownReport(TOO_FEW), problem: null };
  const oldMs = nowMs - last.atMs;
  if (oldMs > FRESH_MS) return unknownReport(`growth is unknown: the last sample is ${formatDuration(oldMs)} old`);
  const points = databasePoints(samples);
  const pace = paceOf(points, nowMs);
  const mounts = last.mounts.map((sample) => mountForecast(sample, { samples, last, pace, nowMs }));
  const holding = mounts.find(({ holdsDatabase }) => holdsDatabase);
  const isPace = holding?.growth?.basis === 'pace';
  const growth = isPace ? pace : trendOf(points, nowMs);
  const known = samples.findLast((sample) => sample.database_bytes !== null);
  const database = databaseForecast(growth, holding);
  return { database, databaseBytes: known?.database_bytes ?? null, mounts, problem: null };
}

function databaseForecast(growth: Growth | undefined, holding: MountForecast | undefined): Forecast {
  if (holding === undefined) return { growth, full: undefined, reason: "the database's file system is unknown" };
  return { growth, full: holding.full, reason: growth === undefined ? TOO_FEW : holding.reason };
}

interface Seen {
  samples: readonly Timed[];
  last: Timed;
  pace: Growth | undefined;
  nowMs: number;
}

function mountForecast(sample: MountSample, { samples, last, pace, nowMs }: Seen): MountForecast {
  const { free_bytes: free } = sample;
  const roomBytes = Math.max(free * MIN_ROOM, free - walToCome(sample, samples, last));
  const of = { mount: sample.mount, holdsDatabase: sample.holds_database, sample, roomBytes };
  if (pace !== undefined && sample.holds_database) {
    const full = fullIn(pace, roomBytes);
    if (full !== undefined && full.days < PACE_DAYS) return { ...of, growth: pace, full, reason: null };
  }
  const growth = trendOf(usedPoints(sample, samples), nowMs);
  if (growth === undefined) return { ...of, ...NONE };
  const full = fullIn(growth, roomBytes);
  if (full === undefined) return { ...of, growth, full, reason: 'the disk is not filling up' };
  if (full.days > MAX_DAYS) return { ...of, growth, full: undefined, reason: 'more than 2 years until full' };
  return { ...of, growth, full, reason: null };
}

/** WAL grows up to its limit whatever is stored. */
function walToCome({ holds_wal: holds }: MountSample, samples: readonly Timed[], last: Timed): number {
  if (!holds) return 0;
  const known = last.wal_bytes === null ? samples.findLast(({ wal_bytes: wal }) => wal !== null) : last;
  if (known === undefined || known.wal_bytes === null || known.max_wal_bytes === null) return 0;
  return Math.max(0, known.max_wal_bytes - known.wal_bytes);
}

function databasePoints(samples: readonly Timed[]): Point[] {
  return samples.flatMap(({ atMs, database_bytes: bytes }) => (bytes === null ? [] : [{ atMs, bytes }]));
}

/** Used bytes without WAL, which comes and goes by itself. */
function usedPoints({ mount, holds_wal: holdsWal }: MountSample, samples: readonly Timed[]): Point[] {
  const subtracts = holdsWal && samples.some(({ wal_bytes: wal }) => wal !== null);
  return samples.flatMap(({ atMs, mounts, wal_bytes: wal }) => {
    const found = mounts.find((each) => each.mount === mount);
    if (found === undefined || (subtracts && wal === null)) return [];
    const bytes = found.total_bytes - found.free_bytes - (subtracts ? (wal ?? 0) : 0);
    return [{ atMs, bytes }];
  });
}

export function figuresOf({ growth, full, reason }: Forecast): GrowthFigures {
  return {
    growth_bytes_per_day: growth === undefined ? null : Math.round(growth.bytesPerDay),
    full_in_days: full === undefined ? null : shown(full.days),
    full_in_days_earliest: full === undefined ? null : shown(full.earliest),
    full_in_days_latest: full === undefined || full.latest === null ? null : shown(full.latest),
    basis: growth?.basis ?? 'none',
    samples_since: growth === undefined ? null : new Date(growth.sinceMs).toISOString(),
    reason,
  };
}

/** To the hour below two days. */
function shown(days: number): number {
  return days < 2 ? Math.round(days * 100) / 100 : sensible(days);
}

export interface GrownTable {
  schema: string;
  table: string;
  bytes: number;
  /** Over the known days, at most seven. */
  grown_bytes: number;
  grown_days: number;
}

const TABLE_DAYS = 7;
const MAX_TABLES = 10;

/**
 * The tables that grew most in the last seven days; empty until two days are known. Rejects like
 * the port.
 */
export async function grownTables({ growthHistory, now }: GrowthDeps): Promise<GrownTable[]> {
  const nowMs = now().getTime();
  const days = await growthHistory.tables(dayOf(nowMs - TABLE_DAYS * DAY_MS));
  const known = days.filter(({ day }) => day <= dayOf(nowMs));
  const byTable = Map.groupBy(known, ({ schema, table }) => JSON.stringify([schema, table]));
  const grown = [...byTable.values()].flatMap((of): GrownTable[] => {
    const [first, last] = [of[0], of.at(-1)];
    if (first === undefined || last === undefined || first.day === last.day) return [];
    const { schema, table, bytes } = last;
    const count = Math.round((Date.parse(last.day) - Date.parse(first.day)) / DAY_MS);
    return [{ schema, table, bytes, grown_bytes: bytes - first.bytes, grown_days: count }];
  });
  const growing = grown.filter(({ grown_bytes: bytes }) => bytes > 0);
  return growing.toSorted((a, b) => b.grown_bytes - a.grown_bytes).slice(0, MAX_TABLES);
}

export function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}
