// Makes the core have another policy and schedule, in steps of which none lets a run delete more than before or after all of them.

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
 * When a step fails, what was done is put back in the same careful order, as far as that goes; the error says what is in force
 * then. Whatever cannot be told now is left for the job that finishes intents.
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

/** Rule `keepFirst`: what keeps more comes first, then the schedule, then what keeps less. */
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
    return `Nothing is changed: in force is ${formatInForce(before, unit)}.`;
  } catch {
    progress.begun('What became of it is read back within minutes; the audit log says it.');
    const now = await retentionAtCore(core).catch(() => undefined);
    if (now === undefined) return 'What is in force now could not be read.';
    return `It was done in part: in force is ${formatInForce(now, unit)}.`;
  }
}

export function formatInForce({ policy, schedule }: RetentionAtCore, unit: RetentionUnit): string {
  return `${formatLimited(policyInDays(policy, unit))} by age, with the schedule "${schedule}"`;
}
