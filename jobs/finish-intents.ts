// Finishes audit intents without an outcome, because their process died or the provider became
// unavailable. Those that can't be finished now are retried in the next run.

import { messageOf } from '@holdfast/kit/app-error';
import { MINUTE_MS } from '@holdfast/kit/time';
import { finishIntent, type InterruptedWork } from '../shared/audit/interrupted-work.ts';
import { INTERRUPTED_SIMULATION } from '../shared/simulation/jobs.ts';
import { INTERRUPTED_BACKUP } from '../shared/backups/jobs.ts';
import { INTERRUPTED_RESTORE } from '../shared/backups/restored.ts';
import { INTERRUPTED_VACUUM } from '../shared/database/vacuum/jobs.ts';
import { INTERRUPTED_CERTIFICATES } from '../shared/devices/certificates/finish.ts';
import { INTERRUPTED_ENROLLMENT } from '../shared/devices/enrollment/kept.ts';
import type { Deps } from '../shared/http/deps.ts';
import { INTERRUPTED_PEOPLE } from '../shared/people/finish.ts';
import { INTERRUPTED_SERVICE_ACCOUNTS } from '../shared/people/service-accounts/finish.ts';
import { INTERRUPTED_RETENTION } from '../shared/retention/change.ts';
import { INTERRUPTED_RETENTION_RUN } from '../shared/retention/jobs.ts';

/** Longer than any action that is still in progress. */
const OLD_MS = 2 * MINUTE_MS;
const MAX_PER_RUN = 200;

export const REGISTERED: readonly InterruptedWork<Deps>[] = [
  INTERRUPTED_CERTIFICATES,
  INTERRUPTED_ENROLLMENT,
  INTERRUPTED_PEOPLE,
  INTERRUPTED_SERVICE_ACCOUNTS,
  INTERRUPTED_RETENTION,
  INTERRUPTED_RETENTION_RUN,
  INTERRUPTED_VACUUM,
  INTERRUPTED_BACKUP,
  INTERRUPTED_SIMULATION,
  INTERRUPTED_RESTORE,
];

export async function run(deps: Deps, now: Date, signal: AbortSignal): Promise<Record<string, number>> {
  const summary = { ok: 0, failed: 0, unknown: 0, open: 0 };
  const before = new Date(now.getTime() - OLD_MS).toISOString();
  for (const intent of await deps.audit.unfinished(before, MAX_PER_RUN)) {
    if (signal.aborted) break;
    const fields = { action: intent.action, target: intent.target, intent: intent.seq };
    try {
      const result = await finishIntent(deps, REGISTERED, intent);
      summary[result === 'denied' ? 'unknown' : result] += 1;
      if (result === 'open') continue;
      deps.log.warn('audit.intent_finished', { ...fields, result });
    } catch (error) {
      summary.open += 1;
      deps.log.warn('audit.intent_open', { ...fields, reason: messageOf(error) });
    }
  }
  return summary;
}
