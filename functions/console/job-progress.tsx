// How far long work is: a bar, what it is at, and when it will be done.

import { rounded } from '../../shared/domain/amounts.ts';
import type { OpsJob } from '../../shared/ports/ops-jobs.ts';
import type { Clock } from '../pages/clock.ts';
import { When } from '../pages/parts/time.tsx';
import { isOpen } from './job-words.ts';

/** Nothing once it has ended. */
export function JobProgress({ job, clock }: { job: OpsJob; clock: Clock }) {
  if (!isOpen(job)) return null;
  const { progress, phase, phasePercent, eta } = job;
  const percent = Math.floor(progress * 100);
  return (
    <div class="howfar">
      <progress max="1" value={String(progress)} aria-label="How far it is">
        {percent} %
      </progress>
      <p>
        <strong>{percent} %</strong>
        {phase === null
          ? null
          : ` - ${phase}${phasePercent === null ? '' : `, ${rounded(phasePercent, 0)} % of this step`}`}
      </p>
      {eta === null ? null : (
        <p class="fine">
          Done about <When at={eta} clock={clock} relative />
        </p>
      )}
    </div>
  );
}
