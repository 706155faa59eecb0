// Video feeds and injectors on a real PostgreSQL, each within its groups.

import { strFromU8, strToU8, unzipSync, zipSync } from 'fflate';
import { SaxesParser } from 'saxes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CoreCaller } from '../model/parts.ts';
import { reportStore } from '../store/reports.ts';
import { injectorStore, videoConnections } from '../store/services.ts';
import { Injectors } from '../stream/injectors.ts';
import { ADA, BOB, callsWorld, EVE, RON, wellFormed } from './core-client-calls-world.ts';
import { coreTables } from './core-tables.ts';
import { ADMIN } from './fake-core-admin.ts';

const core = coreTables();
const injectors = new Injectors();
let world: ReturnType<typeof callsWorld>;
beforeAll(() => {
  world = callsWorld(core.sql, (run) => ({
    reports: reportStore(run),
    video: videoConnections(run),
    injectorStore: injectorStore(run),
    injectors,
  }));
});
afterAll(() => world?.end());

const headers = { 'content-type': 'application/json' };
const ask = (method: string, path: string, as: CoreCaller, json?: unknown) =>
  world.ask(method, path, { as, ...(json === undefined ? {} : { json, headers }) });

describe('a video connection', () => {
  const VIDEO = '/Marti/api/video';
  const camera = (uuid: string, url = 'rtsp://camera.example.org:8554/live?x=1') => ({
    uuid,
    active: true,
    alias: `<Cam> & ${uuid}`,
    feeds: [{ uuid: `${uuid}-f`, active: true, alias: 'F & <1>', url }],
  });
  const add = (body: object, as = ADA, query = '') => ask('POST', `${VIDEO}${query}`, as, { videoConnections: [body] });

  it('is added, listed, read, changed and deleted by its owner, and seen by its groups alone', async () => {
    expect((await add(camera('one'), ADA, '?group=Ops')).status).toBe(200);
    const read = await ask('GET', `${VIDEO}/one`, BOB);
    expect([read.status, read.type]).toEqual([200, 'application/json']);
    expect(read.body).toMatchObject({
      uuid: 'one',
      alias: '<Cam> & one',
      feeds: [{ url: 'rtsp://camera.example.org:8554/live?x=1', order: null }],
    });
    const uuids = async (as: CoreCaller, query = '') =>
      (await ask('GET', `${VIDEO}${query}`, as)).body.videoConnections.map(({ uuid }: { uuid: string }) => uuid);
    expect([await uuids(BOB), await uuids(EVE), await uuids(ADMIN)]).toEqual([['one'], [], ['one']]);
    expect([await uuids(BOB, '?protocol=rtsp'), await uuids(BOB, '?protocol=srt')]).toEqual([['one'], []]);
    const xml = await ask('GET', '/Marti/vcm', BOB);
    const texts: string[] = [];
    const parser = new SaxesParser();
    parser.on('text', (text) => void texts.push(text));
    parser.on('error', (error) => {
      throw error;
    });
    parser.write(xml.text).close();
    expect(texts).toEqual(expect.arrayContaining(['rtsp', 'F & <1>', 'camera.example.org', '8554', '/live?x=1']));
    expect((await ask('GET', '/Marti/vcm', EVE)).text).not.toContain('<feed>');
    for (const [method, body] of [
      ['PUT', camera('one')],
      ['DELETE', undefined],
    ] as const) {
      expect((await ask(method, `${VIDEO}/one`, BOB, body)).status).toBe(403);
      expect((await ask(method, `${VIDEO}/one`, EVE, body)).status).toBe(404);
      expect((await ask(method, `${VIDEO}/one`, RON, body)).status).toBe(403);
    }
    expect((await add(camera('one'), EVE)).status).toBe(409);
    expect((await ask('PUT', `${VIDEO}/one`, ADA, { ...camera('other'), alias: 'New' })).status).toBe(200);
    expect((await ask('GET', `${VIDEO}/one`, BOB)).body).toMatchObject({ uuid: 'one', alias: 'New' });
    expect((await ask('DELETE', `${VIDEO}/one`, ADA)).status).toBe(200);
    expect((await ask('GET', `${VIDEO}/one`, ADA)).status).toBe(404);
  });

  it('is added as XML too, each feed as its own', async () => {
    const xml = `<videoConnections><feed><protocol>rtsp</protocol><alias>A &amp; B</alias><uid>x-1</uid><address>cam</address><port>554</port><path>live</path></feed></videoConnections>`;
    const post = (body: string) => world.ask('POST', '/Marti/vcm', { as: ADA, body });
    expect((await post(xml)).status).toBe(200);
    expect((await ask('GET', `${VIDEO}/x-1`, BOB)).body.feeds[0]).toMatchObject({
      alias: 'A & B',
      url: 'rtsp://cam:554/live',
    });
    expect((await ask('DELETE', '/Marti/vcm?id=x-1', BOB)).status).toBe(403);
    expect((await ask('DELETE', '/Marti/vcm?id=x-1', ADA)).status).toBe(200);
    for (const bad of [
      '',
      '<a>',
      `<!DOCTYPE x>${xml}`,
      '<videoConnections/>',
      xml.replace('rtsp', 'javascript'),
      'x'.repeat(300_000),
    ])
      expect((await post(bad)).status).toBeGreaterThanOrEqual(400);
  });

  it('never holds credentials, a URL of another kind, or more than the limits', async () => {
    for (const url of [
      'rtsp://user:secret@cam/live',
      'javascript:alert(1)',
      'file:///etc/passwd',
      'no url',
      `rtsp://x/${'y'.repeat(2000)}`,
    ]) {
      const { status, text } = await add(camera('bad', url));
      expect(status).toBe(400);
      expect(text).not.toContain('secret');
    }
    for (const body of [
      {},
      { ...camera('x'), feeds: [] },
      { ...camera('x'), alias: '' },
      { ...camera('x'), alias: 'a\u0000' },
      { ...camera('x'), feeds: 7 },
    ])
      expect((await add(body)).status).toBe(400);
    expect((await add(camera('x'), ADA, '?group=Med')).status).toBe(403);
    expect((await add(camera('x'), RON)).status).toBe(403);
    expect((await core.sql`SELECT FROM video_connection`).count).toBe(0);
  });
});

describe('an injector', () => {
  const PATH = '/Marti/api/injectors/cot/uid';
  const one = { uid: 'u-1', toInject: 'note text="a"' };

  it('is set, listed and taken away by administrators, and counts at once', async () => {
    const replaced: unknown[] = [];
    const replace = injectors.replace.bind(injectors);
    injectors.replace = (all) => {
      replaced.push(all);
      replace(all);
    };
    expect((await ask('POST', PATH, ADMIN, one)).body).toMatchObject({ type: 'InjectorConfig', data: [one] });
    expect((await ask('GET', PATH, ADMIN)).body.data).toEqual([one]);
    expect((await ask('GET', `${PATH}/u-1`, ADMIN)).body.data).toEqual([one]);
    expect((await ask('GET', `${PATH}/u-2`, ADMIN)).body.data).toEqual([]);
    const query = `?uid=u-1&toInject=${encodeURIComponent(one.toInject)}`;
    expect((await ask('DELETE', `${PATH}${query}x`, ADMIN)).status).toBe(404);
    expect((await ask('DELETE', `${PATH}${query}`, ADMIN)).status).toBe(200);
    expect(replaced).toEqual([[one], []]);
    for (const method of ['GET', 'POST', 'DELETE'])
      expect((await ask(method, PATH, ADA, method === 'POST' ? one : undefined)).status).toBe(403);
    for (const body of [
      7,
      {},
      { uid: 'u' },
      { uid: '', toInject: 'a' },
      { uid: 'u', toInject: '<a/>' },
      { uid: 'u', toInject: 'marti' },
    ])
      expect((await ask('POST', PATH, ADMIN, body)).status).toBe(400);
  });
});

describe('a report', () => {
  const PATH = '/Marti/api/citrap';
  const xml = (id: string, title = 'Smoke &amp; fire') =>
    `<?xml version="1.0"?><report ${id === '' ? '' : `id="${id}" `}type="fire" title="${title}" userCallsign="ADA" dateTime="2026-11-22T10:00:00.000Z" location="POINT (11.5 48.1)"><section title="s"/></report>`;
  const packed = (text: string) => zipSync({ 'TrapReport.xml': strToU8(text), 'a.jpg': strToU8('jpg') });
  const send = (body: Uint8Array<ArrayBuffer>, as = ADA, query = '?clientUid=u') =>
    world.ask('POST', `${PATH}${query}`, { as, body });
  const found = async (query = '', as = ADA): Promise<string[]> =>
    (await world.ask('GET', `${PATH}${query}`, { as })).body.map(({ id }: { id: string }) => id);
  const one = (method: string, id: string, as = ADA, more: object = {}) =>
    world.ask(method, `${PATH}/${id}?clientUid=u`, { as, ...more });

  it('is sent, found, read, changed and deleted within its groups', async () => {
    expect(await send(packed(xml('r-1')))).toMatchObject({ status: 201, body: { id: 'r-1' } });
    expect([await found('', BOB), await found('', EVE)]).toEqual([['r-1'], []]);
    expect((await world.ask('GET', PATH, { as: BOB })).body[0]).toMatchObject({ title: 'Smoke & fire', status: null });
    const read = await one('GET', 'r-1', BOB);
    expect([read.type, Object.keys(unzipSync(read.bytes)).toSorted()]).toEqual([
      'application/zip',
      ['TrapReport.xml', 'a.jpg'],
    ]);
    const headers = { accept: 'application/xml' };
    wellFormed((await one('GET', 'r-1', BOB, { headers })).text);
    wellFormed((await world.ask('GET', PATH, { as: BOB, headers })).text);
    for (const method of ['PUT', 'DELETE']) {
      expect((await one(method, 'r-1', BOB, { body: packed(xml('r-1')) })).status).toBe(403);
      expect((await one(method, 'r-1', EVE, { body: packed(xml('r-1')) })).status).toBe(404);
    }
    expect((await send(packed(xml('r-1')), EVE)).status).toBe(409);
    expect((await send(packed(xml('r-1', 'Again')))).status).toBe(201);
    const change = { headers: { 'content-type': 'application/xml' }, body: xml('', 'Third') };
    expect((await one('PUT', 'r-1', ADA, change)).status).toBe(200);
    const attach = (name: string, as = ADA) =>
      world.ask('POST', `${PATH}/r-1/attachment?clientUid=u`, {
        as,
        headers: { 'content-disposition': `attachment; filename="${name}"` },
        body: 'more',
      });
    expect([(await attach('b.txt')).status, (await attach('c.txt', BOB)).status]).toEqual([200, 403]);
    expect([(await attach('../x.xml')).status, (await attach('')).status]).toEqual([400, 400]);
    const files = unzipSync((await one('GET', 'r-1')).bytes);
    expect(Object.keys(files).toSorted()).toEqual(['TrapReport.xml', 'a.jpg', 'b.txt']);
    expect(strFromU8(files['TrapReport.xml'] ?? new Uint8Array())).toContain('title="Third"');
    expect((await one('DELETE', 'r-1')).status).toBe(200);
    expect((await one('GET', 'r-1')).status).toBe(404);
  });

  it('is found by words, type, callsign, time and place', async () => {
    const { body } = await send(packed(xml('')));
    for (const query of [
      '?keywords=none,SMOKE',
      '?type=fire',
      '?callsign=ADA',
      '?startTime=2026-11-22T09:00:00Z&endTime=2026-11-22T11:00:00Z',
      '?bbox=11,48,12,49',
      '?bbox=170,0,12,49',
      '?maxReportCount=1',
    ])
      expect([query, await found(query)]).toEqual([query, [body.id]]);
    for (const query of [
      '?keywords=none',
      '?type=flood',
      '?callsign=BOB',
      '?startTime=2026-11-22T11:00:00Z',
      '?bbox=12,48,13,49',
      '?bbox=170,0,-170,49',
      '?maxReportCount=0',
    ])
      expect([query, await found(query)]).toEqual([query, []]);
    for (const query of ['?bbox=1,2,3', '?startTime=x', '?maxReportCount=x', '?keywords=%00'])
      expect((await world.ask('GET', `${PATH}${query}`, { as: ADA })).status).toBe(400);
    await one('DELETE', body.id);
  });

  /** Its first file says that it has a hundred megabytes. */
  function claimsMuch(zip: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    const bytes = Buffer.from(zip);
    bytes.writeUInt32LE(100 * 1024 * 1024, bytes.indexOf('PK\u0001\u0002') + 24);
    return new Uint8Array(bytes);
  }

  it('is refused if it is none, or too much', async () => {
    for (const bytes of [
      strToU8('x'),
      zipSync({ 'a.txt': strToU8('a') }),
      packed('<report'),
      packed('<!DOCTYPE report><report/>'),
      packed('<reports><report/></reports>'),
      packed(xml('a&#1;')),
      packed(xml('x'.repeat(200))),
      claimsMuch(packed(xml('r'))),
    ])
      expect((await send(bytes)).status).toBe(400);
    expect((await send(packed(xml('r')), ADA, '')).status).toBe(400);
    expect((await send(packed(xml('r')), RON)).status).toBe(403);
    expect((await send(new Uint8Array(21 * 1024 * 1024))).status).toBe(413);
    expect((await core.sql`SELECT FROM ci_trap`).count).toBe(0);
  });
});

it('the repeater is read and set by administrators, and ended by no page of another site', async () => {
  expect((await ask('GET', '/Marti/api/repeater/list', ADMIN)).body.data).toEqual([]);
  expect((await ask('GET', '/Marti/api/repeater/period', ADMIN)).body.data).toBe(10_000);
  expect((await ask('POST', '/Marti/api/repeater/period', ADMIN, 5_000)).status).toBe(200);
  expect((await ask('GET', '/Marti/api/repeater/period', ADMIN)).body.data).toBe(5_000);
  for (const bad of [0, 'x', 1.5, null, 1e9])
    expect((await ask('POST', '/Marti/api/repeater/period', ADMIN, bad)).status).toBe(400);
  expect((await ask('GET', '/Marti/api/repeater/remove/none', ADMIN)).body.data).toBe(false);
  const foreign = { 'sec-fetch-site': 'cross-site' };
  expect((await world.ask('GET', '/Marti/api/repeater/remove/none', { headers: foreign })).status).toBe(403);
});
