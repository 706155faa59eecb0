// Which time and which group positions and tracks are asked for.

import { AppError } from '@holdfast/kit/app-error';
import { deviceGroupName } from '@holdfast/kit/names';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';
import type { TrackQuery } from './port.ts';

export const MAX_DAYS = 31;

/** Default: the last hour. Throws `invalid` for times in the wrong order or too far apart. */
export function trackQuery(
  { since, until, group }: { since?: string | undefined; until?: string | undefined; group?: string | undefined },
  now: Date,
): TrackQuery {
  const untilMs = until === undefined ? now.getTime() : Date.parse(until);
  const sinceMs = since === undefined ? untilMs - HOUR_MS : Date.parse(since);
  if (!(sinceMs < untilMs))
    throw new AppError('invalid', 'The time must begin before it ends.', {
      fields: [{ path: 'since', message: 'must be before until' }],
    });
  if (untilMs - sinceMs > MAX_DAYS * DAY_MS)
    throw new AppError('invalid', `The time is longer than ${MAX_DAYS} days. Choose a shorter one.`, {
      fields: [{ path: 'since', message: `must be at most ${MAX_DAYS} days before until` }],
    });
  const channel = group === undefined || group === '' ? undefined : deviceGroupName(group);
  return { sinceMs, untilMs, ...(channel === undefined ? {} : { group: channel }) };
}
