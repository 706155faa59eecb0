// Units of time, slots in which something is due, and wall-clock times in a zone of the IANA
// database.

export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const DAY_SECONDS = DAY_MS / SECOND_MS;

/**
 * Time is cut into slots of `intervalSeconds` from an origin: something is due once in each slot,
 * so that a late tick does not push all later ones back, and two processes agree on the slot. True
 * when `lastMs` (undefined: never) lies in an earlier slot than `nowMs`, or in the future (the
 * clock was set back).
 */
export function due(lastMs: number | undefined, intervalSeconds: number, nowMs: number, originMs = 0): boolean {
  if (lastMs === undefined || lastMs > nowMs) return true;
  return slotStart(lastMs, intervalSeconds, originMs) < slotStart(nowMs, intervalSeconds, originMs);
}

/** The beginning, in milliseconds, of the slot that `nowMs` lies in. */
export function slotStart(nowMs: number, intervalSeconds: number, originMs = 0): number {
  const length = intervalSeconds * 1000;
  return originMs + Math.floor((nowMs - originMs) / length) * length;
}

export interface WallTime {
  year: number;
  /** From 1. */
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

/** Making one takes longer than using it a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>();

/** What the clock shows there. */
export function wallTimeAt(ms: number, timeZone: string): WallTime {
  const format = formats.get(timeZone) ?? formatOf(timeZone);
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
  const [year, month, day] = [part('year'), part('month'), part('day')];
  return { year, month, day, hour: part('hour'), minute: part('minute'), second: part('second') };
}

/**
 * When the clock there shows it, in ms of Unix time. A time that comes twice is the first one; one
 * that is left out is as long after the change as it says. Days and months beyond their number run
 * on: the 32nd of January is the 1st of February.
 */
export function momentOf(wall: WallTime, timeZone: string): number {
  const asUtc = utcOf(wall);
  // Before a change the zone is ahead by what it was: that one comes first where both are right. No
  // zone is a day off UTC.
  const candidates = [asUtc - DAY_MS, asUtc + DAY_MS].map((near) => asUtc - aheadAt(near, timeZone));
  const [before = asUtc] = candidates;
  return candidates.find((each) => each + aheadAt(each, timeZone) === asUtc) ?? before;
}

/**
 * There is such a time on some clock, from 1970 on; at the end of the calendar clocks and databases
 * have rules of their own.
 */
export function isWallTime(wall: WallTime): boolean {
  const { year, month, day, hour, minute, second } = wall;
  const again = new Date(utcOf(wall));
  const isDay = again.getUTCMonth() === month - 1 && again.getUTCDate() === day;
  return isDay && year >= 1970 && year < 9999 && hour < 24 && minute < 60 && second < 60;
}

/**
 * `2026-01-31T14:05`, as a form has it, with its seconds left out; undefined for what is no such
 * time.
 */
export function readWallTime(text: string): WallTime | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::\d\d(?:\.\d+)?)?$/.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0] = match.slice(1).map(Number);
  const wall = { year, month, day, hour, minute, second: 0 };
  return isWallTime(wall) ? wall : undefined;
}

/** The same the other way round. */
export function wallTimeText({ year, month, day, hour, minute }: WallTime): string {
  return `${String(year).padStart(4, '0')}-${twoDigits(month)}-${twoDigits(day)}T${twoDigits(hour)}:${twoDigits(minute)}`;
}

export function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}

/** How far the zone is ahead of UTC then, in ms. */
export function aheadAt(ms: number, timeZone: string): number {
  return utcOf(wallTimeAt(ms, timeZone)) - Math.floor(ms / 1000) * 1000;
}

function utcOf({ year, month, day, hour, minute, second }: WallTime): number {
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  formats.set(timeZone, format);
  return format;
}

/**
 * Days as people name them, in the zone of the stack, as the instants at which they begin. Where a
 * clock is put forward at midnight, a day begins later; where it is put back, a day begins with the
 * first of its two midnights. When that day, `2026-03-29`, begins in a zone of the IANA database,
 * ISO 8601; undefined when it is no day.
 */
export function beginOfDay(day: string, timeZone: string): string | undefined {
  return midnight(day, timeZone, 0);
}

/** When that day is over: the next one begins. */
export function endOfDay(day: string, timeZone: string): string | undefined {
  return midnight(day, timeZone, 1);
}

function midnight(day: string, timeZone: string, daysLater: number): string | undefined {
  const wall = readWallTime(`${day}T00:00`);
  return wall && new Date(momentOf({ ...wall, day: wall.day + daysLater }, timeZone)).toISOString();
}

/** A time as statements give it (milliseconds since 1970) as ISO 8601. */
export function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
