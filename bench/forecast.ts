// How far off the forecast of a full disk is, over recorded and made curves of growth. At several
// moments of each curve the forecast sees the past alone, with a disk that the curve fills 3, 7 and
// 14 days later; beside it a straight line through the first and the last sample, and least squares
// over all of them.

import { DAY_MS } from '@holdfast/kit/time';
import { fullIn, type FullIn, type Point, trendOf } from '../shared/database/forecast.ts';
import { type Curve, madeCurves, recordedCurves } from './growth-curves.ts';
import { report, reportAim, sampleOf } from './measure.ts';

/** Days after the first sample. */
const MOMENTS = [2, 4, 7, 10, 14, 18, 21, 25, 28, 31];
const AHEAD = [3, 7, 14];
/** A curve that grows by less until then stands still. */
const MIN_GROWTH = 0.01;
/** A date that is never told is as wrong as one that is twice as far. */
const NEVER_PCT = 100;

interface Tried {
  curve: string;
  trend: number;
  line: number;
  squares: number;
  within: boolean;
}

interface Falsely {
  curve: string;
  /** It told a date before the end of the curve, with a disk that the curve never fills. */
  reported: boolean;
}

export async function run(): Promise<void> {
  const curves = [...recordedCurves(), ...madeCurves()];
  const tried = curves.flatMap(triedOn);
  for (const { name } of curves)
    reportCurve(
      name,
      tried.filter(({ curve }) => curve === name),
    );
  report('', '');
  const errors = sampleOf(tried.map(({ trend }) => trend));
  const line = sampleOf(tried.map((each) => each.line));
  const squares = sampleOf(tried.map((each) => each.squares));
  reportAim(`median error of the date, ${curves.length} curves, ${tried.length} dates`, errors.median, 15, '%', {
    digits: 1,
  });
  report('  the worst', `${errors.most.toFixed(0)} %`);
  reportAim(
    'dates that lie in the interval',
    share(tried, ({ within }) => within),
    80,
    '%',
    { digits: 0, least: true },
  );
  report('median error of the line through the first and the last sample', `${line.median.toFixed(1)} %`);
  report('median error of least squares', `${squares.median.toFixed(1)} %`);
  reportAim('  ratio to the line', errors.median / line.median, 1, 'times');
  reportAim('  ratio to least squares', errors.median / squares.median, 1, 'times');
  const false_ = curves.flatMap(falselyOn);
  report(
    `dates told where the disk never fills, of ${false_.length}`,
    `${share(false_, ({ reported }) => reported).toFixed(0)} %`,
  );
}

function reportCurve(name: string, of: readonly Tried[]): void {
  const { median, most } = sampleOf(of.map(({ trend }) => trend));
  const [line, squares] = [sampleOf(of.map((each) => each.line)), sampleOf(of.map((each) => each.squares))];
  const within = share(of, (each) => each.within);
  report(
    name,
    `${of.length} dates, ${median.toFixed(1)} % off (worst ${most.toFixed(0)}), ${within.toFixed(0)} % within; ` +
      `line ${line.median.toFixed(1)} %, least squares ${squares.median.toFixed(1)} %`,
  );
}

function share<T>(all: readonly T[], holds: (each: T) => boolean): number {
  return (all.filter(holds).length / Math.max(1, all.length)) * 100;
}

/** The moments at which the curve later grows at all. */
function triedOn({ name, points }: Curve): Tried[] {
  return momentsOf(points).flatMap(({ past, nowMs, size }) =>
    AHEAD.flatMap((ahead) => {
      const capacity = highestUntil(points, nowMs + ahead * DAY_MS);
      const full = points.find(({ atMs, bytes }) => atMs > nowMs && bytes >= capacity);
      const already = highestUntil(points, nowMs);
      if (
        full === undefined ||
        capacity < already * (1 + MIN_GROWTH) ||
        nowMs + ahead * DAY_MS > (points.at(-1)?.atMs ?? 0)
      )
        return [];
      const real = (full.atMs - nowMs) / DAY_MS;
      const forecast = forecastOf(past, nowMs, capacity - size);
      return [
        {
          curve: name,
          trend: errorOf(forecast?.days, real),
          line: errorOf((capacity - size) / lineThrough(past), real),
          squares: errorOf((capacity - size) / leastSquares(past), real),
          within: liesIn(forecast, real),
        },
      ];
    }),
  );
}

/** With room for twice what the curve still brings. */
function falselyOn({ name, points }: Curve): Falsely[] {
  const endMs = points.at(-1)?.atMs ?? 0;
  return momentsOf(points).map(({ past, nowMs, size }) => {
    const room = Math.max(2 * (highestUntil(points, endMs) - size), size * 0.5);
    const days = forecastOf(past, nowMs, room)?.days ?? Number.POSITIVE_INFINITY;
    return { curve: name, reported: days < (endMs - nowMs) / DAY_MS };
  });
}

function momentsOf(points: readonly Point[]): { past: Point[]; nowMs: number; size: number }[] {
  const firstMs = points[0]?.atMs ?? 0;
  return MOMENTS.map((day) => {
    const past = points.filter(({ atMs }) => atMs <= firstMs + day * DAY_MS);
    const last = past.at(-1);
    return { past, nowMs: last?.atMs ?? 0, size: last?.bytes ?? 0 };
  });
}

function highestUntil(points: readonly Point[], untilMs: number): number {
  return Math.max(...points.filter(({ atMs }) => atMs <= untilMs).map(({ bytes }) => bytes));
}

function forecastOf(past: readonly Point[], nowMs: number, room: number): FullIn | undefined {
  const growth = trendOf(past, nowMs);
  return growth === undefined ? undefined : fullIn(growth, room);
}

function errorOf(days: number | undefined, real: number): number {
  if (days === undefined || days < 0 || !Number.isFinite(days)) return NEVER_PCT;
  return (Math.abs(days - real) / real) * 100;
}

function liesIn(forecast: FullIn | undefined, real: number): boolean {
  if (forecast === undefined) return false;
  return forecast.earliest <= real && (forecast.latest === null || real <= forecast.latest);
}

/** Bytes a day. */
function lineThrough(points: readonly Point[]): number {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return 0;
  return ((last.bytes - first.bytes) / (last.atMs - first.atMs)) * DAY_MS;
}

function leastSquares(points: readonly Point[]): number {
  const meanAt = points.reduce((sum, { atMs }) => sum + atMs, 0) / points.length;
  const meanBytes = points.reduce((sum, { bytes }) => sum + bytes, 0) / points.length;
  const above = points.reduce((sum, { atMs, bytes }) => sum + (atMs - meanAt) * (bytes - meanBytes), 0);
  const below = points.reduce((sum, { atMs }) => sum + (atMs - meanAt) ** 2, 0);
  return (above / below) * DAY_MS;
}
