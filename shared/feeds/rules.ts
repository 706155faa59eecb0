// Checks what administrators say of a feed, and decides what people see of one.

import { z } from '@hono/zod-openapi';
import { invalid } from '@holdfast/kit/app-error';
import { FEED_ACCOUNT_PREFIX } from '@holdfast/kit/names';
import { type Feed, FEED_KINDS, type FeedReport, type FeedState, feedStateSchema } from './port.ts';

export const MAX_FEEDS = 20;
/** The engine replaces a host such as `${HOME}` by a value of its environment. */
const HOST = /^(?:[\w.-]+|\[[0-9a-f:.]+\])$/i;
/** Longer than the engine ever waits between two reports, and than these take to come. */
const REPORTED_WITHIN_MS = 90_000;

export const feedName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?$/, 'must be 1 to 30 lower-case letters, digits and hyphens');

const latitude = z.number().min(-90).max(90);
const longitude = z.number().min(-180).max(180);
const area = z
  .object({ south: latitude, west: longitude, north: latitude, east: longitude })
  .refine(({ south, north }) => south < north, { path: ['south'], message: 'must be less than north' });

const path = z.string().regex(/^[\w.@:-]{0,200}$/, 'must be names with dots between them, such as position.lat');
const mapping = z.object({
  items: path.openapi({ description: 'Where the list is; empty: the answer itself' }),
  uid: path.min(1),
  lat: path.min(1),
  lon: path.min(1),
  callsign: path.default(''),
  remarks: path.default(''),
  type: z
    .string()
    .regex(/^a-[fnuh](?:-[A-Za-z0-9]{1,10}){1,10}$/, 'must be a CoT type such as a-f-G')
    .default('a-n-G'),
});

export const header = z.object({
  name: z.string().regex(/^[A-Za-z0-9-]{1,60}$/, 'must be the name of a header, such as Authorization'),
  value: z.string().regex(/^[\x20-\x7e]{1,2000}$/, 'must be 1 to 2000 printable ASCII characters'),
});

/** As administrators give it. */
export const feedInput = z.object({
  kind: z.enum(FEED_KINDS),
  url: z.string().max(2000).openapi({ description: 'http or https, for the kind cot also tcp://host:port' }),
  header: header.nullable().optional().openapi({
    description: 'A secret header of the source. Left out: the present one, while scheme, host and port stay the same',
  }),
  interval_s: z.int().min(5).max(3600),
  area: area.nullable().default(null),
  group: z.string().max(100).openapi({ description: 'With or without the prefix core_' }),
  events_per_minute: z.int().min(1).max(6000),
  megabytes_per_day: z.int().min(1).max(100_000),
  mapping: mapping.nullable().default(null).openapi({ description: 'For the kind json' }),
});
export type FeedInput = z.output<typeof feedInput>;

export const feedSchema = z
  .object({
    name: z.string(),
    kind: z.enum(FEED_KINDS),
    url: z.string().openapi({ description: 'Without its query, which may hold a key' }),
    has_header: z.boolean(),
    interval_s: z.int(),
    area: area.nullable(),
    group: z.string(),
    events_per_minute: z.int(),
    megabytes_per_day: z.int(),
    mapping: mapping.nullable(),
    active: z.boolean(),
    account: z.string().openapi({ description: 'Its service account, while it is active' }),
    state: feedStateSchema.nullable().openapi({ description: 'Null while it is off, and until the engine reports' }),
    problem: z.string().nullable().openapi({ description: 'Why an active feed brings nothing, with the remedy' }),
  })
  .openapi('Feed');
export type FeedView = z.output<typeof feedSchema>;

/** Throws `invalid` for an address that no feed of that kind can have. */
export function checkedUrl(kind: Feed['kind'], text: string): string {
  if (!URL.canParse(text)) throw invalid('url', 'must be a URL, such as http://192.0.2.7:8080/data/aircraft.json');
  const url = new URL(text);
  const schemes = kind === 'cot' ? ['http:', 'https:', 'tcp:'] : ['http:', 'https:'];
  if (!schemes.includes(url.protocol)) throw invalid('url', `must begin with ${schemes.join('// or ')}//`);
  if (url.protocol === 'tcp:' && (url.port === '' || url.hostname === ''))
    throw invalid('url', 'needs a host and a port');
  if (!HOST.test(url.hostname))
    throw invalid('url', `must name a host by its name or IP address; ${url.hostname.slice(0, 60)} is neither`);
  if (url.username !== '' || url.password !== '')
    throw invalid('url', 'must hold no username or password; use the header');
  return url.href;
}

/** `former`: the feed of that name. Its secret never goes to another place. */
export function feedOf(name: string, { header: given, ...input }: FeedInput, former: Feed | undefined): Feed {
  const url = checkedUrl(input.kind, input.url);
  if (input.kind === 'json' && input.mapping === null) throw invalid('mapping', 'is needed for the kind json');
  const kept = former !== undefined && originOf(former.url) === originOf(url) ? former.header : null;
  const isOfJson = input.kind === 'json';
  return {
    ...input,
    name,
    url,
    header: given === undefined ? kept : given,
    mapping: isOfJson ? input.mapping : null,
    active: former?.active ?? false,
  };
}

function originOf(text: string): string {
  const { protocol, host } = new URL(text);
  return `${protocol}//${host}`;
}

export function accountOf(name: string): string {
  return FEED_ACCOUNT_PREFIX + name;
}

/** The group through which an account sends to a channel and hears nothing of it. */
export function writingGroup(channel: string): string {
  return /_write$/i.test(channel) ? channel : `${channel}_WRITE`;
}

export function publicUrl(text: string): string {
  return `${originOf(text)}${new URL(text).pathname}`;
}

export function toFeedView(feed: Feed, report: FeedReport | undefined, now: Date): FeedView {
  const { header: secret, url, ...shown } = feed;
  const state = (feed.active ? stateOf(feed, report) : undefined) ?? null;
  return {
    ...shown,
    url: publicUrl(url),
    has_header: secret !== null,
    account: accountOf(feed.name),
    state,
    problem: feed.active ? problemOf(feed, { report, now }) : null,
  };
}

function stateOf({ name }: Feed, report: FeedReport | undefined): FeedState | undefined {
  return report !== undefined && Object.hasOwn(report.feeds, name) ? report.feeds[name] : undefined;
}

function problemOf(feed: Feed, { report, now }: { report: FeedReport | undefined; now: Date }): string | null {
  if (report === undefined || now.getTime() - Date.parse(report.at) > REPORTED_WITHIN_MS)
    return 'The flow engine does not report. Start it: docker compose up -d flows, or embedded with --flows.';
  const state = stateOf(feed, report);
  if (state === undefined) return 'The flow engine does not run it yet. This takes up to 15 seconds.';
  if (state.error !== null) return `The source failed: ${state.error}.`;
  if (!state.connected)
    return 'Not connected to the core yet. Check its service account and the log of the flow engine.';
  if (state.read_at === null && feed.url.startsWith('tcp:'))
    return 'The source has sent nothing yet. Check its address.';
  const isSpent = state.refused_today > 0 && state.day === now.toISOString().slice(0, 10);
  return isSpent
    ? `${state.refused_today} events did not fit into the disk budget of ${feed.megabytes_per_day} MB. The next day begins at 00:00 UTC.`
    : null;
}
