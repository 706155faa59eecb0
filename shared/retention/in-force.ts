// Reads the policy and schedule in force from the core, or from its files while it is unavailable.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { CronDialect } from '@holdfast/kit/cron';
import { policyInDays, type RetentionPolicy, type RetentionUnit } from '@holdfast/kit/retention';
import type { CoreRetention, CoreRetentionPolicy } from '../core/port.ts';
import { isUnavailable } from '../devices/certificates/while-core-is-unavailable.ts';
import type { RetentionCore, RetentionFiles } from './port.ts';

export interface RetentionInForceDeps {
  coreRetention: Pick<CoreRetention, 'policy' | 'schedule'>;
  retentionFiles: Pick<RetentionFiles, 'read'>;
}

export interface RetentionInForce {
  /** Days. */
  policy: RetentionPolicy;
  /** The same in the unit of the core. */
  raw: CoreRetentionPolicy;
  /** In the core's own dialect, or `-`. */
  schedule: string;
  from: 'core' | 'files';
  /** Why the core was unavailable; undefined if it answered. */
  coreProblem: string | undefined;
}

export async function retentionInForce(deps: RetentionInForceDeps, unit: RetentionUnit): Promise<RetentionInForce> {
  try {
    const [raw, schedule] = await Promise.all([deps.coreRetention.policy(), deps.coreRetention.schedule()]);
    return { raw, schedule, policy: policyInDays(raw, unit), from: 'core', coreProblem: undefined };
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    const { policy: raw, schedule } = await deps.retentionFiles.read().catch((also: unknown) => {
      throw new AppError(
        'unavailable',
        `${error.message.replace(/\.$/, '')}. Couldn't read its files either: ${messageOf(also)}`,
        {
          cause: also,
        },
      );
    });
    return { raw, schedule, policy: policyInDays(raw, unit), from: 'files', coreProblem: error.message };
  }
}

/**
 * Checked before more may be deleted: a core that counts days reports its runs, and a release never
 * does.
 */
export async function mustCountIn(unit: RetentionUnit, core: Pick<CoreRetention, 'runs'>): Promise<void> {
  if (unit === 'seconds' || (await core.runs()) !== undefined) return;
  throw new AppError(
    'conflict',
    'CORE_RETENTION_UNIT is days, but this core is a TAK Server release, which counts seconds. It would delete data older than half a minute where 30 days are meant. Nothing was changed. Remedy: set CORE_RETENTION_UNIT=seconds where this core is managed, and restart.',
  );
}

/** A core that counts seconds is a TAK Server release. */
export function coreOfUnit(unit: RetentionUnit): RetentionCore {
  return unit === 'days' ? 'embedded' : 'release';
}

export function dialectOfUnit(unit: RetentionUnit): CronDialect {
  return unit === 'days' ? 'quartz' : 'spring';
}
