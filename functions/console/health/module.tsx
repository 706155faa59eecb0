// GET /health/{module}: shows one health module in full. POST: measures it now.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import { formatFigure } from '@holdfast/kit/format';
import { capitalised } from '@holdfast/kit/text';
import { DAY_MS } from '@holdfast/kit/time';
import { withTimeout } from '@holdfast/kit/timeout';
import type { HealthModule, Trend } from '../../../shared/health/module.ts';
import { HEALTH_MODULES, healthModuleOf } from '../../../shared/health/modules/index.ts';
import type { HealthSample, ModuleState } from '../../../shared/health/port.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { measureNow } from '../../health.ts';
import { framed } from '../../pages/frame.tsx';
import { type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card } from '../../pages/parts/card.tsx';
import { Missing, Notice, Remedies, StatusBadge } from '../../pages/parts/notice.tsx';
import { type Clock, clockOf, Distance } from '../../pages/parts/time.tsx';
import { LargeTrend } from '../../pages/parts/trend.tsx';
import { whyTheDatabase } from '../database/next.tsx';
import { ConnectionCheck } from './connection-check.tsx';
import { MeasuredData } from './measured.tsx';
import { ModuleThresholdsCard } from './thresholds.tsx';
import { moduleWords, remediesOf, Since, statusOf, trendLimits } from './module-texts.tsx';

interface TrendKeyProps {
  trend: Trend | undefined;
  limits: { warning?: number; critical?: number };
}

/** Names the thresholds, even those outside the drawn range. */
export function TrendKey({ trend, limits }: TrendKeyProps) {
  if (trend === undefined) return null;
  const known = Object.entries(limits).filter(([, value]) => Number.isFinite(value));
  if (known.length === 0) return null;
  return (
    <p class="fine key">
      {known.map(([name, value]) => (
        <span>
          <svg viewBox="0 0 28 8" class="trend" aria-hidden="true" focusable="false">
            <path class={`limit ${name}`} d="M0 4H28" />
          </svg>
          {name} at {formatFigure(value, trend.unit)}
        </span>
      ))}
    </p>
  );
}

const TREND_DAYS = 14;
/** Older samples are an hour apart. */
const APART_MS = 3_900_000;
const TREND_WITHIN_MS = 1_500;

/** Adds the routes of this file. */
export function healthModulePage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  const demand = { access: 'viewer', area: 'monitoring' } as const;

  pages.get('/health/:module', demand, async function showModule(c) {
    const module = moduleOf(c);
    const [states, trend] = await Promise.all([deps.health.states(), trendOf(deps)]);
    const state = states.find((each) => each.module === module.name);
    if (state === undefined) throw new AppError('not_found', `The module "${module.name}" is not measured here.`);
    const { title } = moduleWords(module.name);
    return framed(c, deps, {
      title,
      current: 'overview',
      actions: <Actions module={module.name} />,
      body: <Body c={c} deps={deps} module={module} state={state} trend={trend} />,
    });
  });

  pages.post('/health/:module', demand, async function measureOnce(c) {
    const module = moduleOf(c);
    await measureNow(module, deps);
    return goTo(c, `/health/${module.name}?done=measured`);
  });
}

function moduleOf(c: PageContext): HealthModule {
  const name = c.req.param('module') ?? '';
  const module = healthModuleOf(name);
  if (module !== undefined) return module;
  const names = HEALTH_MODULES.map((each) => each.name).join(', ');
  throw new AppError('not_found', `No health module is named "${name}". Modules: ${names}.`);
}

interface LongTrend {
  samples: readonly HealthSample[];
  days: number;
  /** Why it is shorter than usual. */
  problem?: string;
}

/** Falls back to the last day, which is in memory, when our own database is unavailable. */
async function trendOf({ health, healthTrend, now }: Deps): Promise<LongTrend> {
  const since = new Date(now().getTime() - TREND_DAYS * DAY_MS).toISOString();
  try {
    const samples = await withTimeout(TREND_WITHIN_MS, "Holdfast's own database", () => healthTrend.read(since));
    return { samples, days: TREND_DAYS };
  } catch (error) {
    return { samples: (await health.remembered()) ?? [], days: 1, problem: messageOf(error).replace(/\.$/, '') };
  }
}

function Actions({ module }: { module: string }) {
  const [page] = moduleWords(module).pages ?? [];
  return (
    <>
      <form method="post" action={`/health/${module}`}>
        <button type="submit">Run check</button>
      </form>
      {page === undefined ? null : (
        <a class="button" href={page[0]}>
          {page[1]}
        </a>
      )}
    </>
  );
}

interface BodyProps {
  c: PageContext;
  deps: Deps;
  module: HealthModule;
  state: ModuleState;
  trend: LongTrend;
}

function Body({ c, deps, module, state, trend }: BodyProps) {
  const clock = clockOf(deps);
  const { name } = module;
  const { about, pages = [] } = moduleWords(name);
  const remedies = remediesOf(state);
  const { stages, ...others } = state.measurement?.data ?? {};
  const data = name === 'probe' || stages === undefined ? others : { ...others, stages };
  return (
    <>
      <p class="fine">
        <a href="/">Overview</a> · {about}
      </p>
      <Notice c={c} sentences={{ measured: 'Measured just now.' }} />
      <div id="module" data-live="/api/health?view=status">
        <Verdict state={state} clock={clock} />
        {name === 'probe' ? <ConnectionCheck state={state} clock={clock} /> : null}
        {name === 'database' ? <Why deps={deps} state={state} /> : null}
        {remedies.length === 0 ? null : (
          <Card title="Next steps">
            <Remedies id="do" remedies={remedies} />
          </Card>
        )}
        <TrendCard deps={deps} module={module} trend={trend} clock={clock} />
        <MeasuredData module={name} data={data} clock={clock} />
      </div>
      <ModuleThresholdsCard module={name} trend={module.trend} thresholds={deps.thresholds} />
      <ul class="links">
        {pages.map(([path, label]) => (
          <li>
            <a href={path}>{label}</a>
          </li>
        ))}
        <li>
          <a href={`/alerts?module=${name}`}>Alerts of this module</a>
        </li>
        <li>
          <a href={`/api/health/${name}`}>JSON, measured now</a>
        </li>
      </ul>
    </>
  );
}

function Verdict({ state, clock }: { state: ModuleState; clock: Clock }) {
  const { measurement, since, since_is_exact: exact } = state;
  const status = statusOf(state);
  const others = measurement?.details.slice(1) ?? [];
  return (
    <section class={`card ${status}`}>
      <p class="since">
        <StatusBadge status={status} />{' '}
        <span class="fine">
          <Since since={since} exact={exact} clock={clock} />
        </span>
      </p>
      <p>
        <strong>{capitalised(measurement?.details[0] ?? measurement?.message ?? 'Not measured yet.')}</strong>
      </p>
      {others.length === 0 ? null : (
        <ul>
          {others.map((detail) => (
            <li>{capitalised(detail)}</li>
          ))}
        </ul>
      )}
      {measurement === null ? null : (
        <p class="fine">
          Measured <Distance at={measurement.updated_at} clock={clock} />.
        </p>
      )}
    </section>
  );
}

function Why({ deps, state }: { deps: Deps; state: ModuleState }) {
  const sentences = whyTheDatabase(state.measurement?.data ?? {}, deps.thresholds.modules['database']);
  if (sentences.length === 0) return null;
  return (
    <Card title="Details">
      <ul>
        {sentences.map((sentence) => (
          <li>{sentence}</li>
        ))}
      </ul>
    </Card>
  );
}

interface TrendCardProps {
  deps: Deps;
  module: HealthModule;
  trend: LongTrend;
  clock: Clock;
}

function TrendCard({ deps, module: { name, trend: of }, trend, clock }: TrendCardProps) {
  const { samples, days, problem } = trend;
  const to = clock.now.getTime();
  const limits = trendLimits(name, deps.thresholds);
  const first = Date.parse(samples[0]?.at ?? '');
  // A stack that is two hours old is not drawn as a dot at the end of two weeks.
  const from = Number.isNaN(first) ? to - days * DAY_MS : Math.max(to - days * DAY_MS, first);
  return (
    <Card title={of === undefined ? 'Status trend' : `Trend: ${of.name}`}>
      {problem === undefined ? null : (
        <Missing>Only the last day is shown. Couldn't read older samples: {problem}.</Missing>
      )}
      <LargeTrend
        module={name}
        samples={samples}
        trend={of}
        limits={limits}
        from={from}
        to={to}
        apartMs={APART_MS}
        timeZone={clock.timeZone}
      />
      <TrendKey trend={of} limits={limits} />
    </Card>
  );
}
