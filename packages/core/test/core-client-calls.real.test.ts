// The calls of open clients on a real PostgreSQL: history by uid and time, each within its groups.

import { strFromU8, unzipSync } from 'fflate';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventXml, XML_HEAD } from '../model/stored-event.ts';
import type { ArchivedEvent, CotEvent, ServerEvent } from '../model/stream.ts';
import { cotWriter } from '../store/cot-events.ts';
import { errorLogStore } from '../store/error-logs.ts';
import { GroupVectors } from '../store/groups.ts';
import { profileStore } from '../store/profiles.ts';
import { LargeEvents } from '../stream/large-events.ts';
import { readEvent } from '../stream/wire/xml-event.ts';
import { deliveryOf } from '../stream/wire/xml-write-event.ts';
import { ADA, BOB, callsWorld, EVE, RON, wellFormed } from './core-client-calls-world.ts';
import { deviceCalls } from './core-device-calls-contract.ts';
import { coreTables } from './core-tables.ts';
import { ADMIN, type AdminAnswer, START } from './fake-core-admin.ts';
import { cot } from './fake-cot-stream.ts';

const core = coreTables();
const large = new LargeEvents({ apiUrl: 'https://cot.example.org:8443', now: () => new Date(START) });
let world: ReturnType<typeof callsWorld>;
const marked: ArchivedEvent[] = [];
const told: { places: readonly number[]; event: ServerEvent }[] = [];
let ops: number[] = [];
let med: number[] = [];

beforeAll(async () => {
  world = callsWorld(core.sql, (run) => ({
    largeEvents: large,
    profiles: profileStore(run),
    errorLogs: errorLogStore(run),
    trackWriter: cotWriter(run, new GroupVectors(run)),
    archive: { store: (event) => void marked.push(event) },
    toPlaces: (places, event) => void told.push({ places, event }),
  }));
  [ops, med] = [await world.placesOf('Ops'), await world.placesOf('Med')];
});
afterAll(() => world?.end());
beforeEach(async () => {
  await core.sql`WITH events AS (DELETE FROM cot_router) DELETE FROM cot_router_chat`;
});

const at = (n: number): number => START + n * 1000;
const report = (uid: string, n: number, places = ops, input: Partial<ArchivedEvent> = {}): Partial<ArchivedEvent> => ({
  uid,
  receivedAtMs: at(n),
  places,
  detail: `<detail><contact callsign="n${n}"/></detail>`,
  ...input,
});
const callsigns = ({ text }: AdminAnswer): string[] =>
  [...text.matchAll(/callsign="([^"]*)"/g)].map(([, name = '']) => name);
const nextOf = ({ headers }: AdminAnswer): string | undefined =>
  /^<(.*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];

describe('the newest event of a uid', () => {
  const path = '/Marti/api/cot/xml/';

  it('is one event, of those that the caller may see', async () => {
    await world.stored(report('u 1/é', 1), report('u 1/é', 2), report('u 1/é', 3, med));
    const found = await world.ask('GET', `${path}${encodeURIComponent('u 1/é')}`, { as: ADA });
    expect([found.status, found.type, callsigns(found)]).toEqual([200, 'application/xml', ['n2']]);
    wellFormed(found.text);
    expect(callsigns(await world.ask('GET', `${path}u%201%2F%C3%A9`, { as: EVE }))).toEqual(['n3']);
    expect(callsigns(await world.ask('GET', `${path}u%201%2F%C3%A9`, { as: ADMIN }))).toEqual(['n3']);
  });

  it('is none of a uid that nobody has, and the same none of another group', async () => {
    await world.stored(report('secret', 1, med), report('alone', 1, []));
    for (const uid of ['nobody', 'secret', 'alone', "x' OR 1=1--", '%3Cscript%3E', '..%2F..'])
      expect(await world.ask('GET', `${path}${uid}`, { as: ADA })).toMatchObject({ status: 404, text: '' });
    expect(await world.ask('GET', `${path}${'u'.repeat(2000)}`, { as: ADA })).toMatchObject({ status: 400 });
    expect(await world.ask('GET', `${path}a%00b`, { as: ADA })).toMatchObject({ status: 400 });
  });

  it('is chat too', async () => {
    const chat = { senderCallsign: 'A', destCallsign: null, destUids: [null], content: 'hi', room: 'All' };
    await world.stored(report('c', 1, ops, { type: 'b-t-f', chat }));
    expect(callsigns(await world.ask('GET', `${path}c`, { as: BOB }))).toEqual(['n1']);
    expect((await world.ask('GET', `${path}c`, { as: EVE })).status).toBe(404);
  });

  it('is what the pointer has promised, before it is stored, and the same bytes afterwards', async () => {
    const frame = cot('line', 'u-d-f', `<remarks>a&amp;b ü</remarks><x>${'y'.repeat(70_000)}</x>`).replace(
      'lat="1.5" lon="2.5" hae="3"',
      'lat="1.123456789012" lon="-2.1e-3" hae="12.10"',
    );
    const delivery = deliveryOf(readEvent(Buffer.from(frame)) as CotEvent, { time: '2026-11-22T05:30:00Z', tag: 'T' });
    const promised = `${XML_HEAD}${eventXml(delivery.stored())}`;
    large.pointerTo(delivery.stored(), ['bob'], 'ada');
    expect((await world.ask('GET', `${path}line`, { as: BOB })).text).toBe(promised);
    expect((await world.ask('GET', `${path}line`, { as: ADA })).status).toBe(404);
    const event = readEvent(Buffer.from(frame)) as CotEvent;
    await world.stored(
      report('line', 0, ops, {
        type: 'u-d-f',
        how: event.how,
        time: '2026-11-22T05:30:00Z',
        start: event.start,
        stale: event.stale,
        point: event.point,
        detail: delivery.detail(),
      }),
    );
    expect((await world.ask('GET', `${path}line`, { as: ADA })).text).toBe(promised);
    await world.stored(report('line', 60));
    expect(callsigns(await world.ask('GET', `${path}line`, { as: BOB }))).toEqual(['n60']);
  });
});

describe('the history of a uid', () => {
  const path = '/Marti/api/cot/xml/u/all';

  it('is newest first, of a time, within the groups', async () => {
    await world.stored(...[1, 2, 3, 4, 5].map((n) => report('u', n, n === 3 ? med : ops)), report('v', 2));
    const all = await world.ask('GET', path, { as: ADA });
    expect([all.status, callsigns(all), nextOf(all)]).toEqual([200, ['n5', 'n4', 'n2', 'n1'], undefined]);
    wellFormed(all.text);
    const iso = (n: number): string => encodeURIComponent(new Date(at(n)).toISOString());
    expect(callsigns(await world.ask('GET', `${path}?start=${iso(2)}&end=${iso(4)}`, { as: ADMIN }))).toEqual([
      'n4',
      'n3',
      'n2',
    ]);
    world.later(6_000);
    expect(callsigns(await world.ask('GET', `${path}?secago=2`, { as: ADA }))).toEqual(['n5', 'n4']);
    world.later(-6_000);
    expect(await world.ask('GET', `${path}?start=${iso(9)}`, { as: ADA })).toMatchObject({ status: 404, text: '' });
  });

  it('has pages that miss nothing and repeat nothing, also over what may not be seen and equal times', async () => {
    const many = Array.from({ length: 60 }, (_, n) =>
      report('u', Math.floor(n / 7), n % 5 === 0 ? ops : med, {
        detail: `<detail><contact callsign="e${n}"/></detail>`,
      }),
    );
    await world.stored(...many);
    const seen: string[] = [];
    let pages = 0;
    for (let next: string | undefined = `${path}?limit=3`; next !== undefined; pages++) {
      const page: AdminAnswer = await world.ask('GET', next, { as: ADA });
      seen.push(...callsigns(page));
      next = nextOf(page);
    }
    expect(seen).toEqual([55, 50, 45, 40, 35, 30, 25, 20, 15, 10, 5, 0].map((n) => `e${n}`));
    expect(pages).toBeLessThan(12);
  });

  it.each([
    'start=yesterday',
    'end=x',
    'limit=0',
    'limit=x',
    'secago=-1',
    'before=1;--',
    'start=2026-11-23&end=2026-11-22',
  ])('refuses ?%s', async (query) => {
    expect(await world.ask('GET', `${path}?${query}`, { as: ADA })).toMatchObject({ status: 400, body: { code: 2 } });
  });
});

describe('the situation of a time', () => {
  const query = (from: number, to: number, more = ''): string =>
    `/Marti/api/cot/sa?start=${encodeURIComponent(new Date(at(from)).toISOString())}&end=${encodeURIComponent(new Date(at(to)).toISOString())}${more}`;

  it('is positions and chat of the groups of the caller; everything with isFiltered=false', async () => {
    const point = { lat: 10, lon: 179, hae: 0, ce: 1, le: 1 };
    await world.stored(
      report('a', 1),
      report('b', 2, ops, { type: 'u-d-f' }),
      report('c', 3, med),
      report('d', 4, ops, { point }),
      report('e', 99),
    );
    const hear = async (text: string) => callsigns(await world.ask('GET', text, { as: ADA }));
    expect(await hear(query(0, 10))).toEqual(['n4', 'n1']);
    expect(await hear(query(0, 10, '&isFiltered=false'))).toEqual(['n4', 'n2', 'n1']);
    expect(await hear(query(0, 10, '&left=170&bottom=0&right=-170&top=20'))).toEqual(['n4']);
    expect(await hear(query(0, 10, '&left=11&bottom=48&right=12&top=49'))).toEqual(['n1']);
    expect(callsigns(await world.ask('GET', query(0, 10), { as: EVE }))).toEqual(['n3']);
    expect(await world.ask('GET', query(20, 30), { as: ADA })).toMatchObject({ status: 404, text: '' });
  });

  it('takes the microseconds of PyTAK, and at most a day', async () => {
    await world.stored(report('a', 1));
    const text = '/Marti/api/cot/sa?start=2026-11-22T10:20:30.000000Z&end=2026-11-22T10:20:40.123456Z';
    expect(callsigns(await world.ask('GET', text, { as: ADA }))).toEqual(['n1']);
    for (const wrong of [
      query(0, 90_000),
      query(10, 0),
      '/Marti/api/cot/sa',
      query(0, 1, '&left=x&bottom=0&right=0&top=0'),
    ])
      expect((await world.ask('GET', wrong, { as: ADA })).status).toBe(400);
  });
});

it('the limit of uploads is what the server has, in megabytes', async () => {
  const answer = await world.ask('GET', '/files/api/config', { as: ADA });
  expect([answer.type, answer.text]).toEqual([
    'application/json',
    `{"uploadSizeLimit":${Math.floor(world.options.spool.maxBytes / 2 ** 20)}}`,
  ]);
});

describe('tracks as KML', () => {
  const iso = (n: number): string => new Date(at(n)).toISOString();
  const path = `/Marti/ExportMissionKML?startTime=${iso(0)}&endTime=${iso(9_000)}`;
  const tracks = (kml: string): string[] =>
    [...kml.matchAll(/<Placemark><name>(.*?)<\/name>[^]*?<\/Placemark>/g)].map(
      ([whole, name]) => `${name} ${whole.match(/<when>/g)?.length}`,
    );

  it('are those of the groups of the caller, cut where they pause', async () => {
    const chat = { senderCallsign: 'A', destCallsign: null, destUids: [null], content: 'x', room: 'All' };
    await world.stored(
      ...[1, 2, 3, 700, 701].map((n) =>
        report('u', n, ops, { detail: '<detail><contact callsign="A &lt;b&gt;"/></detail>' }),
      ),
      report('v', 5, med),
      report('file', 6, ops, { type: 'b-f-t-r' }),
      report('chat', 7, ops, { type: 'b-t-f', chat }),
    );
    const whole = await world.ask('GET', path, { as: ADA });
    expect([whole.status, whole.type, tracks(whole.text)]).toEqual([
      200,
      'application/vnd.google-earth.kml+xml',
      ['A &lt;b&gt; 5'],
    ]);
    wellFormed(whole.text);
    const cut = await world.ask('GET', `${path}&uid=u&multiTrackThreshold=10&extendedData=true&format=kmz`, {
      as: ADA,
    });
    expect(cut.type).toBe('application/vnd.google-earth.kmz');
    expect(tracks(strFromU8(unzipSync(cut.bytes)['doc.kml'] ?? new Uint8Array()))).toEqual([
      'A &lt;b&gt; 3',
      'A &lt;b&gt; 2',
    ]);
    expect(tracks((await world.ask('GET', path, { as: EVE })).text)).toEqual(['n5 1']);
    const form = new URLSearchParams({
      startTime: iso(0),
      endTime: iso(9_000),
      groups: 'Med',
      format: 'kml',
    }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    expect(tracks((await world.ask('POST', '/Marti/ExportMissionKML', { body: form, headers })).text)).toEqual([
      'n5 1',
    ]);
    expect((await world.ask('POST', '/Marti/ExportMissionKML', { as: ADA, body: form, headers })).status).toBe(403);
    for (const wrong of [
      '&format=exe',
      '&interval=-1',
      '&multiTrackThreshold=x',
      '&uid=a%00',
      `&uid=${'u'.repeat(2_000)}`,
    ])
      expect((await world.ask('GET', `${path}${wrong}`, { as: ADA })).status).toBe(400);
    expect((await world.ask('GET', `/Marti/ExportMissionKML?startTime=soon`, { as: ADA })).status).toBe(400);
  });

  it('come back as history, once, whatever is in them', async () => {
    const point = (n: number, coord: string) => [`<when>${iso(-n)}</when>`, `<gx:coord>${coord}</gx:coord>`] as const;
    const given = [
      point(10, '11.5 48.1 500'),
      point(20, '11.6 48.2 501'),
      point(30, '999 48.2 0'),
      point(-999_999, '1 1 1'),
      point(40, 'x'),
    ];
    const kml = `<kml><Placemark><gx:Track>${given.map(([when]) => when).join('')}${given.map(([, coord]) => coord).join('')}</gx:Track></Placemark></kml>`;
    const send = (as = ADA, body = kml) =>
      world.ask('POST', '/Marti/TracksKML?uid=t&callsign=A%3C%22%3E&cotType=a-f-G&groupName=Cyan&groupRole=HQ', {
        as,
        body,
      });
    expect(await send()).toMatchObject({ status: 200, text: '' });
    expect((await send()).status).toBe(200);
    const history = await world.ask('GET', '/Marti/api/cot/xml/t/all', { as: BOB });
    expect(callsigns(history)).toEqual(['A&lt;&quot;&gt;', 'A&lt;&quot;&gt;']);
    wellFormed(history.text);
    expect(history.text).toContain('lat="48.1" lon="11.5" hae="500"');
    expect((await world.ask('GET', '/Marti/api/cot/xml/t', { as: EVE })).status).toBe(404);
    for (const body of ['', '<kml/>', 'x'.repeat(300_000)]) expect((await send(ADA, body)).status).toBe(400);
    expect((await send(RON)).status).toBe(403);
    expect((await world.ask('POST', '/Marti/TracksKML', { as: ADA, body: kml })).status).toBe(400);
  });

  it('a place that somebody reports goes to their groups and is stored', async () => {
    const send = (query: string, as = ADA) => world.ask('POST', `/locate/api?${query}`, { as });
    expect((await send('latitude=48.1&longitude=11.5&name=%3CLost%3E&remarks=a%26b')).status).toBe(200);
    expect(told).toMatchObject([{ places: ops, event: { type: 'a-u-G', point: { lat: 48.1, lon: 11.5 } } }]);
    expect(told[0]?.event.detail).toContain('callsign="&lt;Lost&gt; (ada)"');
    expect(marked).toMatchObject([
      { sender: 'ada', places: ops, uid: told[0]?.event.uid, detail: `<detail>${told[0]?.event.detail}</detail>` },
    ]);
    for (const query of [
      'latitude=91&longitude=1&name=x',
      'latitude=1&longitude=1',
      'latitude=a&longitude=1&name=x',
      'latitude=1&longitude=1&name=%00',
    ])
      expect((await send(query)).status).toBe(400);
    expect((await send('latitude=1&longitude=1&name=x', RON)).status).toBe(403);
    expect(told).toHaveLength(1);
  });
});

deviceCalls(() => ({ world, sql: core.sql }));
