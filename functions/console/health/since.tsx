// Since when something is as it is, and what the pages of health know of a module.

import { healthModuleOf } from '../../../shared/health/modules/index.ts';
import type { ModuleState } from '../../../shared/health/port.ts';
import type { Status } from '../../../shared/settings/status.ts';
import type { Thresholds } from '../../../shared/settings/threshold-figures.ts';
import type { Clock } from '../../pages/clock.ts';
import { Distance, When } from '../../pages/parts/time.tsx';

interface SinceProps {
  since: string | null;
  exact: boolean;
  clock: Clock;
}

export function Since({ since, exact, clock }: SinceProps) {
  if (since === null) return <>not measured yet</>;
  if (!exact)
    return (
      <>
        since <When at={since} clock={clock} /> or earlier
      </>
    );
  return (
    <>
      since <When at={since} clock={clock} />, <Distance at={since} clock={clock} />
    </>
  );
}

/** Not measured yet is a note, as the API has it. */
export function statusOf({ measurement }: ModuleState): Status {
  return measurement?.status ?? 'note';
}

/** What to do: about its findings first, then what helps in general; nothing while all is well. */
export function remediesOf({ module, measurement }: ModuleState): string[] {
  if (measurement === null || measurement.status === 'ok') return [];
  return [...measurement.remedies, ...(healthModuleOf(module)?.remedy ?? [])];
}

/** The thresholds of the figure that its trend shows. */
export function trendLimits(module: string, thresholds: Thresholds): { warning?: number; critical?: number } {
  const own = thresholds.modules[module];
  return own === undefined ? {} : (healthModuleOf(module)?.trend?.limits?.(own) ?? {});
}
