// Applies the retention variables through the core's API, or to its files while the core is
// unavailable. Values that no variable sets stay unchanged.

import { AppError } from '@holdfast/kit/app-error';
import { springOf } from '@holdfast/kit/quartz';
import {
  DEFAULT_SCHEDULE,
  inUnit,
  NEVER,
  OWNED_TYPES,
  type OwnedType,
  plainCron,
  type RetentionUnit,
} from '@holdfast/kit/retention';
import type { CoreRetention, CoreRetentionPolicy } from '../core/port.ts';
import { isUnavailable } from '../devices/certificates/while-core-is-unavailable.ts';
import { mustCountIn } from './in-force.ts';
import type { RetentionFiles, WantedRetention } from './port.ts';

export interface SyncRetentionDeps {
  coreRetention: Pick<CoreRetention, 'policy' | 'changePolicy' | 'schedule' | 'changeSchedule' | 'runs'>;
  retentionFiles: Pick<RetentionFiles, 'sync'>;
}

export interface RetentionSync {
  where: 'core' | 'files';
  /** What was changed, in sentences; empty if everything was right. */
  messages: string[];
}

export function asksForRetention({ cot, geochat, cron }: WantedRetention): boolean {
  return (cot ?? geochat ?? cron) !== undefined;
}

export async function syncRetention(
  deps: SyncRetentionDeps,
  wanted: WantedRetention,
  signal?: AbortSignal,
): Promise<RetentionSync> {
  const inForce = await request(deps);
  signal?.throwIfAborted();
  if (inForce === undefined) return { where: 'files', messages: (await deps.retentionFiles.sync(wanted)).messages };
  if (!asksForRetention(wanted)) return { where: 'core', messages: [] };
  const { unit } = wanted;
  if (unit === undefined)
    throw new AppError('invalid', "CORE_RETENTION_UNIT must be set: without it the core's unit is unknown.");
  const messages: string[] = [];
  const change = changeOf(inForce.policy, wanted, unit);
  const cron = cronOf(inForce.schedule, wanted, unit);
  if (Object.keys(change).length > 0 || cron !== undefined) await mustCountIn(unit, deps.coreRetention);
  signal?.throwIfAborted();
  if (Object.keys(change).length > 0) {
    await deps.coreRetention.changePolicy(change);
    for (const type of Object.keys(change)) messages.push(`${type} is kept ${wanted[type as OwnedType]} days`);
  }
  signal?.throwIfAborted();
  if (cron !== undefined) {
    await deps.coreRetention.changeSchedule(cron);
    messages.push(`the schedule is ${cron}`);
  }
  return { where: 'core', messages };
}

/** Undefined while the core is unavailable. */
async function request({ coreRetention }: SyncRetentionDeps) {
  try {
    const [policy, schedule] = await Promise.all([coreRetention.policy(), coreRetention.schedule()]);
    return { policy, schedule };
  } catch (error) {
    if (isUnavailable(error)) return undefined;
    throw error;
  }
}

function changeOf(
  policy: CoreRetentionPolicy,
  wanted: WantedRetention,
  unit: RetentionUnit,
): Partial<CoreRetentionPolicy> {
  const change: Partial<CoreRetentionPolicy> = {};
  for (const type of OWNED_TYPES) {
    const value = inUnit(wanted[type] ?? null, unit);
    if (value !== null && value !== policy[type]) change[type] = value;
  }
  return change;
}

/** Undefined if the core has the right schedule. */
function cronOf(inForce: string, { cron, cot, geochat }: WantedRetention, unit: RetentionUnit): string | undefined {
  if (cron === undefined) return inForce === NEVER && (cot ?? geochat) !== undefined ? DEFAULT_SCHEDULE : undefined;
  const wanted = unit === 'seconds' ? springOrRefusal(cron) : cron;
  return plainCron(wanted) === plainCron(inForce) ? undefined : wanted;
}

function springOrRefusal(cron: string): string {
  const { expression, fault } = springOf(cron);
  if (expression !== undefined) return expression;
  throw new AppError('invalid', `RETENTION_CRON=${cron} can't be used by this core: ${fault}.`);
}
