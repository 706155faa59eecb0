// GET /alerts: lists alerts with their delivery. POST /alerts/test: sends a test alert and shows
// the service's answer.

import { z } from '@hono/zod-openapi';
import type { AppError } from '@holdfast/kit/app-error';
import { counted } from '@holdfast/kit/format';
import { maskRecipient } from '@holdfast/kit/text';
import { toAlertView } from '../../../shared/alerts/message.ts';
import { sendTestMessage, SET_UP, type TestOutcome } from '../../../shared/alerts/transports.ts';
import {
  ALERT_STATES,
  type AlertFilter,
  type Channel,
  CHANNELS,
  type AlertTransport,
  type AlertTransports,
} from '../../../shared/alerts/port.ts';
import { audited } from '../../../shared/audit/audited.ts';
import { HEALTH_MODULES } from '../../../shared/health/modules/index.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { actorOf } from '../../../shared/http/sign-in.ts';
import { STATUSES } from '../../../shared/settings/status.ts';
import { attempt, formOf, parsed } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Confirm, Facts } from '../../pages/parts/card.tsx';
import {
  csvAddress,
  type DaySpan,
  DaySpanFields,
  daySpanOf,
  Filters,
  isFaulty,
  Select,
  formatSpan,
} from '../../pages/parts/field.tsx';
import { Missing, Problem, StatusBadge, formatStatus, Warning } from '../../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager } from '../../pages/parts/table.tsx';
import { clockOf } from '../../pages/parts/time.tsx';
import { moduleWords } from '../health/module-texts.tsx';
import { ALERT_WORDS, AlertRecord, CHANNEL_NAMES } from './record.tsx';

interface AlertChannelsProps {
  transports: AlertTransports;
  /** Where the test form goes; undefined if the viewer may not send one. */
  testAction: string | undefined;
}

/** The recipients of alerts on each channel, with a test form. */
export function AlertChannels({ transports, testAction }: AlertChannelsProps) {
  return (
    <section id="channels" aria-labelledby="recipients">
      <h2 id="recipients">Recipients</h2>
      {CHANNELS.some((channel) => isSetUp(transports[channel])) ? null : (
        <Warning>
          <strong>No alert recipients.</strong> Alerts are only recorded here until you set up email or SMS.
        </Warning>
      )}
      <div class="cards">
        {CHANNELS.map((channel) => {
          const transport = transports[channel];
          return isSetUp(transport) ? (
            <SetUp channel={channel} transport={transport} testAction={testAction} />
          ) : (
            <Card title={CHANNEL_NAMES[channel]} aside={<StatusBadge status="note">Not set up</StatusBadge>}>
              <p>{SET_UP[channel]}</p>
            </Card>
          );
        })}
      </div>
    </section>
  );
}

function isSetUp(transport: AlertTransport | undefined): transport is AlertTransport {
  return transport !== undefined && transport.recipients.length > 0;
}

/** `2 recipients: d***@example.org, o***@example.org`. */
export function formatRecipients({ recipients }: AlertTransport): string {
  return `${counted(recipients.length, 'recipient')}: ${recipients.map(maskRecipient).join(', ')}`;
}

interface SetUpProps {
  channel: Channel;
  transport: AlertTransport;
  testAction: string | undefined;
}

function SetUp({ channel, transport, testAction }: SetUpProps) {
  return (
    <Card title={CHANNEL_NAMES[channel]} aside={<StatusBadge status="ok">Set up</StatusBadge>}>
      <p>
        By {transport.by}, {formatRecipients(transport)}
      </p>
      {testAction === undefined ? null : (
        <Confirm label="Send test alert…" action={testAction} button="Send test alert" danger={false}>
          <input type="hidden" name="channel" value={channel} />
          <p>Every recipient gets a message marked as a test.</p>
        </Confirm>
      )}
    </Card>
  );
}

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
    const auditedAction = { actor: actorOf(c), action: 'alert.test', target: channel };
    const { done, refused } = await attempt(() => audited(deps, auditedAction, () => sendTestMessage(deps, channel)));
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
  const set = formatSet(filter, span);
  const mayTest = isAdmin(c);
  const clock = clockOf(deps);
  const body = (
    <>
      <TestReport tested={tested} deps={deps} />
      <Filters action={HERE} set={set} csv={csvAddress('/api/alerts', { ...filter })} open={isFaulty(span)}>
        <FilterFields filter={filter} span={span} />
      </Filters>
      <div id="alerts" data-refresh {...(tested === undefined ? { 'data-live': 'self', 'data-every': '15' } : {})}>
        {complete ? null : (
          <Missing>Couldn’t load older alerts: the database is unavailable. They appear again once it answers.</Missing>
        )}
        {results.length === 0 ? (
          <None isFiltered={set.length > 0} />
        ) : (
          <ul class="records">
            {results.map((alert) => (
              <AlertRecord alert={toAlertView(alert, deps.settings)} clock={clock} />
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
        <summary>About results</summary>
        <Facts
          of={Object.fromEntries(ALERT_STATES.map((state) => [ALERT_WORDS[state].word, ALERT_WORDS[state].means]))}
        />
      </details>
      <AlertChannels transports={deps.notify} testAction={mayTest ? TEST : undefined} />
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

function formatSet({ module, level, state }: AlertFilter, span: DaySpan): string[] {
  return [
    ...(module === undefined ? [] : [moduleWords(module).title]),
    ...(level === undefined ? [] : [formatStatus(level)]),
    ...(state === undefined ? [] : [ALERT_WORDS[state].word]),
    ...formatSpan(span),
  ];
}

const ANY = { value: '', label: 'Any' };

function FilterFields({ filter, span }: { filter: AlertFilter; span: DaySpan }) {
  const modules = HEALTH_MODULES.map(({ name }) => ({ value: name, label: moduleWords(name).title }));
  const levels = LEVELS.map((value) => ({ value, label: formatStatus(value) }));
  const states = ALERT_STATES.map((value) => ({ value, label: ALERT_WORDS[value].word }));
  return (
    <>
      <Select name="module" label="Module" value={filter.module} choices={[ANY, ...modules]} />
      <Select name="level" label="Level" value={filter.level} choices={[ANY, ...levels]} />
      <Select name="state" label="Result" value={filter.state} choices={[ANY, ...states]} />
      <DaySpanFields {...span} />
    </>
  );
}

function None({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty>
        No alerts match these filters. <a href={HERE}>Clear filters</a>.
      </Empty>
    );
  return <Empty>No alerts yet. Send a test alert to check delivery.</Empty>;
}

function TestReport({ tested, deps }: { tested: Tested | undefined; deps: Deps }) {
  if (tested === undefined) return null;
  const { channel, outcome, refused } = tested;
  const transport = deps.notify[channel];
  if (outcome === undefined || transport === undefined) return <Problem error={refused} />;
  if (outcome.delivered)
    return (
      <p class="notice good" role="status">
        {CHANNEL_NAMES[channel]}: {outcome.detail} Check that it arrives at {formatRecipients(transport)}.
      </p>
    );
  return (
    <p class="notice bad" role="alert">
      {CHANNEL_NAMES[channel]} didn’t reach every recipient: {outcome.detail}
    </p>
  );
}
