// Times and amounts as pages show them: in the zone of the stack, to the minute.

import { durationInWords } from '../../shared/domain/amounts.ts';
import type { Deps } from '../../shared/http/deps.ts';

export interface Clock {
  now: Date;
  /** Of the IANA database. */
  timeZone: string;
}

export function clockOf({ now, timeZone }: Pick<Deps, 'now' | 'timeZone'>): Clock {
  return { now: now(), timeZone };
}

/** Making one takes longer than using it a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>();

/** `2026-01-31 14:05` in that zone; with seconds where they matter. The text itself when it is no time. */
export function timeInZone(iso: string, timeZone: string, { seconds = false }: { seconds?: boolean } = {}): string {
  const ms = Date.parse(iso);
  if (Number.isNaN(ms)) return iso;
  const format = formats.get(timeZone) ?? formatOf(timeZone);
  const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  const { year, month, day, hour, minute, second } = parts;
  return `${year}-${month}-${day} ${hour}:${minute}${seconds ? `:${second}` : ''}`;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
  formats.set(timeZone, format);
  return format;
}

/** `3 minutes ago`, `in 2 days`, `now`. */
export function distanceInWords(iso: string, now: Date): string {
  const ms = Date.parse(iso) - now.getTime();
  if (Number.isNaN(ms)) return iso;
  if (Math.abs(ms) < 60_000) return ms > 0 ? 'in less than a minute' : 'just now';
  const [largest = ''] = /^\d+ \w+/.exec(durationInWords(Math.abs(ms))) ?? [];
  return ms > 0 ? `in ${largest}` : `${largest} ago`;
}
