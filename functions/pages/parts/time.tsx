// Formats points in time. Texts that change with the clock are marked, so that they don't change
// the page's entity tag.

import { formatDuration } from '@holdfast/kit/format';
import { twoDigits, wallTimeAt, wallTimeText } from '@holdfast/kit/time';
import type { Deps } from '../../../shared/http/deps.ts';

/** The current time and the time zone that pages show. */
export interface Clock {
  now: Date;
  /** An IANA name. */
  timeZone: string;
}

export function clockOf({ now, timeZone }: Pick<Deps, 'now' | 'timeZone'>): Clock {
  return { now: now(), timeZone };
}

/** `2026-01-31 14:05` in that time zone, optionally with seconds. Returns other text unchanged. */
export function timeInZone(iso: string, timeZone: string, { seconds = false }: { seconds?: boolean } = {}): string {
  const ms = Date.parse(iso);
  if (Number.isNaN(ms)) return iso;
  const wall = wallTimeAt(ms, timeZone);
  return `${wallTimeText(wall).replace('T', ' ')}${seconds ? `:${twoDigits(wall.second)}` : ''}`;
}

/** `3 minutes ago`, `in 2 days`, `just now`. */
export function formatDistance(iso: string, now: Date): string {
  const ms = Date.parse(iso) - now.getTime();
  if (Number.isNaN(ms)) return iso;
  if (Math.abs(ms) < 60_000) return ms > 0 ? 'in less than a minute' : 'just now';
  const [largest = ''] = /^\d+ \w+/.exec(formatDuration(Math.abs(ms))) ?? [];
  return ms > 0 ? `in ${largest}` : `${largest} ago`;
}

interface WhenProps {
  /** ISO 8601. Null is shown as `never`. */
  at: string | null;
  clock: Clock;
  /** Adds the relative time. */
  relative?: boolean;
  never?: string;
}

/** A time in the stack's time zone. */
export function When({ at, clock, relative = false, never = 'never' }: WhenProps) {
  if (at === null) return <span class="fine">{never}</span>;
  const time = <time datetime={at}>{timeInZone(at, clock.timeZone)}</time>;
  if (!relative) return time;
  return (
    <span class="when">
      {time} <Distance at={at} clock={clock} />
    </span>
  );
}

/** Only the relative time. */
export function Distance({ at, clock }: { at: string; clock: Clock }) {
  const seconds = Math.round((Date.parse(at) - clock.now.getTime()) / 1000);
  return (
    <time class="fine" datetime={at} title={timeInZone(at, clock.timeZone)} data-away={String(seconds)}>
      {formatDistance(at, clock.now)}
    </time>
  );
}

interface CountdownProps {
  until: string;
  clock: Clock;
  /** The text after the time is over. */
  over: string;
}

/** The time left. The script counts it down. */
export function Countdown({ until, clock, over }: CountdownProps) {
  const left = Math.max(0, Math.ceil((Date.parse(until) - clock.now.getTime()) / 1000));
  return (
    <time class="countdown" datetime={until} data-over={over} data-left={String(left)}>
      {left === 0 ? over : `${formatDuration(left * 1000)} left`}
    </time>
  );
}
