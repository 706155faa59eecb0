// GET /: shows the state of the stack at one glance, with next steps.
// Reads memory only, so it works while the core, its database and the directory are unavailable.
// Only the session is looked up, in our own database.

import { counted, formatFigure } from '@holdfast/kit/format';
import { capitalised } from '@holdfast/kit/text';
import { DAY_MS } from '@holdfast/kit/time';
import { healthModuleOf } from '../../../shared/health/modules/index.ts';
import type { HealthSample, ModuleState } from '../../../shared/health/port.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { type Status, type Thresholds, urgency, worstOf } from '../../../shared/settings/status.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Search } from '../../pages/parts/card.tsx';
import { Remedies, StatusBadge } from '../../pages/parts/notice.tsx';
import { type Clock, clockOf } from '../../pages/parts/time.tsx';
import { Trend } from '../../pages/parts/trend.tsx';
import { whyTheDatabase } from '../database/next.tsx';
import { ConnectionCheck } from './connection-check.tsx';
import { moduleWords, remediesOf, Since, statusOf, trendLimits } from './module-texts.tsx';

interface HealthCardProps {
  state: ModuleState;
  samples: readonly HealthSample[];
  thresholds: Thresholds;
  clock: Clock;
}

/** Slightly more than two sample intervals. */
export const APART_MS = 660_000;
const MAX_REMEDIES = 3;

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
            <Since since={since} exact={exact} clock={clock} short />
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
      <span class="figure">{formatFigure(measurement.figure, trend.unit)}</span> <span class="fine">{trend.name}</span>
    </p>
  );
}

/** Leaves out the size against the thresholds: the message and the trend show it. */
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
  const more = remedies.length - MAX_REMEDIES;
  return (
    <>
      {remedies.length === 0 ? null : (
        <details class="next" id={`next-${state.module}`} open={statusOf(state) === 'critical'}>
          <summary id={`open-${state.module}`}>Next steps</summary>
          <Remedies id={`do-${state.module}`} remedies={remedies.slice(0, MAX_REMEDIES)} />
          {more > 0 ? (
            <a id={`more-${state.module}`} href={`/health/${state.module}`}>
              {counted(more, 'more step')}
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

// The state of the whole stack in one sentence, which the person on duty reads first.
interface Overall {
  status: Status;
  sentence: string;
  since: string | null;
  exact: boolean;
}

export function overallOf(states: readonly ModuleState[]): Overall {
  const unmeasured = states.filter(({ measurement }) => measurement === null).length;
  const status = worstOf(states.map(statusOf));
  if (unmeasured > 0 && urgency(status) <= urgency('note'))
    return {
      status,
      sentence: `Just started: ${unmeasured} of ${counted(states.length, 'check')} pending`,
      since: null,
      exact: false,
    };
  return { status, sentence: sentenceOf(status, states), ...sinceOf(status, states) };
}

function sentenceOf(status: Status, states: readonly ModuleState[]): string {
  const titles = states.filter((state) => statusOf(state) === status).map(({ module }) => moduleWords(module).title);
  const names =
    titles.length > 3 ? `${titles.slice(0, 3).join(', ')} and ${titles.length - 3} more` : titles.join(', ');

  const warned = states.filter((state) => statusOf(state) === 'warning').length;
  const more = warned === 0 ? '' : `, plus ${counted(warned, 'warning')}`;
  const sentences: Record<Status, string> = {
    critical: `${counted(titles.length, 'critical problem')}: ${names}${more}`,
    warning: `${counted(titles.length, 'warning')}: ${names}`,
    note: `Everything works, with ${counted(titles.length, 'note')}: ${names}`,
    ok: 'Everything works',
  };
  return sentences[status];
}

/**
 * A problem lasts since the first module got that status; OK lasts since the last module got it.
 */
function sinceOf(status: Status, states: readonly ModuleState[]): Pick<Overall, 'since' | 'exact'> {
  const own = states
    .filter((state) => statusOf(state) === status && state.since !== null)
    .toSorted((a, b) => ((a.since ?? '') < (b.since ?? '') ? -1 : 1));
  const decides = status === 'ok' ? own.at(-1) : own[0];
  return { since: decides?.since ?? null, exact: decides?.since_is_exact ?? false };
}

/** Sorts by urgency; equal ones stay in the order of the table. */
export function worstFirst(states: readonly ModuleState[]): ModuleState[] {
  return states.toSorted((a, b) => urgency(statusOf(b)) - urgency(statusOf(a)));
}

/** Adds the route of this file. */
export function overviewPage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get('/', { access: 'own' }, async function showOverview(c) {
    if (c.get('principal').role === 'none') return forEverybodyElse(c, deps);
    const [states, samples = []] = await Promise.all([deps.health.states(), deps.health.remembered()]);
    return framed(c, deps, {
      title: 'Overview',
      heading: <Sentence states={states} />,
      current: 'overview',
      actions: <Actions isAdmin={isAdmin(c)} />,
      body: <Body deps={deps} states={states} samples={samples} />,
    });
  });
}

function Sentence({ states }: { states: readonly ModuleState[] }) {
  const { status, sentence } = overallOf(states);
  return (
    <span id="overall" class={`overall ${status}`} data-refresh aria-live="polite">
      {sentence}
    </span>
  );
}

function Actions({ isAdmin }: { isAdmin: boolean }) {
  return (
    <>
      {isAdmin ? (
        <a class="button primary" href="/people/new">
          Add person
        </a>
      ) : null}
      <a class="button" href="/devices">
        Devices
      </a>
    </>
  );
}

interface BodyProps {
  deps: Deps;
  states: readonly ModuleState[];
  samples: readonly HealthSample[];
}

function Body({ deps, states, samples }: BodyProps) {
  const clock = clockOf(deps);
  const { since, exact } = overallOf(states);
  const sorted = worstFirst(states);
  const unseen = sorted.filter(({ measurement }) => measurement === null);
  const good = sorted.filter((state) => statusOf(state) === 'ok');
  const bad = sorted.filter((state) => !good.includes(state) && !unseen.includes(state));
  return (
    <>
      <p class="fine" id="overall-since" data-refresh>
        <Since since={since} exact={exact} clock={clock} />
      </p>
      <Search action="/people" label="Find person" value="" placeholder="Find a person by name" />
      <div id="health" data-live="/api/health?view=status">
        <ConnectionCheck state={states.find(({ module }) => module === 'probe')} clock={clock} />
        <Cards title="Needs attention" kind="bad" states={bad} deps={deps} samples={samples} clock={clock} />
        <Cards title="Not checked yet" kind="good" states={unseen} deps={deps} samples={samples} clock={clock} />
        <Cards title="Working" kind="good" states={good} deps={deps} samples={samples} clock={clock} />
      </div>
      <noscript>
        <p class="fine">Scripts are off. Reload this page to see changes.</p>
      </noscript>
    </>
  );
}

function Cards({
  title,
  kind,
  states,
  deps,
  samples,
  clock,
}: BodyProps & { title: string; kind: string; clock: Clock }) {
  if (states.length === 0) return null;
  return (
    <>
      <h2 class="part">{title}</h2>
      <div class={`cards ${kind}`}>
        {states.map((state) => (
          <HealthCard state={state} samples={samples} thresholds={deps.thresholds} clock={clock} />
        ))}
      </div>
    </>
  );
}

/** People without a role here still have devices of their own. */
function forEverybodyElse(c: PageContext, deps: Deps): Promise<Response> {
  const body = (
    <div class="card">
      <p>
        This console is for administrators and viewers, and your account has no role here. Your devices, your password
        and the guides are in the portal.
      </p>
      <p>
        <a class="button primary" href={`${deps.addresses.portal}/`}>
          Open portal
        </a>
      </p>
      <p class="fine">Need access? Ask an administrator for the role viewer or admin.</p>
    </div>
  );
  return framed(c, deps, { title: `Welcome, ${c.get('principal').username}`, current: 'overview', body });
}
