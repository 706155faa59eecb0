// A status over time, as a strip whose height says the same as its colour: for modules without a figure.

import { durationInWords } from '../../../shared/domain/amounts.ts';
import { linear } from '../../../shared/domain/plot.ts';
import { type Status, STATUSES, urgency } from '../../../shared/domain/status.ts';
import { TimeTicks } from './trend-axis.tsx';

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
      aria-label={inWords(stretches)}
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

/** Each goes on to the next sample, unless that is far away. */
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

function inWords(stretches: readonly Stretch[]): string {
  const times = STATUSES.flatMap((status) => {
    const own = stretches.filter((each) => each.status === status);
    const ms = own.reduce((sum, { from, to }) => sum + to - from, 0);
    return own.length === 0 ? [] : [`${status} for ${durationInWords(ms)}`];
  });
  return `status over time: ${times.join(', ')}; now ${stretches.at(-1)?.status ?? 'unknown'}`;
}
