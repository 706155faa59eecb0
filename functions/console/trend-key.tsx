// What the dashed lines of a trend are.

import { figureInWords } from '../../shared/domain/figure-in-words.ts';
import type { Trend } from '../../shared/health/module.ts';

interface TrendKeyProps {
  trend: Trend | undefined;
  limits: { warning?: number; critical?: number };
}

/** Also where they lie out of sight. */
export function TrendKey({ trend, limits }: TrendKeyProps) {
  if (trend === undefined) return null;
  const known = Object.entries(limits).filter(([, value]) => Number.isFinite(value));
  if (known.length === 0) return null;
  return (
    <p class="fine key">
      {known.map(([name, value]) => (
        <span>
          <svg viewBox="0 0 28 8" class="trend" aria-hidden="true" focusable="false">
            <path class={`limit ${name}`} d="M0 4H28" />
          </svg>
          {name} at {figureInWords(value, trend.unit)}
        </span>
      ))}
    </p>
  );
}
