// Draws a figure or a status over time as SVG, with gaps where samples are missing. Describes it
// for screen readers.

import { formatDuration, formatFigure } from '@holdfast/kit/format';
import type { Trend as TrendOf } from '../../../shared/health/module.ts';
import type { HealthSample } from '../../../shared/health/port.ts';
import { areaPath, linear, linePath, niceRange, type Point, thinned, withGaps } from '../../../shared/http/plot.ts';
import { type Status, STATUSES, urgency } from '../../../shared/settings/status.ts';
import { TimeAxis, TimeTicks, type TrendFrame } from './size-chart.tsx';

interface StripProps {
  seen: readonly { x: number; status: Status }[];
  from: number;
  to: number;
  apartMs: number;
  large?: { kind: 'narrow' | 'wide'; timeZone: string };
}

const FRAMES = {
  small: { width: 300, height: 24, left: 0, right: 300, top: 2, bottom: 22 },
  narrow: { width: 340, height: 80, left: 4, right: 336, top: 4, bottom: 50 },
  wide: { width: 960, height: 80, left: 4, right: 956, top: 4, bottom: 50 },
};

interface Stretch {
  status: Status;
  from: number;
  to: number;
}

/**
 * A status over time, as a strip whose height repeats what its color says. For modules without a
 * figure.
 */
export function StatusStrip({ seen, from, to, apartMs, large }: StripProps) {
  const stretches = stretchesOf(seen, apartMs, to);
  const kind = large?.kind ?? 'small';
  const frame = FRAMES[kind];
  const x = linear([from, to], [frame.left, frame.right]);
  const full = frame.bottom - frame.top;
  return (
    <svg
      class={`trend strip ${kind}`}
      viewBox={`0 0 ${frame.width} ${frame.height}`}
      preserveAspectRatio={large === undefined ? 'none' : undefined}
      role="img"
      aria-label={describeStatuses(stretches)}
    >
      {stretches.map((stretch) => {
        const height = full * (0.4 + 0.2 * urgency(stretch.status));
        const left = Math.round(x(stretch.from) * 10) / 10;
        const width = Math.max(1, Math.round((x(stretch.to) - x(stretch.from)) * 10) / 10);
        return <rect class={stretch.status} x={left} y={frame.bottom - height} width={width} height={height} />;
      })}
      {large === undefined ? null : <TimeTicks frame={frame} span={[from, to]} timeZone={large.timeZone} />}
    </svg>
  );
}

/** Each sample extends to the next one, unless a gap follows. */
function stretchesOf(seen: StripProps['seen'], apartMs: number, end: number): Stretch[] {
  const stretches: Stretch[] = [];
  seen.forEach(({ x, status }, at) => {
    const to = Math.min(seen[at + 1]?.x ?? end, x + apartMs);
    const open = stretches.at(-1);
    if (open !== undefined && open.status === status && open.to >= x) open.to = to;
    else stretches.push({ status, from: x, to });
  });
  return stretches;
}

function describeStatuses(stretches: readonly Stretch[]): string {
  const times = STATUSES.flatMap((status) => {
    const own = stretches.filter((each) => each.status === status);
    const ms = own.reduce((sum, { from, to }) => sum + to - from, 0);
    return own.length === 0 ? [] : [`${status} for ${formatDuration(ms)}`];
  });
  return `status over time: ${times.join(', ')}, now ${stretches.at(-1)?.status ?? 'unknown'}`;
}

interface TrendProps {
  module: string;
  samples: readonly HealthSample[];
  trend: TrendOf | undefined;
  limits: { warning?: number; critical?: number };
  /** Milliseconds. */
  from: number;
  to: number;
  /** Samples further apart than this have a gap between them. */
  apartMs: number;
  /** With axes, for narrow or wide screens. */
  large?: { kind: 'narrow' | 'wide'; timeZone: string };
}

const TREND_FRAMES: Record<'small' | 'narrow' | 'wide', TrendFrame & { points: number }> = {
  small: { width: 300, height: 56, left: 2, right: 298, top: 4, bottom: 52, points: 96 },
  narrow: { width: 340, height: 200, left: 56, right: 336, top: 10, bottom: 172, points: 140 },
  wide: { width: 960, height: 240, left: 72, right: 952, top: 10, bottom: 208, points: 336 },
};

/** Renders both widths. The style shows one. */
export function LargeTrend({ timeZone, ...props }: Omit<TrendProps, 'large'> & { timeZone: string }) {
  if (seenOf(props).length < 2) return <p class="fine">No trend yet. The first values arrive within 10 minutes.</p>;
  return (
    <>
      <Trend {...props} large={{ kind: 'narrow', timeZone }} />
      <Trend {...props} large={{ kind: 'wide', timeZone }} />
    </>
  );
}

/**
 * The line of the figure, or the status where no figure is known. Renders nothing with fewer than
 * two samples.
 */
export function Trend(props: TrendProps) {
  const { trend } = props;
  const seen = seenOf(props);
  const points = seen.map(({ x, figure }): Point => ({ x, y: figure }));
  if (seen.length < 2) return null;
  if (trend === undefined || points.every(({ y }) => y === null)) return <StatusStrip {...props} seen={seen} />;
  return <Line {...props} trend={trend} points={points} status={seen.at(-1)?.status ?? 'ok'} />;
}

function seenOf({ module, samples, from, to }: Pick<TrendProps, 'module' | 'samples' | 'from' | 'to'>) {
  return samples.flatMap(({ at, modules }) => {
    const known = modules[module];
    const x = Date.parse(at);
    return known === undefined || x < from || x > to ? [] : [{ x, ...known }];
  });
}

function Line(props: TrendProps & { trend: TrendOf; points: Point[]; status: Status }) {
  const { trend, points, limits, from, to, apartMs, large, status } = props;
  const kind = large?.kind ?? 'small';
  const frame = TREND_FRAMES[kind];
  const values = points.flatMap(({ y }) => y ?? []);
  const displayedLimits = limitsInReach(limits, values);
  const [low, high] = niceRange([...values, ...displayedLimits.map(([, value]) => value)], trend.unit !== 'days');
  const x = linear([from, to], [frame.left, frame.right]);
  const y = linear([Math.max(low, 0), high], [frame.bottom, frame.top]);
  // Thinned points are further apart: that is not a gap.
  const few = withGaps(thinned(points, frame.points), Math.max(apartMs, ((to - from) / frame.points) * 2));
  const format = (value: number): string => formatFigure(value, trend.unit);
  return (
    <svg
      class={`trend ${kind} ${status}`}
      viewBox={`0 0 ${frame.width} ${frame.height}`}
      preserveAspectRatio={large === undefined ? 'none' : undefined}
      role="img"
      aria-label={describeTrend(trend, values)}
    >
      {large === undefined ? null : (
        <TimeAxis
          frame={frame}
          range={[Math.max(low, 0), high]}
          span={[from, to]}
          format={format}
          timeZone={large.timeZone}
        />
      )}
      <path class="area" d={areaPath(few, x, y, frame.bottom)} />
      {displayedLimits.map(([name, value]) => (
        <path class={`limit ${name}`} d={`M${frame.left} ${Math.round(y(value))}H${frame.right}`} />
      ))}
      <path class="line" d={linePath(few, x, y)} />
    </svg>
  );
}

/** The thresholds near the values. Others would flatten the line. */
function limitsInReach({ warning, critical }: TrendProps['limits'], values: readonly number[]): [string, number][] {
  const [lowest, highest] = [Math.min(...values), Math.max(...values)];
  const limits: [string, number | undefined][] = [
    ['warning', warning],
    ['critical', critical],
  ];
  return limits.flatMap(([name, value]): [string, number][] =>
    value === undefined || !Number.isFinite(value) || value > highest * 2.5 || value < lowest / 2.5
      ? []
      : [[name, value]],
  );
}

/** `size over time: first 12 GB, last 14 GB, lowest 12 GB, highest 14 GB`. */
export function describeTrend({ name, unit }: TrendOf, values: readonly number[]): string {
  const format = (value: number | undefined): string => formatFigure(value ?? 0, unit);
  const [lowest, highest] = [Math.min(...values), Math.max(...values)];
  return `${name} over time: first ${format(values[0])}, last ${format(values.at(-1))}, lowest ${format(lowest)}, highest ${format(highest)}`;
}
