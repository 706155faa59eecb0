// Forecasts growth and the time until no space is left, each with a range. The trend is the long
// run, without one-time changes (an import, a VACUUM FULL) and peaks; the pace covers the last
// minutes.

import { DAY_MS, HOUR_MS, MINUTE_MS } from '@holdfast/kit/time';

export interface Point {
  atMs: number;
  bytes: number;
}

/** Growth in bytes per day, with its range from `minPerDay` to `maxPerDay`. */
export interface Growth {
  basis: 'trend' | 'pace';
  bytesPerDay: number;
  minPerDay: number;
  maxPerDay: number;
  /** Standard deviation between days. */
  dayDeviation: number;
  /** How far above the current size an ordinary day peaks, for example during a nightly backup. */
  swingBytes: number;
  sinceMs: number;
}

/** Days from now until no space is left; `latest` is null if that may never happen. */
export interface FullIn {
  days: number;
  earliest: number;
  latest: number | null;
}

/** A shorter time of samples gives no trend. */
const MIN_TREND_MS = 6 * HOUR_MS;
/** Older samples say little about the future. */
export const MAX_TREND_MS = 56 * DAY_MS;
/** From this span on, days are compared; before, hours. */
const WHOLE_DAYS_MS = 4 * DAY_MS;
/** A shorter rise is a peak: a backup, or the copy of a VACUUM FULL. */
const PEAK_MS = 2 * HOUR_MS;
const WEEK = 7;
/** The longest forecast. */
export const MAX_DAYS = 730;

const PACE_MS = 10 * MINUTE_MS;
const MIN_PACE_MS = 4 * MINUTE_MS;
/** A pace must have a sample this recent. */
const FRESH_MS = 3 * MINUTE_MS;
/** More than the five steps of a four-minute import, which begins and ends between two samples. */
const MIN_STEPS = 6;
/** A step below this fraction of the usual one belongs to the quiet before or after. */
const SLOW = 0.25;
/** One step in this many may be flat. */
const STEPS_FOR_A_MISS = 7;

/** Eight of ten values of a normal distribution are within this many deviations. */
const DEVIATIONS = 1.28;

/** The long-run growth; undefined before six hours of samples. Ignores points after `nowMs`. */
export function trendOf(points: readonly Point[], nowMs: number): Growth | undefined {
  const known = ascending(points).filter(({ atMs }) => atMs <= nowMs && atMs > nowMs - MAX_TREND_MS);
  const first = known[0];
  const last = known.at(-1);
  if (first === undefined || last === undefined || last.atMs - first.atMs < MIN_TREND_MS) return undefined;
  const lasting = withoutPeaks(highest(known, HOUR_MS, last.atMs));
  const spanMs = last.atMs - first.atMs;
  const slotMs = spanMs >= WHOLE_DAYS_MS ? DAY_MS : HOUR_MS;
  const slots = highest(lasting, slotMs, lasting.at(-1)?.atMs ?? last.atMs);
  const all = stepsBetween(slots, slotMs);
  if (all.length === 0) return undefined;
  const growth = growthOf(withoutJumps(all), slotMs, spanMs, first.atMs);
  // A jump may happen again.
  const withJumps = meanOf(all) * (DAY_MS / slotMs);
  const maxPerDay = Math.max(growth.maxPerDay, withJumps);
  return { ...growth, maxPerDay, swingBytes: swingOf(known, growth.bytesPerDay) };
}

const ORDINARY_DAYS = 3;

/** The usual daily peak of the last days above the trend. */
function swingOf(known: readonly Point[], bytesPerDay: number): number {
  const last = known.at(-1);
  if (last === undefined) return 0;
  const ago = ({ atMs }: Point): number => Math.floor((last.atMs - atMs) / DAY_MS);
  const days = Array.from({ length: ORDINARY_DAYS }, (_, day) => known.filter((point) => ago(point) === day));
  if (days.some((points) => points.length === 0)) return 0;
  const grown = days.map((points) =>
    Math.max(...points.map(({ atMs, bytes }) => bytes + (bytesPerDay * (last.atMs - atMs)) / DAY_MS)),
  );
  return Math.max(0, median(grown) - last.bytes);
}

/** The change per slot between two known slots. */
interface Step {
  change: number;
  slots: number;
}

function growthOf(steps: readonly Step[], slotMs: number, spanMs: number, sinceMs: number): Growth {
  const perDay = DAY_MS / slotMs;
  const windows = windowsOf(steps, slotMs);
  const rates = windows.map((window) => meanOf(window) * perDay);
  const deviation = deviationOf(steps) * Math.sqrt(perDay);
  const shortest = (windows.at(-1)?.length ?? 1) / perDay;
  const { middle, next } = lately(rates, DEVIATIONS * (deviation / Math.sqrt(shortest)));
  const days = spanMs / DAY_MS;
  const unsure = DEVIATIONS * (deviation / Math.sqrt(days)) + Math.abs(middle) * littleDataPart(days);
  return {
    basis: 'trend',
    bytesPerDay: middle,
    minPerDay: Math.min(...rates, next, middle - unsure),
    maxPerDay: Math.max(...rates, next, middle + unsure),
    dayDeviation: deviation,
    swingBytes: 0,
    sinceMs,
  };
}

/**
 * Combines the rates of the whole time, half of it and a quarter of it. If they differ by at most
 * `chance`, the whole time counts. If the rate rises or falls steadily, the recent ones count, and
 * `next` extrapolates.
 */
function lately(rates: readonly number[], chance: number): { middle: number; next: number } {
  const [whole = 0, half = whole, quarter = half] = rates;
  if (Math.abs(quarter - whole) <= chance) return { middle: whole, next: whole };
  const moves = (half - whole) * (quarter - half) > 0;
  return moves ? { middle: (half + quarter) / 2, next: 2 * quarter - half } : { middle: median(rates), next: half };
}

/** The relative uncertainty of short histories: no full day, few days, or no second weekend. */
function littleDataPart(days: number): number {
  if (days < 1) return 2;
  if (days < 4) return 0.55;
  return days < 2 * WEEK ? 0.35 : 0.1;
}

/**
 * The last steps of the whole time, half and a quarter of it, in whole days or weeks if possible.
 */
function windowsOf(steps: readonly Step[], slotMs: number): Step[][] {
  const all = steps.reduce((sum, { slots }) => sum + slots, 0);
  const round = slotMs === DAY_MS ? WEEK : DAY_MS / HOUR_MS;
  const lengths = [all, all / 2, all / 4].map((length) =>
    length >= round ? Math.floor(length / round) * round : length,
  );
  const windows = lengths.map((length) => lastSlots(steps, Math.max(2, Math.round(length))));
  return windows.filter((window) => window.length > 0);
}

function lastSlots(steps: readonly Step[], most: number): Step[] {
  const taken: Step[] = [];
  let slots = 0;
  for (const step of steps.toReversed()) {
    if (slots >= most) break;
    taken.push(step);
    slots += step.slots;
  }
  return taken;
}

/** Drops outliers that happened once or twice; from three times on they count as recurring. */
function withoutJumps(steps: readonly Step[]): Step[] {
  const changes = steps.map(({ change }) => change);
  const usual = median(changes);
  const scale = median(changes.map((change) => Math.abs(change - usual)));
  const far = 6 * scale + 0.5 * Math.abs(usual) + 1e6;
  const jumps = (sign: number): Step[] => steps.filter(({ change }) => (change - usual) * sign > far);
  const once = [...rare(jumps(1)), ...rare(jumps(-1))];
  const kept = steps.filter((step) => !once.includes(step));
  return kept.length < 2 ? [...steps] : kept;
}

const COMES_AGAIN = 3;

function rare(jumps: readonly Step[]): readonly Step[] {
  return jumps.length < COMES_AGAIN ? jumps : [];
}

function stepsBetween(slots: readonly Point[], slotMs: number): Step[] {
  return slots.slice(1).map(({ atMs, bytes }, index) => {
    const before = slots[index] ?? { atMs, bytes };
    const count = Math.max(1, Math.round((atMs - before.atMs) / slotMs));
    return { change: (bytes - before.bytes) / count, slots: count };
  });
}

/** The maximum per slot; slots are counted back from `endMs`, so that the last one is complete. */
function highest(points: readonly Point[], slotMs: number, endMs: number): Point[] {
  const slots = new Map<number, number>();
  for (const { atMs, bytes } of points) {
    const slot = Math.floor((endMs - atMs) / slotMs);
    slots.set(slot, Math.max(slots.get(slot) ?? Number.NEGATIVE_INFINITY, bytes));
  }
  return ascending([...slots].map(([slot, bytes]) => ({ atMs: endMs - slot * slotMs, bytes })));
}

/** Cuts short peaks. Drops the last hours, which may still be in a peak. */
function withoutPeaks(points: readonly Point[]): Point[] {
  const lows = points.map(({ atMs }, index) => {
    const ahead = points.slice(index, index + 1 + PEAK_MS / HOUR_MS).filter((each) => each.atMs <= atMs + PEAK_MS);
    return Math.min(...ahead.map(({ bytes }) => bytes));
  });
  const cut = points.map(({ atMs }, index) => {
    const from = Math.max(0, index - PEAK_MS / HOUR_MS);
    const behind = lows
      .slice(from, index + 1)
      .filter((_, offset) => (points[from + offset]?.atMs ?? 0) >= atMs - PEAK_MS);
    return { atMs, bytes: Math.max(...behind) };
  });
  const endMs = (points.at(-1)?.atMs ?? 0) - PEAK_MS;
  return cut.filter(({ atMs }) => atMs <= endMs);
}

/**
 * The pace of the last ten minutes, or since it began; undefined unless nearly every sample rises,
 * for at least six samples and four minutes, until now.
 */
export function paceOf(points: readonly Point[], nowMs: number): Growth | undefined {
  const recent = ascending(points).filter(({ atMs }) => atMs <= nowMs && atMs >= nowMs - PACE_MS - MINUTE_MS);
  const last = recent.at(-1);
  if (last === undefined || nowMs - last.atMs > FRESH_MS) return undefined;
  for (let from = 0; recent.length - 1 - from >= MIN_STEPS; from++) {
    const rising = recent.slice(from);
    const sinceMs = rising[0]?.atMs ?? last.atMs;
    if (last.atMs - sinceMs < MIN_PACE_MS) return undefined;
    const rates = ratesBetween(rising);
    const usual = median(rates);
    const slow = rates.filter((rate) => rate <= 0 || rate < usual * SLOW).length;
    if (slow <= Math.floor(rates.length / STEPS_FOR_A_MISS)) return paceFrom(rates, sinceMs);
  }
  return undefined;
}

function paceFrom(rates: readonly number[], sinceMs: number): Growth | undefined {
  const sorted = rates.toSorted((a, b) => a - b);
  const middle = median(sorted);
  const at = (part: number): number => sorted[Math.round((sorted.length - 1) * part)] ?? middle;
  if (middle <= 0) return undefined;
  return {
    basis: 'pace',
    bytesPerDay: middle,
    minPerDay: Math.min(at(0.2), middle * 0.8),
    maxPerDay: Math.max(at(0.8), middle * 1.2),
    dayDeviation: 0,
    swingBytes: 0,
    sinceMs,
  };
}

function ratesBetween(points: readonly Point[]): number[] {
  return points.slice(1).flatMap(({ atMs, bytes }, index) => {
    const before = points[index];
    return before === undefined || before.atMs === atMs
      ? []
      : [((bytes - before.bytes) / (atMs - before.atMs)) * DAY_MS];
  });
}

/** Undefined if nothing grows. */
export function fullIn(growth: Growth, roomBytes: number): FullIn | undefined {
  const { bytesPerDay, minPerDay, maxPerDay, dayDeviation, swingBytes } = growth;
  if (bytesPerDay <= 0) return undefined;
  const room = Math.max(0, roomBytes - swingBytes);
  const days = room / bytesPerDay;
  const chance = DEVIATIONS * (dayDeviation / Math.sqrt(Math.max(1, days)));
  const least = minPerDay - chance;
  return { days, earliest: room / (maxPerDay + chance), latest: least <= 0 ? null : roomBytes / least };
}

/** `12 hours (10 to 15)`, `6 days (4 to 9)`, `30 days (20, or never)`; `more than 2 years`. */
export function formatFull({ days, earliest, latest }: FullIn): string {
  if (days > MAX_DAYS) return 'more than 2 years';
  const [unit, one] = days < 2 ? (['hours', 24] as const) : (['days', 1] as const);
  const shown = (value: number): string =>
    String(value * one < 3 ? sensible(value * one) : sensible(Math.round(value * one)));
  const until = latest === null ? 'or never' : latest > MAX_DAYS ? 'to more than 2 years' : `to ${shown(latest)}`;
  if (days * one < 1) return `less than an hour`;
  return `about ${shown(days)} ${unit} (${shown(earliest)}${latest === null ? ',' : ''} ${until})`;
}

/** Rounds to two significant digits. */
export function sensible(value: number): number {
  if (!Number.isFinite(value) || value === 0) return value;
  const digits = value < 10 ? 1 : 0;
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.abs(value))) - 1);
  return power > 1 ? Math.round(value / power) * power : Math.round(value * 10 ** digits) / 10 ** digits;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

function meanOf(steps: readonly Step[]): number {
  const slots = steps.reduce((sum, each) => sum + each.slots, 0);
  return steps.reduce((sum, { change, slots: count }) => sum + change * count, 0) / Math.max(1, slots);
}

function deviationOf(steps: readonly Step[]): number {
  const mean = meanOf(steps);
  const squares = steps.map(({ change }) => (change - mean) ** 2);
  return Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / Math.max(1, steps.length - 1));
}

function ascending(points: readonly Point[]): Point[] {
  return points.toSorted((a, b) => a.atMs - b.atMs);
}
