// One figure with its unit, as people read it.

import { bytesInWords, counted, rounded } from './amounts.ts';

const IN_WORDS = {
  bytes: bytesInWords,
  percent: (value: number) => `${rounded(value, 1)} %`,
  days: (value: number) => counted(Math.floor(value), 'day'),
  seconds: (value: number) => `${rounded(value, 3)} s`,
  milliseconds: (value: number) => `${Math.round(value)} ms`,
  count: (value: number) => String(rounded(value, 1)),
};

export type FigureUnit = keyof typeof IN_WORDS;

/** `25 GB`, `41.5 %`, `1 day`, `0.032 s`, `120 ms`, `3`. */
export function figureInWords(value: number, unit: FigureUnit): string {
  return IN_WORDS[unit](value);
}
