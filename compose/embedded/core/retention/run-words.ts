// A run in words, for the logs.

import type { RetentionPolicy } from '../../../../shared/domain/retention.ts';
import type { CoreRetentionRun } from '../../../../shared/ports/core-retention.ts';
import { DELETION_ORDER } from './deletion.ts';

/** `retention run 1a2b by schedule, unit days: cot before 2026-01-01T00:00:00.000Z (30 days)` */
export function beginInWords({ id, trigger, limits }: CoreRetentionRun, policy: RetentionPolicy): string {
  const types = DELETION_ORDER.flatMap((type) => {
    const limit = limits[type];
    return limit === undefined ? [] : [`${type} before ${limit} (kept ${policy[type] ?? '?'} days)`];
  });
  return `retention run ${id} by ${trigger} begins, unit days: ${types.join(', ')}`;
}

/** `retention run 1a2b done after 3.1 s, rows deleted: cot 120, geochat 0; about 1.2 MB` */
export function endInWords(run: CoreRetentionRun, seconds: number): string {
  const { id, state, rows, included, bytes, error } = run;
  const counts = DELETION_ORDER.flatMap((type) => (rows[type] === undefined ? [] : [`${type} ${rows[type]}`]));
  const withMissions =
    rows.missions === undefined ? '' : `; with the missions: events ${included.cot}, files ${included.files}`;
  const said = error === null ? '' : `: ${error}`;
  const megabytes = ((bytes ?? 0) / 1e6).toFixed(1);
  return `retention run ${id} ${state} after ${seconds} s, rows deleted: ${counts.join(', ')}${withMissions}; about ${megabytes} MB${said}`;
}
