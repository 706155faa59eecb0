// The axis of a large trend: values at the left, times below, in the zone of the stack.

import { linear, niceTicks, timeTicks } from '../../../shared/domain/plot.ts';
import { aheadAt } from '../../../shared/domain/zoned-time.ts';
import { timeInZone } from '../clock.ts';

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
  words: (value: number) => string;
}

export function TimeAxis({ frame, range, span, timeZone, words }: TimeAxisProps) {
  const { left, right, top, bottom } = frame;
  const y = linear(range, [bottom, top]);
  return (
    <>
      {niceTicks(range[0], range[1], 5).map((value) => (
        <>
          <path class="grid" d={`M${left} ${Math.round(y(value))}H${right}`} />
          <text class="tick end" x={left - 8} y={Math.round(y(value)) + 4}>
            {words(value)}
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
  const byDay = to - from > 2 * 86_400_000;
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
