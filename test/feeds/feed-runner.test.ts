// How the flow engine runs feeds: its tabs, what it reads of a source, and what it reports.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FeedFiles } from '../../shared/feeds/files.ts';
import { feedReportSchema, type Feed, type FeedState } from '../../shared/feeds/port.ts';
import { FEED, Feeds, type TestFeeds } from './flow-files.ts';

let directory: string;
let feeds: TestFeeds;
let server: Server | undefined;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-feeds-'));
  mkdirSync(join(directory, 'state'));
  feeds = new Feeds(directory);
});
afterEach(() => {
  server?.close();
  server = undefined;
  rmSync(directory, { recursive: true, force: true });
});

function give(...given: Partial<Feed>[]): void {
  writeFileSync(join(directory, 'feeds.json'), JSON.stringify({ feeds: given.map((feed) => ({ ...FEED, ...feed })) }));
  feeds.load();
}

const keep = (name: string, text = 'a certificate'): void =>
  writeFileSync(join(directory, `svc_feed_${name}.pem`), text);

function state(name = 'planes', nowMs = Date.now()): FeedState | undefined {
  feeds.report(nowMs);
  return feedReportSchema.parse(JSON.parse(readFileSync(join(directory, 'state/feeds.json'), 'utf8'))).feeds[name];
}

async function served(answer: RequestListener): Promise<string> {
  server = createServer(answer);
  await new Promise<void>((resolve) => void server?.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/aircraft.json`;
}

const PLANES = JSON.stringify({ aircraft: [{ hex: 'a1b2c3', lat: 1, lon: 2 }] });

describe('the tabs', () => {
  it('are none without a file of feeds, for a feed that is off, and before there is a certificate', () => {
    expect(feeds.load()).toBe(false);
    expect(feeds.nodes()).toEqual([]);
    give({}, { name: 'off', active: false });
    keep('off');
    expect(feeds.nodes()).toEqual([]);
    keep('planes');
    expect(new Set(feeds.nodes().map(({ id }) => id.split('-').slice(0, 3).join('-')))).toEqual(
      new Set(['holdfast-feed-planes']),
    );
  });

  it('read the source every few seconds, by the certificate of the feed; another one connects again', () => {
    give({ interval_s: 45 });
    keep('planes');
    const tls = (): unknown => feeds.nodes().find(({ type }) => type === 'tls-config');
    expect(feeds.nodes().find(({ id }) => id.endsWith('-tick'))).toMatchObject({ repeat: '45' });
    const before = tls();
    expect(before).toMatchObject({ cert: join(directory, 'svc_feed_planes.pem'), verifyservercert: true });
    expect(tls()).toEqual(before);
    keep('planes', 'another');
    expect(tls()).not.toEqual(before);
  });

  it('of a TCP source connect to it, also by IPv6; every wire leads to a node', () => {
    give({ kind: 'cot', url: 'tcp://[2001:db8::1]:8087' });
    keep('planes');
    const nodes = feeds.nodes();
    expect(nodes.find(({ id }) => id.endsWith('-source'))).toMatchObject({ host: '2001:db8::1', port: '8087' });
    expect(nodes.some(({ id }) => id.endsWith('-read'))).toBe(false);
    const ids = nodes.map(({ id }) => id);
    for (const wire of nodes.flatMap(({ wires }) => (wires as string[][] | undefined)?.flat() ?? []))
      expect(ids).toContain(wire);
  });
});

describe('a source', () => {
  it('gets the secret header, and its answer becomes events that go once there is a connection', async () => {
    let key: unknown;
    const url = await served((request, response) => {
      key = request.headers['x-key'];
      response.end(PLANES);
    });
    give({ url, header: { name: 'X-Key', value: 'secret' } });
    const answer = await feeds.read('planes');
    expect(key).toBe('secret');
    await feeds.offer('planes', answer ?? '');
    expect(feeds.take('planes', false)).toBe('');
    expect(state()).toMatchObject({ connected: false, items: 1, sent_today: 0, error: null });
    expect(feeds.take('planes', true)).toContain('uid="ICAO-A1B2C3"');
    expect(state()).toMatchObject({ connected: true, sent_today: 1, refused_today: 0 });
    expect(readFileSync(join(directory, 'state/feeds.json'), 'utf8')).not.toContain('secret');
  });

  it('is not asked again while it has not answered', async () => {
    const waiting: ServerResponse[] = [];
    give({ url: await served((_, response) => void waiting.push(response)) });
    const first = feeds.read('planes');
    expect(await feeds.read('planes')).toBeUndefined();
    await expect.poll(() => waiting.length).toBe(1);
    waiting[0]?.end(PLANES);
    expect(await first).toBe(PLANES);
    const next = feeds.read('planes');
    await expect.poll(() => waiting.length).toBe(2);
    waiting[1]?.end('again');
    expect(await next).toBe('again');
  });

  it.each<[string, RequestListener, RegExp]>([
    ['503', (_, response) => void response.writeHead(503).end(), /^the source answers 503$/],
    [
      'a redirect',
      (_, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      /302, a redirect, which is not followed/,
    ],
    ['too much', (_, response) => void response.end(Buffer.alloc(8_000_001)), /larger than 8 MB/],
  ])('that answers %s is in the report', async (_, answer, reason) => {
    give({ url: await served(answer) });
    expect(await feeds.read('planes')).toBeUndefined();
    expect(state()?.error).toMatch(reason);
  });

  it('that cannot be reached, or answers something else, is in the report until it is well again', async () => {
    give({ url: 'http://127.0.0.1:1/' });
    await feeds.read('planes');
    expect(state()?.error).toMatch(/fetch failed/);
    await feeds.offer('planes', '<html>');
    expect(state()?.error).toMatch(/no JSON/);
    await feeds.offer('planes', PLANES);
    expect(state()?.error).toBeNull();
  });

  it('of a stream may cut events and characters anywhere, and may not go on without an end', async () => {
    give({ kind: 'cot', url: 'tcp://192.0.2.9:8087', events_per_minute: 100 });
    const stale = new Date(Date.now() + 60_000).toISOString();
    const event = (uid: string): string =>
      `<event uid="${uid}" type="a-f-G" stale="${stale}"><point lat="1" lon="2" hae="3"/><detail><contact callsign="Zoë"/></detail></event>`;
    for (const byte of Buffer.from(event('A') + event('B'))) await feeds.offer('planes', Buffer.from([byte]));
    const sent = feeds.take('planes', true);
    expect(sent.match(/uid="planes\.[AB]"/g)).toHaveLength(2);
    expect(sent.match(/callsign="Zoë"/g)).toHaveLength(2);
    await feeds.offer('planes', Buffer.alloc(256_001, 'x'));
    expect(state()?.error).toMatch(/sends no end/);
    await feeds.offer('planes', Buffer.from(event('C')));
    expect(feeds.take('planes', true)).toContain('planes.C');
  });
});

describe('the report', () => {
  it('is as management reads it, comes again every half a minute, and keeps the budget over a restart', async () => {
    give({});
    await feeds.offer('planes', PLANES);
    feeds.take('planes', true);
    const now = Date.now();
    const before = state('planes', now);
    mkdirSync(join(directory, 'core/feeds'), { recursive: true });
    const written = (): string => readFileSync(join(directory, 'state/feeds.json'), 'utf8');
    const text = written();
    writeFileSync(join(directory, 'core/feeds/report.json'), text);
    expect((await new FeedFiles(join(directory, 'core')).report())?.feeds['planes']).toEqual(before);
    feeds.report(now + 29_000);
    expect(written()).toBe(text);
    feeds.report(now + 30_000);
    expect(written()).not.toBe(text);
    feeds = new Feeds(directory);
    give({});
    expect(before?.bytes_today).toBeGreaterThan(700);
    expect(state('planes', now + 31_000)).toMatchObject({ sent_today: 1, bytes_today: before?.bytes_today });
  });

  it('has no feed that is off, whose nodes find nothing any more', async () => {
    give({});
    await feeds.offer('planes', PLANES);
    give({ active: false });
    expect(await feeds.read('planes')).toBeUndefined();
    await feeds.offer('planes', PLANES);
    expect(feeds.take('planes', true)).toBe('');
    give({});
    feeds.take('planes', true);
    expect(state()).toMatchObject({ items: 0 });
  });

  it('goes on with the budget of the day when a feed is switched off and on, also as another kind', async () => {
    give({});
    await feeds.offer('planes', PLANES);
    feeds.take('planes', true);
    const before = state();
    expect(before?.bytes_today).toBeGreaterThan(700);
    const { day, bytes_today, sent_today } = before ?? {};
    give({ active: false });
    give({});
    expect(state()).toMatchObject({ day, bytes_today, sent_today, items: 0 });
    give({ kind: 'ais' });
    expect(state()).toMatchObject({ day, bytes_today, sent_today: 1 });
  });

  it('starts afresh when the same feed is of another kind', async () => {
    give({});
    await feeds.offer('planes', PLANES);
    give({ kind: 'ais' });
    expect(feeds.take('planes', true)).toBe('');
  });
});

describe('the file of feeds', () => {
  it('is readable by its owner only, is none at first, and is refused when it is damaged', async () => {
    const files = new FeedFiles(directory);
    expect([await files.list(), await files.report()]).toEqual([[], undefined]);
    await files.write([FEED, { ...FEED, name: 'another' }]);
    expect((await files.list()).map(({ name }) => name)).toEqual(['another', 'planes']);
    expect(statSync(join(directory, 'feeds/feeds.json')).mode & 0o777).toBe(0o600);
    writeFileSync(join(directory, 'feeds/feeds.json'), '{"feeds":[{}]}');
    await expect(files.list()).rejects.toThrow(/feeds\.json is damaged/);
  });

  it.each(['{', '{"at":"yesterday"}'])('has no report beside it while that is %s', async (text) => {
    const report = join(directory, 'feeds/report.json');
    mkdirSync(join(directory, 'feeds'));
    writeFileSync(report, text);
    expect(await new FeedFiles(directory).report()).toBeUndefined();
    rmSync(report);
    mkdirSync(report);
    await expect(new FeedFiles(directory).report()).rejects.toThrow(/report\.json/);
  });
});
