// Decides which backups are deleted: those outside of the recovery window, beyond the minimum
// count, and not needed as the last proven one.

import { DAY_MS } from '@holdfast/kit/time';
import type { Backup } from '../../shared/backups/port.ts';
import { isProven } from '../../shared/backups/rules.ts';

export interface KeepRules {
  /** Backups of this many days are kept. */
  days: number;
  /** So many of the newest are kept whatever their age. */
  count: number;
}

type Kept = Pick<Backup, 'name' | 'created_at' | 'permanent' | 'history' | 'proof'>;

/**
 * Most that one run deletes. A run follows each backup, so more than one new backup's worth is
 * only needed after the rules changed, and a clock that jumped years ahead does little harm before
 * somebody sets it right.
 */
export const MAX_DELETED_AT_ONCE = 3;

/** Names of the backups to delete now, oldest first. `backups` in any order. */
export function expiredBackups(backups: readonly Kept[], { days, count }: KeepRules, now: Date): string[] {
  const newestFirst = backups.toSorted((one, other) => timeOf(other) - timeOf(one));
  const oldestKeptMs = now.getTime() - days * DAY_MS;
  const lastProven = [
    newestFirst.find(isProven),
    // A proven backup without history does not replace one with it.
    newestFirst.find((backup) => backup.history && isProven(backup)),
  ];
  return newestFirst
    .filter((backup, place) => {
      const inWindow = timeOf(backup) >= oldestKeptMs;
      return !inWindow && place >= count && !backup.permanent && !lastProven.includes(backup);
    })
    .map(({ name }) => name)
    .toReversed()
    .slice(0, MAX_DELETED_AT_ONCE);
}

/** A time that can't be read counts as now: such a backup is never too old. */
function timeOf({ created_at: at }: Pick<Backup, 'created_at'>): number {
  const ms = Date.parse(at);
  return Number.isNaN(ms) ? Number.POSITIVE_INFINITY : ms;
}
