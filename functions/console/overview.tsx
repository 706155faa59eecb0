// GET /: whether it works, at one glance, and what to do when it does not. From memory alone, so that the core, its database and
// the directory may be away; only the session is looked up, in our own database.

import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import type { ModuleState } from '../../shared/ports/health-cache.ts';
import type { HealthSample } from '../../shared/ports/health-trend.ts';
import { type Clock, clockOf } from '../pages/clock.ts';
import { framed } from '../pages/frame.tsx';
import { overallOf, worstFirst } from './overall.ts';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Search } from '../pages/parts/card.tsx';
import { DeviceWay } from './device-way.tsx';
import { HealthCard } from './health-card.tsx';
import { Since, statusOf } from './since.tsx';

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
