// What missions are made of, on a real PostgreSQL: layers, links, and packages in both directions.

import { strToU8, unzipSync, zipSync } from 'fflate';
import { SaxesParser } from 'saxes';
import { describe, expect, it } from 'vitest';
import type { CoreCaller } from '../model/parts.ts';
import { ADA, BASE, BOB, EVE, missionSteps, named, RON } from './core-missions-world-contract.ts';
import { coreTables } from './core-tables.ts';
import { ADMIN } from './fake-core-admin.ts';

const core = coreTables();
const { world, ask, status, changesOf, noticeTypes } = missionSteps(core);

describe('layers', () => {
  const layers = (mission: string, rest = '') => named(mission, `/layers${rest}`);
  const add = async (mission: string, query: string, as?: CoreCaller) =>
    (await ask('PUT', `${layers(mission)}?creatorUid=u&${query}`, { ...(as && { as }) })).body?.data;
  const tree = async (mission: string) => (await ask('GET', layers(mission))).body.data;
  const names = async (mission: string) => (await tree(mission)).map(({ name }: { name: string }) => name);

  it('are folders with an order, names and parents; contents are filed in them and go with them', async () => {
    const { guid } = await world().make('Folders');
    const hash = await world().addFile('map.png');
    await add('Folders', 'name=One&type=UID&uid=l-1');
    await add('Folders', 'name=Two&type=CONTENTS&uid=l-2&afterUid=l-1');
    await add('Folders', 'name=<Zero>&type=GROUP&uid=l-0');
    expect(await names('Folders')).toEqual(['<Zero>', 'One', 'Two']);
    expect(noticeTypes()).toEqual(['t-x-m-c-h', 't-x-m-c-h', 't-x-m-c-h']);
    expect(changesOf()[2]?.event.detail).toContain('<missionLayer><name>&lt;Zero&gt;</name><type>GROUP</type>');
    await ask('PUT', `${layers('Folders', '/l-0/position')}?afterUid=l-2&creatorUid=u`);
    await ask('PUT', `${BASE}/guid/${guid}/layers/l-2/name?name=Files&creatorUid=u`);
    expect(await names('Folders')).toEqual(['One', 'Files', '<Zero>']);
    await ask('PUT', `${layers('Folders', '/parent')}?layerUid=l-1&layerUid=l-2&parentUid=l-0&creatorUid=u`);
    expect(await tree('Folders')).toMatchObject([
      { uid: 'l-0', mission_layers: [{ uid: 'l-1', parentUid: 'l-0' }, { uid: 'l-2' }] },
    ]);
    const put = await world().put('Folders', { paths: { 'l-1': [{ uids: ['a', 'b'] }], 'l-2': [{ hashes: [hash] }] } });
    expect(put.status).toBe(200);
    expect((await ask('GET', layers('Folders', '/l-1'))).body.data.uids).toMatchObject([{ data: 'a' }, { data: 'b' }]);
    expect((await ask('GET', layers('Folders', '/l-2'))).body.data.contents).toMatchObject([{ data: { hash } }]);
    await world().put('Folders', { paths: { 'l-1': [{ uids: ['b'] }] } });
    expect((await ask('GET', layers('Folders', '/l-1'))).body.data.uids).toMatchObject([{ data: 'b' }, { data: 'a' }]);
    await ask('DELETE', `${named('Folders', '/contents')}?uid=a`);
    expect((await ask('GET', layers('Folders', '/l-1'))).body.data.uids).toHaveLength(1);
    await ask('DELETE', `${layers('Folders')}?uid=l-0&creatorUid=u`);
    expect(await tree('Folders')).toEqual([]);
    const [mission] = (await ask('GET', named('Folders'))).body.data;
    expect([mission.uids, mission.contents]).toEqual([[], []]);
  });

  it('refuse strangers, readers, circles, and what is no layer', async () => {
    await world().make('Strict', 'defaultRole=MISSION_READONLY_SUBSCRIBER');
    await add('Strict', 'name=A&type=GROUP&uid=a');
    await add('Strict', 'name=B&type=GROUP&uid=b&parentUid=a');
    expect(await status('GET', layers('Strict'), EVE)).toBe(404);
    expect(await status('GET', layers('Strict'), BOB)).toBe(200);
    for (const [method, rest] of [
      ['PUT', '?name=C&type=GROUP'],
      ['DELETE', '?uid=a'],
      ['PUT', '/a/name?name=x'],
      ['PUT', '/a/position'],
      ['PUT', '/parent?layerUid=a'],
    ] as const) {
      expect(await status(method, layers('Strict', rest), BOB)).toBe(403);
      expect(await status(method, layers('Strict', rest), EVE)).toBe(404);
    }
    expect(await status('PUT', layers('Strict', '/parent?layerUid=a&parentUid=b'))).toBe(400);
    expect(await status('PUT', layers('Strict', '/parent?layerUid=a&parentUid=a'))).toBe(400);
    for (const rest of [
      '/none/name?name=x',
      '/none/position',
      '/parent?layerUid=none',
      '?name=C&type=GROUP&parentUid=none',
    ])
      expect(await status('PUT', layers('Strict', rest))).toBe(404);
    for (const rest of [
      '?name=C&type=ITEM',
      '?name=C&type=x',
      '?type=GROUP',
      '/parent',
      `?name=${'x'.repeat(256)}&type=UID`,
    ])
      expect(await status('PUT', layers('Strict', rest))).toBe(400);
    expect(await status('GET', layers('Strict', '/none'))).toBe(404);
    expect(await tree('Strict')).toMatchObject([{ uid: 'a', mission_layers: [{ uid: 'b' }] }]);
    let last = 'b';
    for (let depth = 0; depth < 25; depth++) {
      const made = await add('Strict', `name=D&type=GROUP&uid=d${depth}&parentUid=${last}`);
      if (made === undefined) break;
      last = `d${depth}`;
    }
    expect(last).toBe('d18');
  });
});

describe('links of a mission', () => {
  it('are parents and children, never in a circle, and only what the reader sees', async () => {
    const up = await world().make('Up');
    const down = await world().make('Down');
    await world().make('Secret', 'inviteOnly=true');
    await world().make('Of others', '', EVE);
    expect(await status('PUT', named('Down', '/parent/Up'))).toBe(200);
    expect(await status('PUT', named('Secret', '/parent/Up'))).toBe(200);
    expect((await ask('GET', named('Down', '/parent'), { as: BOB })).body.data.guid).toBe(up.guid);
    const children = async (as: CoreCaller) =>
      (await ask('GET', `${BASE}/guid/${up.guid}/children`, { as })).body.data.map(
        ({ name }: { name: string }) => name,
      );
    expect(await children(ADA)).toEqual(['Down', 'Secret']);
    expect(await children(BOB)).toEqual(['Down']);
    expect(await status('PUT', `${BASE}/guid/${up.guid}/parent/guid/${down.guid}`)).toBe(400);
    expect(await status('PUT', named('Up', '/parent/Up'))).toBe(400);
    expect(await status('PUT', named('Down', '/parent/Of%20others'))).toBe(404);
    expect(await status('PUT', named('Of others', '/parent/Up'), EVE)).toBe(404);
    expect(await status('DELETE', named('Down', '/parent'), EVE)).toBe(404);
    expect(await status('DELETE', named('Down', '/parent'))).toBe(200);
    expect(await status('GET', named('Down', '/parent'))).toBe(404);
  });

  it('are external data, feeds and map layers, in the mission, its changes and on the stream', async () => {
    await world().make('Hung');
    const post = (rest: string, json?: unknown, as?: CoreCaller) =>
      status('POST', `${named('Hung', rest)}creatorUid=u`, as, json);
    const external = {
      uid: 'x-1',
      name: 'Board',
      tool: 'ops',
      urlData: 'https://x/d',
      urlView: 'https://x/v',
      notes: 'a & b',
    };
    expect(await post('/externaldata?', external)).toBe(201);
    expect(noticeTypes()).toEqual(['t-x-m-c-e']);
    expect(changesOf()[0]?.event.detail).toContain('<externalData><name>Board</name>');
    expect(
      (await ask('POST', `${named('Hung', '/externaldata/x-1/change')}?creatorUid=u&notes=n`, { body: 'token 1' }))
        .status,
    ).toBe(200);
    expect(await post('/feed?dataFeedUid=f-1&filterPolygon=1,2&filterCotTypes=%5B%22a-f%22%5D&')).toBe(200);
    expect(await post('/maplayers?', { name: 'Topo', url: 'https://tiles/{z}' })).toBe(200);
    const [mission] = (await ask('GET', named('Hung'))).body.data;
    expect(mission).toMatchObject({
      externalData: [external],
      feeds: [{ dataFeedUid: 'f-1', filterPolygon: '1,2', filterCotTypesSerialized: '["a-f"]' }],
      mapLayers: [{ name: 'Topo', type: 'MapTile', enabled: false }],
    });
    const listed = (await ask('GET', BASE)).body.data.find(({ name }: { name: string }) => name === 'Hung');
    expect(listed.externalData).toEqual([external]);
    const changes = (await ask('GET', `${named('Hung', '/changes')}?squashed=false`)).body.data;
    expect(changes.map(({ type }: { type: string }) => type)).toEqual([
      'ADD_CONTENT',
      'CREATE_DATA_FEED',
      'ADD_CONTENT',
      'ADD_CONTENT',
      'CREATE_MISSION',
    ]);
    expect(changes[2].externalData).toMatchObject({ uid: 'x-1', name: 'Board', notes: 'n', token: 'token 1' });
    expect(await status('DELETE', `${named('Hung', `/feed/${mission.feeds[0].uid}`)}?creatorUid=u`)).toBe(200);
    expect(await status('DELETE', `${named('Hung', '/externaldata/x-1')}?creatorUid=u&notes=`)).toBe(200);
    expect(await status('DELETE', `${named('Hung', '/externaldata/x-1')}?creatorUid=u&notes=`)).toBe(404);
    for (const [rest, json] of [
      ['/externaldata?', { ...external, urlData: 'javascript:alert(1)' }],
      ['/externaldata?', { ...external, uid: '' }],
      ['/maplayers?', { name: 'x', url: 'file:///etc/passwd' }],
      ['/feed?', {}],
      ['/feed?dataFeedUid=x&filterCotTypes=%7B&', {}],
      ['/feed?dataFeedUid=x&filterPolygon=a,b&', {}],
    ] as const) {
      expect(await post(rest, json)).toBe(400);
      expect(await post(rest, json, EVE)).toBeGreaterThanOrEqual(400);
    }
    expect(await post('/externaldata?', external, EVE)).toBe(404);
  });
});

const EVENT = `<event version="2.0" uid="u-1" type="a-f-G" how="m-g" time="2026-11-22T10:00:00Z" start="2026-11-22T10:00:00Z"
  stale="2026-11-22T10:10:00Z"><point lat="48.5" lon="11.5" hae="9999999" ce="1" le="1"/><detail><contact callsign="A &amp; B"/>
  <link point="1,2"/><link point="3.5,-4"/></detail></event>`;

describe('a mission package', () => {
  const put = (mission: string, body: Uint8Array, as: CoreCaller = ADA) =>
    ask('PUT', `${named(mission, '/contents/missionpackage')}?creatorUid=uid-ada`, { as, body: new Uint8Array(body) });
  const zip = (files: Record<string, string>) =>
    zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)])));

  it('becomes contents: events are stored and sent on, files are kept; its archive becomes the same again', async () => {
    await world().make('From');
    const manifest = `<MissionPackageManifest version="2"><Contents><Content zipEntry="f/1.txt" name="note.txt" mimeType="text/plain" keywords="a,b"/></Contents></MissionPackageManifest>`;
    const files = {
      'MANIFEST/manifest.xml': manifest,
      'x/u-1.cot': `\uFEFF<?xml version="1.0"?>\n${EVENT}`,
      'f/1.txt': 'hello',
    };
    expect((await put('From', zip(files))).body).toMatchObject({ type: 'MissionChange', data: [] });
    expect(noticeTypes()).toEqual(['t-x-m-c', 'a-f-G', 't-x-m-c']);
    expect(changesOf()[1]?.event).toMatchObject({ uid: 'u-1', point: { lat: 48.5 } });
    const [mission] = (await ask('GET', named('From'), { as: BOB })).body.data;
    expect(mission.uids).toMatchObject([{ data: 'u-1', details: { callsign: 'A & B' } }]);
    expect(mission.contents).toMatchObject([
      { data: { name: 'note.txt', mimeType: 'text/plain', keywords: ['a', 'b'], submitter: 'ada' } },
    ]);
    const archive = await ask('GET', named('From', '/archive'), { as: BOB });
    expect([archive.status, archive.type, archive.headers.get('content-disposition')]).toEqual([
      200,
      'application/zip',
      'attachment; filename="From.zip"',
    ]);
    expect((await ask('GET', named(mission.guid, '/archive'), { as: BOB })).headers).toEqual(archive.headers);
    const unpacked = unzipSync(archive.bytes);
    expect(Object.keys(unpacked)).toEqual(['cot/0_u-1.cot', 'contents/1_note.txt', 'MANIFEST/manifest.xml']);
    await world().make('To');
    expect((await put('To', archive.bytes)).status).toBe(200);
    const [copy] = (await ask('GET', named('To'))).body.data;
    const kept = ({ uids, contents }: typeof mission) => [
      uids.map((each: { data: string }) => each.data),
      contents[0].data,
    ];
    expect(kept(copy)).toEqual(kept(mission));
    expect((await ask('GET', named('To', '/cot'))).text).toContain('<contact callsign="A &amp; B"/>');
  });

  it('is seen in the groups that its sender may send into, and nowhere else', async () => {
    await world().make('Wide open', 'group=Ops&group=Other', ADMIN);
    const body = zip({ 'secret.txt': 'of ops' });
    expect((await put('Wide open', body)).status).toBe(200);
    const hash = (await ask('GET', named('Wide open'))).body.data[0].contents[0].data.hash;
    expect(await status('GET', `/Marti/sync/content?hash=${hash}`, BOB)).toBe(200);
    expect(await status('GET', `/Marti/sync/content?hash=${hash}`, EVE)).toBe(404);
    const archive = await ask('GET', named('Wide open', '/archive'), { as: EVE });
    expect(Object.keys(unzipSync(archive.bytes))).toEqual(['MANIFEST/manifest.xml']);
    const [{ guid }] = (await ask('GET', named('From'), { as: BOB })).body.data;
    for (const name of ['From', guid]) expect(await status('GET', named(name, '/archive'), EVE)).toBe(404);
    expect((await put('From', body, EVE)).status).toBe(404);
    expect((await put('From', body, RON)).status).toBe(403);
  });

  it('is refused as a whole when any of it is wrong', async () => {
    await world().make('Empty');
    const good = { 'a.cot': EVENT, 'a.txt': 'x' };
    for (const files of [
      { ...good, 'b.cot': '<event' },
      { ...good, 'b.cot': '<other/>' },
      { ...good, 'b.cot': EVENT.replace('stale="2026-11-22T10:10:00Z"', 'stale="soon"') },
      { ...good, 'MANIFEST/manifest.xml': '<!DOCTYPE x [<!ENTITY y "z">]><x/>' },
      { ...good, 'MANIFEST/manifest.xml': '<a><b></a>' },
      { ...good, [`${'x'.repeat(200)}.txt`]: 'x' },
    ])
      expect((await put('Empty', zip(files))).status).toBe(400);
    expect((await put('Empty', zip({ ...good, 'changes.json': '{}' }))).status).toBe(501);
    expect((await put('Empty', strToU8('PK no zip'))).status).toBe(400);
    expect((await put('Empty', zip(good).slice(0, -30))).status).toBe(400);
    const evil = zip({ '../../etc/x.txt': 'x' });
    expect((await put('Empty', evil)).status).toBe(400);
    const bomb = zip({ 'zeros.bin': '\0'.repeat(7_000_000) });
    expect(bomb.length).toBeLessThan(20_000);
    expect((await put('Empty', bomb)).status).toBe(413);
    const many = zip(Object.fromEntries(Array.from({ length: 2_001 }, (_, n) => [`${n}.txt`, ''])));
    expect((await put('Empty', many)).status).toBe(413);
    const [mission] = (await ask('GET', named('Empty'))).body.data;
    expect([mission.uids, mission.contents]).toEqual([[], []]);
  });
});

it('a mission as KML is well-formed, with the places and lines that the reader sees', async () => {
  await world().make('Drawn');
  await world().addEvent(
    'k-1',
    '<Dog>'.replaceAll(/[<>]/g, (mark) => (mark === '<' ? '&lt;' : '&gt;')),
  );
  await world().addEvent('k-2', 'Hidden', 'Other');
  await world().put('Drawn', { uids: ['k-1', 'k-2', 'u-1'] });
  const { type, text, headers } = await ask('GET', `${named('Drawn', '/kml')}?download=true`, { as: BOB });
  expect([type, headers.get('content-disposition')]).toEqual([
    'application/vnd.google-earth.kml+xml',
    'attachment; filename="Drawn.kml"',
  ]);
  const texts: string[] = [];
  const parser = new SaxesParser();
  parser.on('text', (each) => void (each.trim() !== '' && texts.push(each)));
  parser.on('error', (error) => {
    throw error;
  });
  parser.write(text).close();
  expect(texts).toContain('<Dog>');
  expect(texts).not.toContain('Hidden');
  expect(texts).toContain('2,1 -4,3.5');
  expect(await status('GET', named('Drawn', '/kml'), EVE)).toBe(404);
});

it('a mission of 1,000 contents is listed whole', async () => {
  await world().make('Large');
  await world().put('Large', { uids: Array.from({ length: 1_000 }, (_, n) => `large-${n + 1}`) });
  expect((await ask('GET', named('Large'))).body.data[0].uids).toHaveLength(1_000);
});
