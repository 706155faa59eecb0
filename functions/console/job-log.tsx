// The log of a job, with its times in the zone of the stack.

import { counted } from '../../shared/domain/amounts.ts';
import { textOf } from '../../shared/verbs/job-log.ts';
import { type Clock, timeInZone } from '../pages/clock.ts';

/** So many of the last lines are shown at once. */
const SHOWN = 20;

export function JobLog({ lines, clock }: { lines: readonly string[]; clock: Clock }) {
  if (lines.length === 0) return <p class="fine">Nothing was said yet.</p>;
  const earlier = lines.slice(0, -SHOWN);
  return (
    <>
      {earlier.length === 0 ? null : (
        <details class="rest" id="earlier">
          <summary>{counted(earlier.length, 'earlier line')}</summary>
          <Lines lines={earlier} clock={clock} />
        </details>
      )}
      <Lines lines={lines.slice(-SHOWN)} clock={clock} />
    </>
  );
}

function Lines({ lines, clock }: { lines: readonly string[]; clock: Clock }) {
  return (
    <ol class="saidlines">
      {lines.map((line) => {
        const at = line.slice(0, line.indexOf(' '));
        return (
          <li>
            <time datetime={at}>{timeInZone(at, clock.timeZone, { seconds: true }).slice(11)}</time>{' '}
            <span>{textOf(line)}</span>
          </li>
        );
      })}
    </ol>
  );
}
