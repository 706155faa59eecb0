// The API of the missions on a real PostgreSQL: who sees what, what is in them, what the stream is
// told.

import { SaxesParser } from 'saxes';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CoreCaller } from '../model/parts.ts';
import type { RunSql } from '../store/certificates.ts';
import { missionRoles } from './core-missions-roles-contract.ts';
import { ADA, BASE, BOB, EVE, missionWorld, type MissionWorld, named, RON } from './core-missions-world-contract.ts';
import { coreTables } from './core-tables.ts';
import { ADMIN, type AskOptions, NODE_ID } from './fake-core-admin.ts';

const core = coreTables();
let all: MissionWorld;
let notices: MissionWorld['notices'] = [];

beforeAll(async () => {
  const run: RunSql = (use) => use(core.sql);
  all = missionWorld(core.sql, run);
  notices = all.notices;
});
afterAll(async () => {
  all?.world.end();
});
beforeEach(() => {
  notices.length = 0;
});

const ask = (method: string, path: string, input?: AskOptions) => all.ask(method, path, input);
const make = (name: string, query?: string, as?: CoreCaller) => all.make(name, query, as);
const subscribe = (name: string, as?: CoreCaller, query?: string) => all.subscribe(name, as, query);
const addFile = (name: string, group?: string) => all.addFile(name, group);
const addEvent = (uid: string, callsign: string, group?: string) => all.addEvent(uid, callsign, group);
const placesOf = (name: string) => all.placesOf(name);

missionRoles(() => all);

/** Well-formed, by a parser of somebody else. */
function elements(xml: string): string[] {
  const names: string[] = [];
  const parser = new SaxesParser();
  parser.on('opentag', ({ name }) => void names.push(name));
  parser.on('error', (error) => {
    throw error;
  });
  parser.write(xml).close();
  return names;
}

describe('a mission', () => {
  it('is made with a token and the role of its owner, and told to its groups', async () => {
    const query = 'description=Search%20%26%20rescue&tool=public&group=Ops&defaultRole=MISSION_SUBSCRIBER&bbox=1,2,3,4';
    const answer = await ask('PUT', `${named('Alpha')}?creatorUid=uid-ada&${query}`);
    expect([answer.status, answer.type]).toEqual([201, 'application/json']);
    expect(answer.body).toEqual({
      version: '3',
      type: 'Mission',
      nodeId: NODE_ID,
      data: [
        {
          name: 'Alpha',
          description: 'Search & rescue',
          chatRoom: '',
          baseLayer: '',
          bbox: '1,2,3,4',
          path: '',
          classification: '',
          tool: 'public',
          keywords: [],
          creatorUid: 'uid-ada',
          createTime: '2026-11-22T10:20:30.007Z',
          lastEdited: '2026-11-22T10:20:30.007Z',
          groups: ['Ops'],
          externalData: [],
          feeds: [],
          mapLayers: [],
          ownerRole: {
            type: 'MISSION_OWNER',
            permissions: expect.arrayContaining(['MISSION_DELETE', 'MISSION_WRITE']),
          },
          defaultRole: { type: 'MISSION_SUBSCRIBER', permissions: ['MISSION_READ', 'MISSION_WRITE'] },
          inviteOnly: false,
          expiration: -1,
          guid: expect.stringMatching(/^[0-9a-f-]{36}$/),
          uids: [],
          contents: [],
          token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
          passwordProtected: false,
        },
      ],
    });
    expect(notices).toMatchObject([
      { to: 'places', except: 'uid-ada', event: { type: 't-x-m-n', how: 'h-g-i-g-o', staleMs: 20_000 } },
    ]);
    expect(notices[0]?.subject).toEqual(await placesOf('Ops'));
    expect(notices[0]?.event.detail).toMatch(
      /^<mission type="CREATE" tool="public" name="Alpha" guid="[^"]+" authorUid="uid-ada"><\/mission>$/,
    );
  });

  it('is seen by its groups alone: others find no such name, and may have their own of it', async () => {
    const { guid } = await make('Beta', 'group=Ops');
    for (const path of [
      named('Beta'),
      `${BASE}/guid/${guid}`,
      named('Beta', '/changes'),
      named('Beta', '/cot'),
      named('Beta', '/contacts'),
    ]) {
      expect((await ask('GET', path, { as: BOB })).status).toBe(200);
      expect(await ask('GET', path, { as: EVE })).toMatchObject({
        status: 404,
        body: { status: 'NOT_FOUND', code: 1 },
      });
    }
    for (const [method, rest] of [
      ['PUT', '/contents'],
      ['DELETE', ''],
      ['PUT', '/subscription?uid=x'],
      ['PUT', '/keywords'],
    ])
      expect(
        (
          await ask(method!, named('Beta', rest), {
            as: EVE,
            json: rest === '/keywords' ? ['a'] : { uids: ['a'] },
            headers: { 'content-type': 'application/json' },
          })
        ).status,
      ).toBe(404);
    const theirs = await make('Beta', '', EVE);
    expect(theirs.guid).not.toBe(guid);
    expect(theirs.groups).toEqual(['Other']);
    const names = async (as: CoreCaller) =>
      (await ask('GET', BASE, { as })).body.data.map((each: { guid: string }) => each.guid);
    expect(await names(EVE)).toEqual([theirs.guid]);
    expect(await names(BOB)).toContain(guid);
    expect(await names(BOB)).not.toContain(theirs.guid);
    expect(await ask('PUT', `${named('Gamma')}?group=Other`)).toMatchObject({ status: 403, body: { code: 10 } });
    expect(await ask('PUT', named('Gamma'), { as: RON })).toMatchObject({ status: 403 });
  });

  it('is in the groups that the query names, or in those of its maker, when the list in the body is empty', async () => {
    const headers = { 'content-type': 'application/json' };
    const json = { groups: [] };
    const made = await ask('PUT', named('No list'), { json, headers });
    expect([made.status, made.body.data[0].groups]).toEqual([201, ['Ops']]);
    const query = 'group=__ANON__&allowGroupChange=true';
    const moved = await ask('PUT', `${named('No list')}?${query}`, { as: ADMIN, json, headers });
    expect([moved.status, moved.body.data[0].groups]).toEqual([200, ['__ANON__']]);
    const corners = { boundingPolygon: ['1,2'] };
    expect((await ask('PUT', named('Square'), { json: corners, headers })).status).toBe(201);
    const emptied = await ask('PUT', named('Square'), { json: { boundingPolygon: [] }, headers });
    expect(emptied.body.data[0].boundingPolygon ?? []).toEqual([]);
  });

  it('exists once for those who see it, however many make it at once', async () => {
    const made = await Promise.all(Array.from({ length: 8 }, () => ask('PUT', `${named('Once')}?creatorUid=u`)));
    expect(made.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(made.every(({ status }) => [200, 201, 409].includes(status))).toBe(true);
    expect(await core.sql`SELECT FROM mission WHERE name = 'Once'`).toHaveLength(1);
  });

  it('is changed by saying what is new; an existing one answers 200 without a token', async () => {
    await make('Delta', 'description=old&classification=secret');
    await subscribe('Delta');
    notices.length = 0;
    const headers = { 'content-type': 'application/json' };
    const answer = await ask('POST', named('Delta'), { as: BOB, json: { description: 'new' }, headers });
    expect(answer).toMatchObject({ status: 200, body: { data: [{ description: 'new', classification: 'secret' }] } });
    expect(answer.body.data[0].token).toBeUndefined();
    expect(notices).toMatchObject([
      { to: 'devices', subject: ['uid-ada', 'uid-bob'].slice(0, 2), event: { type: 't-x-m-c-m' } },
    ]);
    for (const query of ['defaultRole=MISSION_READONLY_SUBSCRIBER', 'password=x', 'inviteOnly=true'])
      expect((await ask('PUT', `${named('Delta')}?${query}`, { as: BOB })).status).toBe(403);
    expect((await ask('PUT', `${named('Delta')}?group=__ANON__`, { as: ADMIN })).status).toBe(403);
    expect((await ask('PUT', `${named('Delta')}?group=__ANON__&allowGroupChange=true`, { as: ADMIN })).status).toBe(
      200,
    );
    expect((await ask('GET', named('Delta'))).status).toBe(404);
  });

  it.each([
    ['a slash', 'a%2Fb'],
    ['a line end', 'a%0Ab'],
    ['too long', 'x'.repeat(256)],
    ['an address of the API', 'guid'],
    ['nothing but blanks', '%20%20'],
  ])('has a name that can be said: not %s', async (_, name) => {
    expect((await ask('PUT', `${BASE}/${name}`)).status).toBe(400);
  });

  it('refuses what is no member of a mission, and names it', async () => {
    const headers = { 'content-type': 'application/json' };
    const refused = async (query: string, json?: unknown) =>
      (await ask('PUT', `${named('Odd')}?${query}`, json === undefined ? {} : { json, headers })).body
        .message as string;
    expect(await refused('defaultRole=KING')).toContain('defaultRole');
    expect(await refused('expiration=soon')).toContain('expiration');
    expect(await refused('boundingPolygon=here')).toContain('boundingPolygon');
    expect(await refused('', { description: 7 })).toContain('description');
    expect((await ask('PUT', named('Odd'), { body: '{', headers })).status).toBe(400);
    expect(await ask('PUT', named('Odd'), { body: 'PK' })).toMatchObject({ status: 400, body: { code: 2 } });
    expect(await ask('GET', `${BASE}/guid/none`)).toMatchObject({ status: 400, body: { code: 2 } });
    for (const path of [`${BASE}/%00`, `${BASE}?tool=%00`, '/Marti/api/pagedmissions?nameFilter=%00'])
      expect((await ask('GET', path)).status).toBe(400);
    expect((await ask('GET', named('Odd'))).status).toBe(404);
  });

  it('keeps its corners, keywords and pages', async () => {
    await make('Corners', 'boundingPolygon=1.5,2&boundingPolygon=3,-4');
    const keywords = await ask('PUT', named('Corners', '/keywords'), {
      json: ['b', 'a', 'a'],
      headers: { 'content-type': 'application/json' },
    });
    expect(keywords.body.data[0]).toMatchObject({ keywords: ['a', 'b'], boundingPolygon: ['1.5,2', '3,-4'] });
    expect((await ask('DELETE', named('Corners', '/keywords/a'))).body.data[0].keywords).toEqual(['b']);
    expect((await ask('DELETE', named('Corners', '/keywords'))).body.data[0].keywords).toEqual([]);
    const page = await ask('GET', '/Marti/api/pagedmissions?pagesize=1&nameFilter=CORN&sort=name');
    expect(page.body.data.map(({ name }: { name: string }) => name)).toEqual(['Corners']);
    expect((await ask('GET', '/Marti/api/missioncount')).body.data).toBeGreaterThan(2);
    expect((await ask('GET', '/Marti/api/pagedmissions?sort=hash')).status).toBe(400);
  });
});

describe('the contents of a mission', () => {
  it('are files and uids, added once, shown with who and when and what, told to whoever is subscribed', async () => {
    await make('Contents');
    await subscribe('Contents');
    const hash = await addFile('plan.txt');
    await addEvent('track-1', 'R&amp;B 1');
    notices.length = 0;
    const body = { hashes: [hash.toUpperCase()], uids: ['track-1', 'track-1', '<"&>'] };
    const headers = { 'content-type': 'application/json' };
    const put = () => ask('PUT', `${named('Contents', '/contents')}?creatorUid=uid-ada`, { json: body, headers });
    const { status, body: answer } = await put();
    expect(status).toBe(200);
    expect(answer.data[0].contents).toMatchObject([
      { creatorUid: 'uid-ada', data: { hash, size: 8, name: 'plan.txt', mimeType: 'text/plain' } },
    ]);
    expect(answer.data[0].uids).toMatchObject([
      { data: '<"&>', creatorUid: 'uid-ada' },
      {
        data: 'track-1',
        details: { type: 'a-f-G', callsign: 'R&B 1', color: '-1', location: { lat: 48.25, lon: 11.5 } },
      },
    ]);
    // Three digits of milliseconds, unlike those of certificates.
    expect(answer.data[0].contents[0].data.submissionTime).toMatch(/:\d\d\.\d{3}Z$/);
    expect(notices).toHaveLength(1);
    expect(notices[0]).toMatchObject({ to: 'devices', subject: ['uid-ada', 'uid-bob'], event: { type: 't-x-m-c' } });
    const xml = notices[0]?.event.detail ?? '';
    expect(elements(xml).filter((name) => name === 'MissionChange')).toHaveLength(3);
    expect(xml).toContain(`<hash>${hash}</hash>`);
    expect(xml).toContain('callsign="R&amp;B 1"');
    expect(xml).toContain('<contentUid>&lt;&quot;&amp;&gt;</contentUid>');
    await put();
    expect(notices).toHaveLength(1);
    expect(await core.sql`SELECT FROM mission_change WHERE mission_name = 'Contents' AND change_type = 2`).toHaveLength(
      3,
    );
  });

  it.each([
    ['an apostrophe', `callsign="O'Brien"`, "O'Brien"],
    ['an apostrophe that is escaped', `callsign='O&apos;Brien'`, "O'Brien"],
    ['quotation marks', `callsign = 'the "Duke"'`, 'the "Duke"'],
    ['nothing', `callsign=""`, ''],
  ])('show names with %s whole', async (_, attribute, callsign) => {
    await make('Quoted');
    await addEvent('quoted', 'x');
    await core.sql`UPDATE cot_router SET detail = ${`<detail><contact ${attribute} endpoint='a"b'/></detail>`} WHERE uid = 'quoted'`;
    await all.put('Quoted', { uids: ['quoted'] });
    const { body } = await ask('GET', named('Quoted'));
    expect(body.data[0].uids[0].details.callsign).toBe(callsign);
  });

  it('says of a file in its changes what its own people may know, not what strangers have brought since', async () => {
    const hash = await addFile('plan of ours.txt');
    await make('Plans');
    await all.put('Plans', { hashes: [hash] });
    await core.sql`INSERT INTO resource (data, filename, name, mimetype, submitter, uid, hash, creatoruid, tool, groups)
      SELECT data, 'theirs.txt', 'theirs.txt', mimetype, 'eve', 'uid-eve-2', hash, 'uid-eve', tool,
        (SELECT groups FROM resource WHERE hash = ${await addFile('of Other', 'Other')}) FROM resource WHERE hash = ${hash}`;
    const { body } = await ask('GET', named('Plans', '/changes'));
    const files = body.data.flatMap(
      ({ contentResource }: { contentResource?: { name: string } }) => contentResource ?? [],
    );
    expect(files.map(({ name }: { name: string }) => name)).toEqual(['plan of ours.txt']);
  });

  it('are refused when nobody could fetch them, and beyond the limits, with nothing of the request done', async () => {
    const { guid } = await make('Refused');
    const theirs = await addFile('theirs.txt', 'Other');
    const headers = { 'content-type': 'application/json' };
    const put = (json: unknown, as = ADA) => ask('PUT', `${BASE}/guid/${guid}/contents`, { json, headers, as });
    expect(await put({ hashes: [theirs], uids: ['a'] })).toMatchObject({
      status: 404,
      body: { message: expect.stringContaining(theirs) },
    });
    expect((await put({ hashes: ['../etc'] })).status).toBe(400);
    expect((await put({})).status).toBe(400);
    expect((await put({ paths: { a: [] } })).status).toBe(400);
    expect((await put({ paths: { a: [{ uids: ['x'] }] } })).status).toBe(404);
    expect((await put({ uids: ['a\u0000b'] })).status).toBe(400);
    expect((await put({ uids: Array.from({ length: 1001 }, (_, index) => `u${index}`) })).status).toBe(400);
    expect((await put({ uids: ['a'] }, RON)).status).toBe(403);
    for (let part = 0; part < 5; part++)
      await put({ uids: Array.from({ length: 1000 }, (_, index) => `u${part}-${index}`) });
    expect(await put({ uids: ['one more'] })).toMatchObject({ status: 409, body: { code: 4 } });
    const { body } = await ask('GET', named('Refused'));
    expect(body.data[0].uids).toHaveLength(5000);
    expect(body.data[0].contents).toEqual([]);
  });

  it('go, and the changes say so: all of them, or how things are', async () => {
    await make('Changes');
    const hash = await addFile('gone.txt');
    await addEvent('b', 'B 1');
    const headers = { 'content-type': 'application/json' };
    await ask('PUT', `${named('Changes', '/contents')}?creatorUid=uid-ada`, {
      json: { hashes: [hash], uids: ['a', 'b'] },
      headers,
    });
    await ask('DELETE', `${named('Changes', '/contents')}?uid=a&creatorUid=uid-ada`);
    const answer = await ask('DELETE', `${named('Changes', '/contents')}?hash=${hash}`);
    expect(answer.body.data[0]).toMatchObject({ contents: [], uids: [{ data: 'b' }] });
    expect((await ask('DELETE', `${named('Changes', '/contents')}?uid=a&hash=${hash}`)).status).toBe(400);
    const changes = async (query: string) => (await ask('GET', `${named('Changes', '/changes')}?${query}`)).body;
    const full = await changes('squashed=false');
    expect(full.type).toBe('MissionChange');
    expect(full.data.map(({ type }: { type: string }) => type)).toEqual([
      'REMOVE_CONTENT',
      'REMOVE_CONTENT',
      'ADD_CONTENT',
      'ADD_CONTENT',
      'ADD_CONTENT',
      'CREATE_MISSION',
    ]);
    expect(full.data[0]).toMatchObject({
      isFederatedChange: false,
      missionName: 'Changes',
      creatorUid: '',
      contentResource: { hash, name: 'gone.txt', creatorUid: expect.any(String) },
    });
    expect(full.data.slice(1, 5).map((each: { creatorUid: string }) => each.creatorUid)).toEqual(
      Array.from({ length: 4 }, () => 'uid-ada'),
    );
    const added = full.data.find((each: { contentUid?: string }) => each.contentUid === 'b');
    expect(added.details).toMatchObject({ type: 'a-f-G', callsign: 'B 1', location: { lat: 48.25, lon: 11.5 } });
    const squashed = (await changes('')).data.map(
      (each: { type: string; contentUid?: string }) => `${each.type} ${each.contentUid ?? ''}`,
    );
    expect(squashed).toEqual(['REMOVE_CONTENT ', 'REMOVE_CONTENT a', 'ADD_CONTENT b', 'CREATE_MISSION ']);
    expect((await changes('end=2020-01-01T00:00:00.000Z')).data).toEqual([]);
    expect((await ask('GET', `${named('Changes', '/changes')}?start=yesterday`)).status).toBe(400);
    expect((await ask('GET', `${named('Changes')}?changes=true`)).body.data[0].missionChanges).toHaveLength(6);
  });

  it('are read as XML: the newest event of each uid that the caller may see', async () => {
    await make('Events');
    await addEvent('e-1', 'old');
    await addEvent('e-1', 'new');
    await addEvent('e-2', 'hidden', 'Other');
    await ask('PUT', named('Events', '/contents'), {
      json: { uids: ['e-1', 'e-2', 'e-3'] },
      headers: { 'content-type': 'application/json' },
    });
    const { type, text } = await ask('GET', named('Events', '/cot'));
    expect(type).toBe('application/xml');
    expect(elements(text)).toEqual(['events', 'event', 'point', 'detail', 'contact', 'color']);
    expect(text).toContain("callsign='new'");
    expect(text).toContain('<point lat="48.25" lon="11.5" hae="1.5" ce="2" le="3"/>');
  });
});
