// One figure with its unit, as people read it.

import { bytesInWords, counted, rounded } from './amounts.ts';

export type FigureUnit = 'bytes' | 'percent' | 'days' | 'seconds' | 'milliseconds' | 'count';

/** `25 GB`, `41.5 %`, `1 day`, `0.032 s`, `120 ms`, `3`. */
export function figureInWords(value: number, unit: FigureUnit): string {
  switch (unit) {
    case 'bytes':
      return bytesInWords(value);
    case 'percent':
      return `${rounded(value, 1)} %`;
    case 'days':
      return counted(Math.floor(value), 'day');
    case 'seconds':
      return `${rounded(value, 3)} s`;
    case 'milliseconds':
      return `${Math.round(value)} ms`;
    case 'count':
      return String(rounded(value, 1));
  }
}
