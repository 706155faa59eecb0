// Normalizes names for comparison: ignores case and the encoding of accents.

import type { Json } from '@holdfast/kit/json';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';

/**
 * The form in which names are compared and found. The database server's own locale knows only
 * ASCII, so it is made here.
 */
export function nameKey(name: string): string {
  return name.normalize('NFC').toLowerCase();
}

/** True for text that PostgreSQL can keep unchanged: no NUL, no half of a character. */
export function isKeepable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

const DEEPEST = 32;

/**
 * Free JSON values as the database can keep them unchanged.
 * Why a parsed JSON value cannot be kept: in words, undefined when it can.
 */
export function whyNotKept(value: unknown, depth = 0): string | undefined {
  if (depth > DEEPEST) return `Nested deeper than ${DEEPEST} levels.`;
  if (typeof value === 'string')
    return isKeepable(value) ? undefined : 'Null characters and broken text are not allowed.';
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'A number is out of range.';
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, each] of Object.entries(value)) {
    const why = whyNotKept(key, depth) ?? whyNotKept(each, depth + 1);
    if (why !== undefined) return why;
  }
  return undefined;
}

/** True for an object that is no array. */
export function isJsonObject(value: unknown): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const UNIT_MS: Readonly<Record<string, number>> = {
  milliseconds: 1,
  seconds: 1000,
  minutes: 60_000,
  hours: HOUR_MS,
  days: DAY_MS,
  weeks: 604_800_000,
};
/** A hundred years: times that far from now are still dates. */
const MAX_MS = 36_525 * DAY_MS;

/**
 * Lengths of time as the provider writes them in attributes: `days=7;hours=12`. Milliseconds, at
 * most a hundred years; undefined for anything that is not of this form, or is not above zero.
 */
export function readDuration(text: unknown): number | undefined {
  if (typeof text !== 'string' || text.length > 200) return undefined;
  let total = 0;
  for (const part of text.split(';')) {
    const [, unit = '', amount = ''] = /^\s*([a-z]+)\s*=\s*(\d{1,12}(?:\.\d{1,6})?)\s*$/.exec(part) ?? [];
    const unitMs = Object.hasOwn(UNIT_MS, unit) ? UNIT_MS[unit] : undefined;
    if (unitMs === undefined) return undefined;
    total += Number(amount) * unitMs;
  }
  const ms = Math.round(total);
  return ms > 0 ? Math.min(ms, MAX_MS) : undefined;
}
