// Finds what was begun and has no outcome, because its process died or the provider went away in the middle, and finishes
// it. What cannot be finished now is tried again in the next run.

import { messageOf } from '@holdfast/kit/app-error';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { AuditResult, Conclusion, OpenIntent } from '../shared/audit/port.ts';
import { VACUUM_RUN, conclusionOf as vacuumConclusion } from '../shared/database/vacuum/jobs.ts';
import type { Deps } from '../shared/http/deps.ts';
import { finishJobIntent } from '../shared/jobs/finish-intent.ts';
import type { OpsJob } from '../shared/jobs/port.ts';
import { RETENTION_RUN, conclusionOf as retentionConclusion } from '../shared/retention/jobs.ts';
import { finishIntent } from './finish-intent.ts';

/** Longer than anything takes that is still under way. */
const OLD_MS = 2 * MINUTE_MS;
const MOST_IN_A_RUN = 200;

/** Actions that a job carries on, and what it says of its end. */
const OF_JOBS = new Map<string, (job: OpsJob) => Conclusion>([
  [RETENTION_RUN, retentionConclusion],
  [VACUUM_RUN, vacuumConclusion],
]);

export async function run(deps: Deps, now: Date, signal: AbortSignal): Promise<Record<string, number>> {
  const summary = { ok: 0, failed: 0, unknown: 0, open: 0 };
  const before = new Date(now.getTime() - OLD_MS).toISOString();
  for (const intent of await deps.audit.unfinished(before, MOST_IN_A_RUN)) {
    if (signal.aborted) break;
    const fields = { action: intent.action, target: intent.target, intent: intent.seq };
    try {
      const result = await resultOf(deps, intent, before);
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

/** `open`: a job carries it on, and answers it when it ends. */
async function resultOf(deps: Deps, intent: OpenIntent, before: string): Promise<AuditResult | 'open'> {
  const conclusionOf = OF_JOBS.get(intent.action);
  return conclusionOf === undefined ? finishIntent(deps, intent) : finishJobIntent(deps, intent, before, conclusionOf);
}
