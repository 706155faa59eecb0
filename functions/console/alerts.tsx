// GET /alerts: what was alerted and what became of it. POST /alerts/test: a test message, and what the service said to it.

import type { AppError } from '../../shared/domain/app-error.ts';
import { STATUSES } from '../../shared/domain/status.ts';
import { HEALTH_MODULES } from '../../shared/health/index.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { actorOf } from '../../shared/http/sign-in.ts';
import { ALERT_STATES, type AlertFilter } from '../../shared/ports/alerts.ts';
import { type Channel, CHANNELS } from '../../shared/ports/notifier.ts';
import { audited } from '../../shared/verbs/audited.ts';
import { sendTestMessage, type TestOutcome } from '../../shared/verbs/send-test-message.ts';
import { shownAlert } from '../../shared/verbs/shown-alert.ts';
import { z } from '@hono/zod-openapi';
import { clockOf } from '../pages/clock.ts';
import { attempt, formOf, parsed } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Facts } from '../pages/parts/card.tsx';
import { Select } from '../pages/parts/field.tsx';
import { Filters } from '../pages/parts/filters.tsx';
import { Missing, Problem } from '../pages/parts/notice.tsx';
import { statusInWords } from '../pages/parts/status.tsx';
import { Empty, pageNumber, Pager } from '../pages/parts/table.tsx';
import { AlertChannels, recipientsInWords } from './alert-channels.tsx';
import { AlertRecord } from './alert-record.tsx';
import { ALERT_WORDS, CHANNEL_NAMES } from './alert-words.ts';
import { csvAddress, type DaySpan, DaySpanFields, daySpanOf, isFaulty, spanInWords } from './day-span.tsx';
import { moduleWords } from './module-words.ts';

const HERE = '/alerts';
const TEST = '/alerts/test';
const PAGE_SIZE = 50;

/** Adds the routes of this file. */
export function alertsPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  pages.get(HERE, { access: 'viewer', area: 'monitoring' }, (c) => showAlerts(c, deps));
  pages.post(TEST, { access: 'admin' }, async function sendTest(c) {
    const form = await formOf(c);
    const { channel } = parsed(z.object({ channel: z.enum(CHANNELS) }), { channel: form.text('channel') });
    const deed = { actor: actorOf(c), action: 'alert.test', target: channel };
    const { done, refused } = await attempt(() => audited(deps, deed, () => sendTestMessage(deps, channel)));
    return showAlerts(c, deps, { channel, outcome: done, refused });
  });
}

interface Tested {
  channel: Channel;
  outcome: TestOutcome | undefined;
  refused: AppError | undefined;
}

async function showAlerts(c: PageContext, deps: Deps, tested?: Tested): Promise<Response> {
  const page = pageNumber(c.req.query('page'));
  const span = daySpanOf(c, deps.timeZone);
  const filter = filterOf(c, span);
  const { results, count, complete } = await deps.alerts.list(filter, (page - 1) * PAGE_SIZE, PAGE_SIZE);
  const set = setInWords(filter, span);
  const mayTest = isAdmin(c);
  const clock = clockOf(deps);
  const body = (
    <>
      <TestSaid tested={tested} deps={deps} />
      <Filters action={HERE} set={set} csv={csvAddress('/api/alerts', { ...filter })} open={isFaulty(span)}>
        <FilterFields filter={filter} span={span} />
      </Filters>
      <div id="alerts" data-refresh {...(tested === undefined ? { 'data-live': 'self', 'data-every': '15' } : {})}>
        {complete ? null : (
          <Missing>
            The database does not answer: this is only what happened since. The rest is there again when the database
            is.
          </Missing>
        )}
        {results.length === 0 ? (
          <None isFiltered={set.length > 0} />
        ) : (
          <ul class="records">
            {results.map((alert) => (
              <AlertRecord alert={shownAlert(alert, deps.settings)} clock={clock} />
            ))}
          </ul>
        )}
        {count === 0 ? null : (
          <Pager
            url={new URL(HERE + new URL(c.req.url).search, c.req.url)}
            page={page}
            pageSize={PAGE_SIZE}
            count={count}
          />
        )}
      </div>
      <details class="rest">
        <summary>What the states mean</summary>
        <Facts
          of={Object.fromEntries(ALERT_STATES.map((state) => [ALERT_WORDS[state].word, ALERT_WORDS[state].means]))}
        />
      </details>
      <AlertChannels outlets={deps.notify} testAction={mayTest ? TEST : undefined} />
    </>
  );
  return framed(c, deps, { title: 'Alerts', current: 'alerts', body, refused: tested?.refused });
}

const LEVELS = STATUSES.filter((status) => status !== 'ok').toReversed();

function filterOf({ req }: PageContext, { since, until }: DaySpan): AlertFilter {
  return {
    module: HEALTH_MODULES.find(({ name }) => name === req.query('module'))?.name,
    level: LEVELS.find((level) => level === req.query('level')),
    state: ALERT_STATES.find((state) => state === req.query('state')),
    since,
    until,
  };
}

function setInWords({ module, level, state }: AlertFilter, span: DaySpan): string[] {
  return [
    ...(module === undefined ? [] : [moduleWords(module).title]),
    ...(level === undefined ? [] : [statusInWords(level)]),
    ...(state === undefined ? [] : [ALERT_WORDS[state].word]),
    ...spanInWords(span),
  ];
}

const ANY = { value: '', label: 'Any' };

function FilterFields({ filter, span }: { filter: AlertFilter; span: DaySpan }) {
  const modules = HEALTH_MODULES.map(({ name }) => ({ value: name, label: moduleWords(name).title }));
  const levels = LEVELS.map((value) => ({ value, label: statusInWords(value) }));
  const states = ALERT_STATES.map((value) => ({ value, label: ALERT_WORDS[value].word }));
  return (
    <>
      <Select name="module" label="Of" value={filter.module} choices={[ANY, ...modules]} />
      <Select name="level" label="How bad" value={filter.level} choices={[ANY, ...levels]} />
      <Select name="state" label="What became of it" value={filter.state} choices={[ANY, ...states]} />
      <DaySpanFields {...span} />
    </>
  );
}

function None({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty>
        No alert is like that. <a href={HERE}>Show all of them</a>.
      </Empty>
    );
  return <Empty>Nothing had to be alerted yet. Whether an alert would reach you, a test below tells.</Empty>;
}

function TestSaid({ tested, deps }: { tested: Tested | undefined; deps: Deps }) {
  if (tested === undefined) return null;
  const { channel, outcome, refused } = tested;
  const outlet = deps.notify[channel];
  if (outcome === undefined || outlet === undefined) return <Problem error={refused} />;
  if (outcome.delivered)
    return (
      <p class="notice good" role="status">
        {CHANNEL_NAMES[channel]}: {outcome.detail} It is on its way to {recipientsInWords(outlet)}. Look whether it
        arrives.
      </p>
    );
  return (
    <p class="notice bad" role="alert">
      {CHANNEL_NAMES[channel]} did not reach everybody: {outcome.detail}
    </p>
  );
}
