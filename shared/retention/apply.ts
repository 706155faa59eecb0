// Applies a policy and schedule to the core, in steps of which none lets a run delete more than
// before or after all steps.

import { AppError } from '@holdfast/kit/app-error';
import { policyInDays, type RetentionUnit } from '@holdfast/kit/retention';
import type { Progress } from '../audit/audited.ts';
import type { CoreRetention, CoreRetentionPolicy } from '../core/port.ts';
import { changeParts, formatLimited, type PolicyChange } from './rules.ts';
import { because } from './state.ts';

/** In the unit and the dialect of the core. */
export interface RetentionAtCore {
  policy: CoreRetentionPolicy;
  schedule: string;
}

export type ChangingCore = Pick<CoreRetention, 'policy' | 'changePolicy' | 'schedule' | 'changeSchedule'>;

export async function retentionAtCore(core: Pick<ChangingCore, 'policy' | 'schedule'>): Promise<RetentionAtCore> {
  const [policy, schedule] = await Promise.all([core.policy(), core.schedule()]);
  return { policy, schedule };
}

/**
 * If a step fails, completed steps are reverted in the same careful order where possible; the error
 * names the values in force then. If they can't be read, the job finish-intents completes the
 * record.
 */
export async function applyRetention(
  core: ChangingCore,
  from: RetentionAtCore,
  to: RetentionAtCore,
  unit: RetentionUnit,
  progress: Progress,
): Promise<void> {
  try {
    await step(core, from, to);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { code, fields } = error;
    throw new AppError(code, `${because(error)}. ${await putBack(core, from, unit, progress)}`, {
      cause: error,
      fields,
    });
  }
}

/**
 * Rule `keepFirst`: first the changes that keep more, then the schedule, then those that keep less.
 */
async function step(core: ChangingCore, from: RetentionAtCore, to: RetentionAtCore): Promise<void> {
  const { longer, shorter } = changeParts(from.policy, to.policy);
  if (isSome(longer)) await core.changePolicy(longer);
  if (from.schedule !== to.schedule) await core.changeSchedule(to.schedule);
  if (isSome(shorter)) await core.changePolicy(shorter);
}

function isSome(change: PolicyChange): boolean {
  return Object.keys(change).length > 0;
}

async function putBack(
  core: ChangingCore,
  before: RetentionAtCore,
  unit: RetentionUnit,
  progress: Progress,
): Promise<string> {
  try {
    await step(core, await retentionAtCore(core), before);
    return `Nothing was changed. In force: ${formatInForce(before, unit)}.`;
  } catch {
    progress.begun('The result is read back within minutes and appears in the audit log.');
    const now = await retentionAtCore(core).catch(() => undefined);
    if (now === undefined) return "Couldn't read the values in force now.";
    return `The change was done in part. In force: ${formatInForce(now, unit)}.`;
  }
}

export function formatInForce({ policy, schedule }: RetentionAtCore, unit: RetentionUnit): string {
  return `${formatLimited(policyInDays(policy, unit))} by age, with the schedule "${schedule}"`;
}
