// Until when somebody may come in, as a person chooses it from a list: at the end of the day, some days later at the same time
// of the clock, at a time, or never.

import { momentOf, readWallTime, wallTimeAt } from './zoned-time.ts';

/** In the order in which they are offered. */
export const ACCESS_ENDS = ['never', 'today', 'days-2', 'days-7', 'days-30', 'date'] as const;

interface Asked {
  choice: string;
  /** With the choice `date`: `2026-01-31T14:05`. */
  on: string;
}

interface Where {
  now: Date;
  /** Of the IANA database. */
  timeZone: string;
}

/** ISO 8601, null for never; else what is wrong with it, in a sentence. Whether it is past is not looked at. */
export function accessEnd({ choice, on }: Asked, where: Where): { at: string | null } | { fault: string } {
  if (choice === 'never') return { at: null };
  if (choice === 'date') {
    const wall = readWallTime(on);
    if (wall === undefined) return { fault: 'choose the day and the time at which access ends' };
    return { at: isoOf(momentOf(wall, where.timeZone)) };
  }
  const at = presetEnd(choice, where);
  return at === undefined ? { fault: 'choose when access ends' } : { at };
}

/** When a choice that names no time of its own would end; undefined for the others. */
export function presetEnd(choice: string, { now, timeZone }: Where): string | undefined {
  const wall = { ...wallTimeAt(now.getTime(), timeZone), second: 0 };
  if (choice === 'today') return isoOf(momentOf({ ...wall, day: wall.day + 1, hour: 0, minute: 0 }, timeZone));
  const days = /^days-(\d+)$/.exec(choice)?.[1];
  if (days === undefined || !ACCESS_ENDS.some((each) => each === choice)) return undefined;
  return isoOf(momentOf({ ...wall, day: wall.day + Number(days) }, timeZone));
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}
