// Times and amounts as pages show them: in the zone of the stack, to the minute.

import { durationInWords } from '@holdfast/kit/format';
import { twoDigits, wallTimeAt, wallTimeText } from '@holdfast/kit/time';
import type { Deps } from '../../shared/http/deps.ts';

export interface Clock {
  now: Date;
  /** Of the IANA database. */
  timeZone: string;
}

export function clockOf({ now, timeZone }: Pick<Deps, 'now' | 'timeZone'>): Clock {
  return { now: now(), timeZone };
}

/** `2026-01-31 14:05` in that zone; with seconds where they matter. The text itself when it is no time. */
export function timeInZone(iso: string, timeZone: string, { seconds = false }: { seconds?: boolean } = {}): string {
  const ms = Date.parse(iso);
  if (Number.isNaN(ms)) return iso;
  const wall = wallTimeAt(ms, timeZone);
  return `${wallTimeText(wall).replace('T', ' ')}${seconds ? `:${twoDigits(wall.second)}` : ''}`;
}

/** `3 minutes ago`, `in 2 days`, `now`. */
export function distanceInWords(iso: string, now: Date): string {
  const ms = Date.parse(iso) - now.getTime();
  if (Number.isNaN(ms)) return iso;
  if (Math.abs(ms) < 60_000) return ms > 0 ? 'in less than a minute' : 'just now';
  const [largest = ''] = /^\d+ \w+/.exec(durationInWords(Math.abs(ms))) ?? [];
  return ms > 0 ? `in ${largest}` : `${largest} ago`;
}
