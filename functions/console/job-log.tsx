// The log of a job, with its times in the zone of the stack.

import { textOf } from '../../shared/verbs/job-log.ts';
import { type Clock, timeInZone } from '../pages/clock.ts';

export function JobLog({ lines, clock }: { lines: readonly string[]; clock: Clock }) {
  if (lines.length === 0) return <p class="fine">Nothing was said yet.</p>;
  return (
    <ol class="saidlines">
      {lines.map((line) => {
        const at = line.slice(0, line.indexOf(' '));
        return (
          <li>
            <time datetime={at}>{timeInZone(at, clock.timeZone, { seconds: true })}</time> <span>{textOf(line)}</span>
          </li>
        );
      })}
    </ol>
  );
}
