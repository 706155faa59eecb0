// One health module on the overview: how it is and since when, its figure with the last day, and what to do when it is not well.

import { figureInWords } from '../../shared/domain/figure-in-words.ts';
import type { Thresholds } from '../../shared/domain/thresholds.ts';
import { healthModuleOf } from '../../shared/health/index.ts';
import type { ModuleState } from '../../shared/ports/health-cache.ts';
import type { HealthSample } from '../../shared/ports/health-trend.ts';
import type { Clock } from '../pages/clock.ts';
import { capitalised } from '../../shared/domain/plain-text.ts';
import { moduleWords } from './module-words.ts';
import { remediesOf, Since, statusOf, trendLimits } from './since.tsx';
import { whyTheDatabase } from './why-database.ts';
import { Remedies } from '../pages/parts/remedies.tsx';
import { StatusBadge } from '../pages/parts/status.tsx';
import { Trend } from '../pages/parts/trend.tsx';

interface HealthCardProps {
  state: ModuleState;
  samples: readonly HealthSample[];
  thresholds: Thresholds;
  clock: Clock;
}

export const DAY_MS = 86_400_000;
/** Two samples and a little. */
export const APART_MS = 660_000;
const MOST_REMEDIES = 3;

export function HealthCard({ state, samples, thresholds, clock }: HealthCardProps) {
  const { module, measurement, since, since_is_exact: exact } = state;
  const { title } = moduleWords(module);
  const status = statusOf(state);
  const to = clock.now.getTime();
  return (
    <section class={`card health ${status}`} id={`module-${module}`}>
      <div class="head">
        <h3>
          <a id={`to-${module}`} href={`/health/${module}`}>
            {title}
          </a>
        </h3>
        <StatusBadge status={status} />
      </div>
      <p class="says">{capitalised(measurement?.message ?? 'Not measured yet.')}</p>
      {module === 'database' ? <Why data={measurement?.data ?? {}} thresholds={thresholds} /> : null}
      <Figure state={state} />
      <Trend
        module={module}
        samples={samples}
        trend={healthModuleOf(module)?.trend}
        limits={trendLimits(module, thresholds)}
        from={to - DAY_MS}
        to={to}
        apartMs={APART_MS}
      />
      {measurement === null ? null : (
        <>
          <p class="fine">
            <Since since={since} exact={exact} clock={clock} />
          </p>
          <Next state={state} />
        </>
      )}
    </section>
  );
}

function Figure({ state: { module, measurement } }: { state: ModuleState }) {
  const trend = healthModuleOf(module)?.trend;
  if (trend === undefined || measurement?.figure === undefined) return null;
  return (
    <p class="telling">
      <span class="figure">{figureInWords(measurement.figure, trend.unit)}</span> <span class="fine">{trend.name}</span>
    </p>
  );
}

/** Its size against the thresholds is said above already, and shown below. */
function Why({ data, thresholds }: { data: Record<string, unknown>; thresholds: Thresholds }) {
  const sentences = whyTheDatabase(data, thresholds.modules['database']).slice(1);
  if (sentences.length === 0) return null;
  return (
    <ul class="why">
      {sentences.map((sentence) => (
        <li>{sentence}</li>
      ))}
    </ul>
  );
}

function Next({ state }: { state: ModuleState }) {
  const remedies = remediesOf(state);
  const [page] = moduleWords(state.module).pages ?? [];
  const more = remedies.length - MOST_REMEDIES;
  return (
    <>
      {remedies.length === 0 ? null : (
        <details class="next" id={`next-${state.module}`} open={statusOf(state) === 'critical'}>
          <summary id={`open-${state.module}`}>What to do next</summary>
          <Remedies id={`do-${state.module}`} remedies={remedies.slice(0, MOST_REMEDIES)} />
          {more > 0 ? (
            <a id={`more-${state.module}`} href={`/health/${state.module}`}>
              {more} more to try
            </a>
          ) : null}
        </details>
      )}
      {page === undefined || statusOf(state) === 'ok' ? null : (
        <a id={`page-${state.module}`} href={page[0]}>
          {page[1]}
        </a>
      )}
    </>
  );
}
