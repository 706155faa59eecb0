// Draws a size over time as SVG: measured values, forecast with its range, and thresholds.
// Describes it for screen readers.

import { formatBytes } from '@holdfast/kit/format';
import { aheadAt, DAY_MS } from '@holdfast/kit/time';
import type { Growth } from '../../../shared/database/forecast.ts';
import { sizesAhead, type SizeThen } from '../../../shared/database/size-forecast.ts';
import {
  areaPath,
  linear,
  linePath,
  niceTicks,
  type Point,
  type Scale,
  thinned,
  timeTicks,
  withGaps,
} from '../../../shared/http/plot.ts';
import { timeInZone } from './time.tsx';

/** The plot area of a chart. */
export interface TrendFrame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

interface TimeAxisProps {
  frame: TrendFrame;
  range: readonly [number, number];
  span: readonly [from: number, to: number];
  timeZone: string;
  format: (value: number) => string;
}

export function TimeAxis({ frame, range, span, timeZone, format }: TimeAxisProps) {
  const { left, right, top, bottom } = frame;
  const y = linear(range, [bottom, top]);
  return (
    <>
      {niceTicks(range[0], range[1], 5).map((value) => (
        <>
          <path class="grid" d={`M${left} ${Math.round(y(value))}H${right}`} />
          <text class="tick end" x={left - 8} y={Math.round(y(value)) + 4}>
            {format(value)}
          </text>
        </>
      ))}
      <TimeTicks frame={frame} span={span} timeZone={timeZone} />
    </>
  );
}

export function TimeTicks({ frame, span, timeZone }: Pick<TimeAxisProps, 'frame' | 'span' | 'timeZone'>) {
  const { left, right, bottom } = frame;
  const [from, to] = span;
  const x = linear(span, [left, right]);
  const byDay = to - from > 2 * DAY_MS;
  return (
    <>
      {timeTicks(from, to, (right - left) / 70, aheadAt(to, timeZone)).map((ms) => {
        const text = timeInZone(new Date(ms).toISOString(), timeZone);
        const at = Math.round(x(ms));
        return (
          <>
            <path class="grid" d={`M${at} ${bottom}v5`} />
            <text class="tick middle" x={at} y={bottom + 20}>
              {byDay ? text.slice(5, 10) : text.slice(11)}
            </text>
          </>
        );
      })}
    </>
  );
}

interface SizeChartProps {
  /** Null where the size is unknown. */
  points: readonly { atMs: number; bytes: number | null }[];
  fromMs: number;
  nowMs: number;
  /** Later than `nowMs` when a forecast is drawn. */
  toMs: number;
  growth: Growth | undefined;
  limits: { warning: number; critical: number };
  /** Samples further apart than this have a gap between them. */
  apartMs: number;
  timeZone: string;
}

const FRAMES: Record<'narrow' | 'wide', TrendFrame & { points: number }> = {
  narrow: { width: 340, height: 240, left: 52, right: 334, top: 14, bottom: 210, points: 160 },
  wide: { width: 960, height: 300, left: 66, right: 950, top: 14, bottom: 268, points: 400 },
};
/**
 * Thresholds above this multiple of the highest size are not drawn: they would flatten the line.
 */
const IN_REACH = 2.2;

/** Renders both widths. The style shows one. */
export function SizeChart(props: SizeChartProps) {
  return (
    <>
      <Chart {...props} kind="narrow" />
      <Chart {...props} kind="wide" />
    </>
  );
}

function Chart(props: SizeChartProps & { kind: 'narrow' | 'wide' }) {
  const { points, fromMs, toMs, limits, growth, apartMs, timeZone, kind } = props;
  const frame = FRAMES[kind];
  const known = points.map(({ atMs, bytes }): Point => ({ x: atMs, y: bytes }));
  const last = points.findLast((point): point is SizeThen => point.bytes !== null);
  const ahead = growth === undefined || last === undefined || toMs <= last.atMs ? undefined : { growth, last };
  const likely = ahead === undefined ? 0 : sizesAhead(ahead.growth, ahead.last, toMs).likely;
  const highest = Math.max(1, likely, ...points.map(({ bytes }) => bytes ?? 0));
  const shown = (['warning', 'critical'] as const).filter((name) => limits[name] <= highest * IN_REACH);
  const top = Math.max(highest, ...shown.map((name) => limits[name])) * 1.08;
  const x = linear([fromMs, toMs], [frame.left, frame.right]);
  const y = linear([0, top], [frame.bottom, frame.top]);
  const few = thinned(withGaps(known, apartMs), frame.points);
  return (
    <svg
      class={`trend size ${kind}`}
      viewBox={`0 0 ${frame.width} ${frame.height}`}
      role="img"
      aria-label={describeSize(props, last)}
    >
      <TimeAxis frame={frame} range={[0, top]} span={[fromMs, toMs]} format={formatBytes} timeZone={timeZone} />
      <path class="area" d={areaPath(few, x, y, frame.bottom)} />
      {ahead === undefined ? null : <Ahead {...ahead} toMs={toMs} top={top} x={x} y={y} />}
      {shown.map((name) => (
        <Limit name={name} bytes={limits[name]} frame={frame} y={y} />
      ))}
      <path class="line" d={linePath(few, x, y)} />
      {ahead === undefined ? null : (
        <circle class="now" cx={round(x(ahead.last.atMs))} cy={round(y(ahead.last.bytes))} r="4" />
      )}
    </svg>
  );
}

const STEPS = 12;

interface AheadProps {
  growth: Growth;
  last: SizeThen;
  toMs: number;
  top: number;
  x: Scale;
  y: Scale;
}

function Ahead({ growth, last, toMs, top, x, y }: AheadProps) {
  const times = Array.from({ length: STEPS + 1 }, (_, step) => last.atMs + ((toMs - last.atMs) * step) / STEPS);
  const sizes = times.map((atMs) => ({ atMs, ...sizesAhead(growth, last, atMs) }));
  const path = (which: 'likely' | 'least' | 'most', of: typeof sizes): string =>
    of.map((size) => `${round(x(size.atMs))} ${round(y(Math.min(top, size[which])))}`).join('L');
  return (
    <>
      <path class="band" d={`M${path('most', sizes)}L${path('least', sizes.toReversed())}Z`} />
      <path class="ahead" d={`M${path('likely', sizes)}`} />
    </>
  );
}

interface LimitProps {
  name: 'warning' | 'critical';
  bytes: number;
  frame: TrendFrame;
  y: Scale;
}

function Limit({ name, bytes, frame, y }: LimitProps) {
  const at = round(y(bytes));
  return (
    <>
      <path class={`limit ${name}`} d={`M${frame.left} ${at}H${frame.right}`} />
      <text class={`limit-name ${name}`} x={frame.left + 6} y={at - 5}>
        {name} {formatBytes(bytes)}
      </text>
    </>
  );
}

function round(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}

function describeSize({ points, growth, limits, toMs }: SizeChartProps, last: SizeThen | undefined): string {
  const first = points.find(({ bytes }) => bytes !== null);
  if (first === undefined || last === undefined) return 'size over time: no data';
  const ahead =
    growth === undefined ? '' : `, at the end of the forecast ${formatBytes(sizesAhead(growth, last, toMs).likely)}`;
  return `size over time: first ${formatBytes(first.bytes ?? 0)}, now ${formatBytes(last.bytes)}${ahead}, warning at ${formatBytes(limits.warning)}, critical at ${formatBytes(limits.critical)}`;
}
