// Days as people name them, in the zone of the stack, as the instants at which they begin. Where a clock is put forward at
// midnight, a day begins later; where it is put back, a day begins with the first of its two midnights.

import { momentOf, readWallTime } from './zoned-time.ts';

/** When that day, `2026-03-29`, begins in a zone of the IANA database, ISO 8601; undefined when it is no day. */
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
