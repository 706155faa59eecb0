// GET /: whether it works, at one glance, and what to do when it does not. From memory alone, so that the core, its database and
// the directory may be away; only the session is looked up, in our own database.

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
import { DeviceWay } from './device-way.tsx';
import { moduleWords, remediesOf, Since, statusOf, trendLimits } from './module-texts.tsx';

interface HealthCardProps {
  state: ModuleState;
  samples: readonly HealthSample[];
  thresholds: Thresholds;
  clock: Clock;
}

/** Two samples and a little. */
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
      <span class="figure">{formatFigure(measurement.figure, trend.unit)}</span> <span class="fine">{trend.name}</span>
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
  const more = remedies.length - MAX_REMEDIES;
  return (
    <>
      {remedies.length === 0 ? null : (
        <details class="next" id={`next-${state.module}`} open={statusOf(state) === 'critical'}>
          <summary id={`open-${state.module}`}>What to do next</summary>
          <Remedies id={`do-${state.module}`} remedies={remedies.slice(0, MAX_REMEDIES)} />
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

// How the whole stack is, in one sentence: what the person on duty reads first.
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
      sentence: `Just started: ${unmeasured} of ${counted(states.length, 'part')} ${unmeasured === 1 ? 'is' : 'are'} still to be looked at`,
      since: null,
      exact: false,
    };
  return { status, sentence: sentenceOf(status, states), ...sinceOf(status, states) };
}

function sentenceOf(status: Status, states: readonly ModuleState[]): string {
  const titles = states.filter((state) => statusOf(state) === status).map(({ module }) => moduleWords(module).title);
  const names =
    titles.length > 3 ? `${titles.slice(0, 3).join(', ')} and ${titles.length - 3} more` : titles.join(', ');
  const one = titles.length === 1;
  const warned = states.filter((state) => statusOf(state) === 'warning').length;
  const more = warned === 0 ? '' : `; ${warned} more ${warned === 1 ? 'needs' : 'need'} attention`;
  const sentences: Record<Status, string> = {
    critical: `${counted(titles.length, 'thing')} ${one ? 'is' : 'are'} broken: ${names}${more}`,
    warning: `${counted(titles.length, 'thing')} ${one ? 'needs' : 'need'} attention: ${names}`,
    note: `Everything works, with a note: ${names}`,
    ok: 'Everything works',
  };
  return sentences[status];
}

/** Bad: since the first part became so. All well: since the last part did. */
function sinceOf(status: Status, states: readonly ModuleState[]): Pick<Overall, 'since' | 'exact'> {
  const own = states
    .filter((state) => statusOf(state) === status && state.since !== null)
    .toSorted((a, b) => ((a.since ?? '') < (b.since ?? '') ? -1 : 1));
  const decides = status === 'ok' ? own.at(-1) : own[0];
  return { since: decides?.since ?? null, exact: decides?.since_is_exact ?? false };
}

/** Worst first; among equals in the order of the table. */
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
          Let somebody in
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
      <Search action="/people" label="Find a person" value="" placeholder="Find a person by name" />
      <div id="health" data-live="/api/health?view=status">
        <DeviceWay state={states.find(({ module }) => module === 'probe')} clock={clock} />
        <Cards title="What needs attention" kind="bad" states={bad} deps={deps} samples={samples} clock={clock} />
        <Cards title="Not looked at yet" kind="good" states={unseen} deps={deps} samples={samples} clock={clock} />
        <Cards title="What works" kind="good" states={good} deps={deps} samples={samples} clock={clock} />
      </div>
      <noscript>
        <p class="fine">Without scripts this page does not follow what happens: reload it to see more.</p>
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

/** Who has no role here has devices of their own all the same. */
function forEverybodyElse(c: PageContext, deps: Deps): Promise<Response> {
  const body = (
    <div class="card">
      <p>
        These pages are for whoever runs the server, and your account has no part in that. Your own devices, your
        password and the guides are in the portal.
      </p>
      <p>
        <a class="button primary" href={`${deps.addresses.portal}/`}>
          Go to the portal
        </a>
      </p>
      <p class="fine">If you should see more, ask an administrator to give you the role viewer or admin.</p>
    </div>
  );
  return framed(c, deps, { title: `Welcome, ${c.get('principal').username}`, current: 'overview', body });
}
