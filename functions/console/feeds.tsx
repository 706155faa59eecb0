// Feeds of the flow engine: a section of /plugins, POST /plugins/feeds, and POST
// /plugins/feeds/change.

import { AppError } from '@holdfast/kit/app-error';
import { deviceGroupName } from '@holdfast/kit/names';
import { deleteFeed, setFeed, switchFeedOff, switchFeedOn } from '../../shared/feeds/change.ts';
import { FEED_KINDS, type FeedKind } from '../../shared/feeds/port.ts';
import { feedInput, feedName, type FeedView } from '../../shared/feeds/rules.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actingIn } from '../../shared/http/sign-in.ts';
import { type Attempt, attempt, faultOf, type Form, formOf, parsed } from '../pages/form.ts';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card, Confirm } from '../pages/parts/card.tsx';
import { Field, Select } from '../pages/parts/field.tsx';
import { Missing, StatusBadge } from '../pages/parts/notice.tsx';
import { Empty, Table } from '../pages/parts/table.tsx';
import { type Clock, Distance } from '../pages/parts/time.tsx';

const PATH = '/plugins/feeds';

const KIND_LABELS: Record<FeedKind, string> = {
  adsb: 'Aircraft (ADS-B): aircraft.json of readsb, dump1090 or ADS-B Exchange',
  ais: 'Ships (AIS): ships.json of AIS-catcher',
  weather: 'Weather alerts: GeoJSON, such as https://api.weather.gov/alerts/active?area=CO',
  json: 'Any JSON list over HTTP',
  cot: 'CoT events over HTTP or TCP',
};

export const FEEDS_DONE = {
  'feed-set': 'Feed saved.',
  'feed-on': 'Feed switched on. The flow engine starts it within 15 seconds.',
  'feed-off': 'Feed switched off. Its service account is deactivated and its certificate revoked.',
  'feed-delete': 'Feed deleted.',
};

const CHANGES = { on: switchFeedOn, off: switchFeedOff, delete: deleteFeed };

export interface RefusedFeed {
  form?: Form;
  refused: AppError;
}

/** Adds the routes of this file. `show` is the page that they belong to. */
export function feedPages(
  app: App,
  deps: Deps,
  show: (c: PageContext, refused: RefusedFeed) => Promise<Response>,
): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.post(PATH, { access: 'admin' }, async function set(c) {
    const form = await formOf(c);
    const { refused } = await attempt(async () =>
      setFeed(actingIn(c, deps), parsed(feedName, form.text('name')), parsed(feedInput, inputOf(form))),
    );
    return refused === undefined ? goTo(c, '/plugins?done=feed-set') : show(c, { form, refused });
  });

  pages.post(`${PATH}/change`, { access: 'admin' }, async function change(c) {
    const form = await formOf(c);
    const word = form.text('change');
    if (!isChange(word)) throw new AppError('invalid', `change: must be one of: ${Object.keys(CHANGES).join(', ')}`);
    const { refused } = await attempt<unknown>(() => CHANGES[word](actingIn(c, deps), form.text('name')), 'not_found');
    return refused === undefined ? goTo(c, `/plugins?done=feed-${word}`) : show(c, { refused });
  });
}

function isChange(word: string): word is keyof typeof CHANGES {
  return Object.hasOwn(CHANGES, word);
}

const AREA = ['south', 'west', 'north', 'east'] as const;
const MAPPING = ['items', 'uid', 'lat', 'lon', 'callsign', 'remarks', 'type'] as const;

/** As PUT /api/feeds/{name} takes it. Fields that are left empty are left out. */
function inputOf(form: Form): object {
  const number = (name: string): number | undefined => (form.text(name) === '' ? undefined : Number(form.text(name)));
  const kind = form.text('kind');
  const area = Object.fromEntries(AREA.map((side) => [side, number(side)]));
  const mapping = Object.fromEntries(MAPPING.map((name) => [name, form.text(`map_${name}`) || undefined]));
  const secret = form.text('header_name');
  return {
    kind,
    url: form.text('url'),
    ...(secret === '' ? {} : { header: { name: secret, value: form.exact('header_value') } }),
    interval_s: number('interval_s'),
    area: AREA.every((side) => area[side] === undefined) ? null : area,
    group: form.text('group'),
    events_per_minute: number('events_per_minute'),
    megabytes_per_day: number('megabytes_per_day'),
    mapping: kind === 'json' ? { ...mapping, items: form.text('map_items') } : null,
  };
}

interface FeedsProps {
  feeds: Attempt<FeedView[]>;
  channels: Attempt<string[]>;
  retry: Partial<RefusedFeed>;
  clock: Clock;
  mayChange: boolean;
}

export function FeedsCard({ feeds, channels, retry, clock, mayChange }: FeedsProps) {
  if (feeds.refused !== undefined) return <Missing>Couldn't list the feeds. {feeds.refused.message}</Missing>;
  return (
    <Card title="Feeds" id="feeds">
      <p>
        The flow engine reads these sources and sends their events to a group. Each has a service account of its own.
      </p>
      <List feeds={feeds.done} clock={clock} mayChange={mayChange} />
      {mayChange ? <FeedForm channels={channels} retry={retry} /> : null}
    </Card>
  );
}

function List({ feeds, clock, mayChange }: { feeds: readonly FeedView[]; clock: Clock; mayChange: boolean }) {
  if (feeds.length === 0)
    return (
      <Empty>
        <p>No feeds yet.</p>
      </Empty>
    );
  const columns = [
    { label: 'Feed' },
    { label: 'Status' },
    { label: 'Today' },
    { label: 'Limits' },
    ...(mayChange ? [{ label: 'Actions', silent: true }] : []),
  ];
  const rows = feeds.map((feed) => [
    <>
      <bdi>{feed.name}</bdi> <span class="fine light">{feed.kind}</span>
      <div class="fine uid">{feed.url}</div>
    </>,
    <State feed={feed} />,
    <Today feed={feed} clock={clock} />,
    <>
      every {feed.interval_s} s, {feed.events_per_minute} events/min
      <div class="fine">
        {feed.megabytes_per_day} MB a day, to {deviceGroupName(feed.group)}
      </div>
    </>,
    ...(mayChange ? [<Actions feed={feed} />] : []),
  ]);
  return <Table caption="Feeds" columns={columns} rows={rows} />;
}

function State({ feed: { active, problem } }: { feed: FeedView }) {
  if (!active) return <StatusBadge status="note">Off</StatusBadge>;
  if (problem === null) return <StatusBadge status="ok">On</StatusBadge>;
  return (
    <div>
      <StatusBadge status="warning">On</StatusBadge>
      <p class="fault">{problem}</p>
    </div>
  );
}

function Today({ feed: { state }, clock }: { feed: FeedView; clock: Clock }) {
  if (state === null) return <span class="fine">nothing</span>;
  const { sent_today: sent, bytes_today: bytes, refused_today: refused, sent_at: sentAt, items } = state;
  return (
    <>
      {sent} events, {(bytes / 1e6).toFixed(1)} MB{refused === 0 ? '' : `, ${refused} held back`}
      <div class="fine">
        {items} in the last answer
        {sentAt === null ? '' : ', last sent '}
        {sentAt === null ? null : <Distance at={sentAt} clock={clock} />}
      </div>
    </>
  );
}

function Actions({ feed: { name, active } }: { feed: FeedView }) {
  const fields = (change: keyof typeof CHANGES) => (
    <>
      <input type="hidden" name="name" value={name} />
      <input type="hidden" name="change" value={change} />
    </>
  );
  return (
    <div class="row">
      {active ? (
        <Confirm label="Switch off…" of={name} action={`${PATH}/change`} button={`Switch off ${name}`}>
          <p>
            Its service account is deactivated and its certificate revoked. Devices keep events until they are stale.
          </p>
          {fields('off')}
        </Confirm>
      ) : (
        <form method="post" action={`${PATH}/change`}>
          {fields('on')}
          <button type="submit" class="quiet">
            Switch on <span class="silent">{name}</span>
          </button>
        </form>
      )}
      <Confirm label="Delete…" of={name} action={`${PATH}/change`} button={`Delete ${name}`}>
        <p>The feed, its service account and its certificate end. Stored events stay until they expire.</p>
        {fields('delete')}
      </Confirm>
    </div>
  );
}

function FeedForm({ channels, retry: { form, refused } }: Pick<FeedsProps, 'channels' | 'retry'>) {
  if (channels.refused !== undefined)
    return <Missing>Couldn't load the groups, so no feed can be added. {channels.refused.message}</Missing>;
  const groups = channels.done.map((value) => ({ value, label: deviceGroupName(value) }));
  const field = (name: string, label: string, more: Partial<Parameters<typeof Field>[0]> = {}) => (
    <Field
      name={name}
      id={`feed-${name}`}
      label={label}
      value={form?.text(name) ?? ''}
      error={faultOf(refused, name)}
      autocomplete="off"
      plain
      {...more}
    />
  );
  const asNumber = (name: string, label: string, initial: string, hint?: string) =>
    field(name, label, { type: 'number', value: form?.text(name) ?? initial, required: true, ...(hint && { hint }) });
  return (
    <details open={form !== undefined}>
      <summary class="button">Add or change feed</summary>
      <form method="post" action={PATH} class="narrow">
        {field('name', 'Name', {
          required: true,
          hint: 'Lower-case letters, digits and hyphens. The name of an existing feed replaces it.',
        })}
        <Select
          name="kind"
          label="Kind"
          choices={FEED_KINDS.map((value) => ({ value, label: KIND_LABELS[value] }))}
          value={form?.text('kind')}
        />
        {field('url', 'Address of the source', {
          required: true,
          maxlength: 2000,
          hint: 'https://… or, for CoT, tcp://host:port',
        })}
        <Select
          name="group"
          label="Group"
          choices={groups}
          value={form?.text('group')}
          error={faultOf(refused, 'group')}
        />
        {asNumber('interval_s', 'Seconds between requests', '30')}
        {asNumber('events_per_minute', 'Events a minute', '300')}
        {asNumber(
          'megabytes_per_day',
          'Disk budget, MB a day',
          '100',
          'Over it, events are held back until 00:00 UTC.',
        )}
        <details open={form !== undefined}>
          <summary>Area, secret header, fields of any JSON</summary>
          {AREA.map((side) => field(side, `Area: ${side}, degrees`, { error: faultOf(refused, `area.${side}`) }))}
          {field('header_name', 'Name of the secret header', { hint: 'For example Authorization or X-Api-Key' })}
          {field('header_value', 'Value of the secret header', { type: 'password', value: '' })}
          {MAPPING.map((name) =>
            field(`map_${name}`, `JSON: ${name}`, {
              error: faultOf(refused, `mapping.${name}`),
              hint: name === 'items' ? 'Where the list is; empty: the answer itself' : undefined,
            }),
          )}
        </details>
        <button type="submit">Save feed</button>
      </form>
    </details>
  );
}
