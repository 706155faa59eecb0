// Computes when a growing size reaches a limit, with a range, and thins a history to few rows.

import { DAY_MS } from '@holdfast/kit/time';
import { fullIn, type Growth, MAX_DAYS } from './forecast.ts';

export type Reach =
  | { state: 'reached' }
  | { state: 'never' }
  | { state: 'unknown' }
  | { state: 'ahead'; atMs: number; earliestMs: number; /** Null: it may never come. */ latestMs: number | null };

/** `never`: not within two years at the current growth. */
export function reachOf(growth: Growth | undefined, bytes: number | null, limit: number, nowMs: number): Reach {
  if (bytes !== null && bytes >= limit) return { state: 'reached' };
  if (growth === undefined || bytes === null) return { state: 'unknown' };
  const full = fullIn(growth, limit - bytes);
  if (full === undefined || full.days > MAX_DAYS) return { state: 'never' };
  const { days, earliest, latest } = full;
  const at = (count: number): number => nowMs + count * DAY_MS;
  return {
    state: 'ahead',
    atMs: at(days),
    earliestMs: at(Math.min(days, earliest)),
    latestMs: latest === null || latest > MAX_DAYS ? null : at(Math.max(days, latest)),
  };
}

export interface SizeThen {
  atMs: number;
  bytes: number;
}

const DEVIATIONS = 1.28;

/** The forecast size: likely, least and most. */
export function sizesAhead(growth: Growth, from: SizeThen, toMs: number): Record<'likely' | 'least' | 'most', number> {
  const days = Math.max(0, (toMs - from.atMs) / DAY_MS);
  const chance = DEVIATIONS * growth.dayDeviation * Math.sqrt(days);
  const after = (perDay: number): number => Math.max(0, from.bytes + perDay * days);
  return {
    likely: after(growth.bytesPerDay),
    least: Math.max(0, after(growth.minPerDay) - chance),
    most: after(growth.maxPerDay) + chance,
  };
}

/** The last point of each of `count` equal stretches of time; empty stretches are skipped. */
export function lastOfEach(points: readonly SizeThen[], fromMs: number, toMs: number, count: number): SizeThen[] {
  const width = (toMs - fromMs) / count || 1;
  const stretches = new Map<number, SizeThen>();
  for (const point of points)
    if (point.atMs >= fromMs && point.atMs <= toMs)
      stretches.set(Math.min(count - 1, Math.floor((point.atMs - fromMs) / width)), point);
  return [...stretches.values()];
}
