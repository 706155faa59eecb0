// The arithmetic of charts: scales, ticks at round values and times, and a line that has a gap
// where nothing was measured.

export type Scale = (value: number) => number;

export interface Point {
  x: number;
  /** Null: not known. */
  y: number | null;
}

/** Maps `from..to` to `low..high`; everything to the middle where `from` is `to`. */
export function linear([from, to]: readonly [number, number], [low, high]: readonly [number, number]): Scale {
  if (from === to) return () => (low + high) / 2;
  return (value) => low + ((value - from) / (to - from)) * (high - low);
}

/** Round values (1, 2 or 5 times a power of ten) within `low..high`, at most `most`. */
export function niceTicks(low: number, high: number, most = 5): number[] {
  if (!(high > low) || most < 2) return [low];
  const step = niceStep((high - low) / (most - 1), low, high, most);
  const first = Math.ceil(roundedTo(low / step));
  const last = Math.floor(roundedTo(high / step));
  return Array.from({ length: last - first + 1 }, (_, each) => roundedTo((first + each) * step));
}

function niceStep(rough: number, low: number, high: number, most: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const fits = (step: number): boolean => Math.floor(high / step) - Math.ceil(low / step) < most;
  return (
    [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * 0.999 && fits(step)) ?? power * 10
  );
}

/** Without the last bits in which sums of decimals differ. */
function roundedTo(value: number): number {
  return Number(value.toPrecision(12));
}

/**
 * From zero, or from a little below the lowest where all lies far from zero; to the next round
 * value.
 */
export function niceRange(values: readonly number[], fromZero = true): [number, number] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = high === low ? Math.abs(high) * 0.1 || 1 : (high - low) * 0.1;
  return [fromZero ? Math.min(0, low) : low - room, high + room];
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [
  ...[1, 5, 15, 30].map((count) => count * MINUTE),
  ...[1, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 4, 7, 14, 30, 90, 180, 365].map((count) => count * DAY),
];

/**
 * Round times within the span, at most `most`. `offsetMs`: what the clock on the wall is ahead of
 * UTC.
 */
export function timeTicks(fromMs: number, toMs: number, most = 6, offsetMs = 0): number[] {
  const step = TIME_STEPS.find((each) => (toMs - fromMs) / each < most) ?? 1000 * DAY;
  const first = Math.ceil((fromMs + offsetMs) / step) * step - offsetMs;
  const count = Math.max(0, Math.floor((toMs - first) / step) + 1);
  return Array.from({ length: count }, (_, each) => first + each * step);
}

/** The points with one that is not known wherever two lie further apart than that. */
export function withGaps(points: readonly Point[], maxApart: number): Point[] {
  return points.flatMap((point, at) => {
    const before = points[at - 1];
    if (before === undefined || point.x - before.x <= maxApart) return [point];
    return [{ x: before.x + maxApart, y: null }, point];
  });
}

/** Unbroken runs of known points. */
export function runsOf(points: readonly Point[]): { x: number; y: number }[][] {
  const runs: { x: number; y: number }[][] = [];
  let open: { x: number; y: number }[] | undefined;
  for (const { x, y } of points) {
    if (y === null) open = undefined;
    else if (open === undefined) runs.push((open = [{ x, y }]));
    else open.push({ x, y });
  }
  return runs;
}

/**
 * The `d` of an SVG path: a line for each run, a dot (with round caps) for a point that stands
 * alone.
 */
export function linePath(points: readonly Point[], x: Scale, y: Scale): string {
  return runsOf(points)
    .map((run) => {
      const [first, ...others] = run.map((point) => `${short(x(point.x))} ${short(y(point.y))}`);
      return others.length === 0 ? `M${first}h0` : `M${first}L${others.join('L')}`;
    })
    .join('');
}

/** The area between the line and `base`, in pixels. */
export function areaPath(points: readonly Point[], x: Scale, y: Scale, base: number): string {
  return runsOf(points)
    .filter((run) => run.length > 1)
    .map((run) => {
      const line = run.map((point) => `${short(x(point.x))} ${short(y(point.y))}`).join('L');
      return `M${short(x(run[0]?.x ?? 0))} ${short(base)}L${line}L${short(x(run.at(-1)?.x ?? 0))} ${short(base)}Z`;
    })
    .join('');
}

function short(pixels: number): string {
  return String(Math.round(pixels * 10) / 10);
}

/**
 * At most `count` points: of those in one stretch the highest, or one that is not known where none
 * is.
 */
export function thinned(points: readonly Point[], count: number): Point[] {
  const first = points[0];
  const last = points.at(-1);
  if (points.length <= count || first === undefined || last === undefined) return [...points];
  const width = (last.x - first.x) / count || 1;
  const stretches = Map.groupBy(points, ({ x }) => Math.min(count - 1, Math.floor((x - first.x) / width)));
  return [...stretches.values()].map((stretch) =>
    stretch.reduce((best, point) => ((point.y ?? -Infinity) > (best.y ?? -Infinity) ? point : best)),
  );
}
