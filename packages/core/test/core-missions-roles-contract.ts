// Who may do what in a mission, by the API and by the stream; how missions end.

import { beforeEach, describe, expect, it } from 'vitest';
import type { CoreCaller } from '../model/parts.ts';
import { GroupVectors } from '../store/groups.ts';
import { StoredMissionWrites } from '../store/mission-writes.ts';
import { ADA, BASE, BOB, EVE, type MissionWorld, named, RON } from './core-missions-world-contract.ts';
import { ADMIN } from './fake-core-admin.ts';

const ROLE_TYPE = 'com.bbn.marti.sync.model.MissionRole';

export function missionRoles(given: () => MissionWorld): void {
  let all: MissionWorld;
  beforeEach(() => {
    all = given();
    all.notices.length = 0;
  });

  describe('a subscription', () => {
    it('is made with a token, found again, listed, left, and taken up again with its role', async () => {
      await all.make('Sub');
      const { status, body } = await all.subscribe('Sub');
      expect([status, body.type]).toEqual([201, 'com.bbn.marti.sync.model.MissionSubscription']);
      expect(body.data).toEqual({
        token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
        clientUid: 'uid-bob',
        username: 'bob',
        createTime: expect.stringMatching(/^2026-11-22T10:\d\d:\d\d\.007Z$/),
        role: { type: 'MISSION_SUBSCRIBER', permissions: ['MISSION_READ', 'MISSION_WRITE'] },
      });
      const own = await all.ask('GET', `${named('Sub', '/subscription')}?uid=uid-bob`, { as: BOB });
      expect(own.body.data.token).toBe(body.data.token);
      expect((await all.ask('GET', `${named('Sub', '/subscription')}?uid=uid-bob`)).status).toBe(404);
      expect((await all.ask('GET', named('Sub', '/subscriptions'))).body).toMatchObject({
        type: 'MissionSubscription',
        data: ['uid-ada', 'uid-bob'],
      });
      const roles = (await all.ask('GET', named('Sub', '/subscriptions/roles'))).body.data;
      expect(roles.map((each: { role: { type: string }; token?: string }) => [each.role.type, each.token])).toEqual([
        ['MISSION_OWNER', undefined],
        ['MISSION_SUBSCRIBER', undefined],
      ]);
      const contacts = (await all.ask('GET', named('Sub', '/contacts'))).body;
      expect(contacts).toMatchObject([
        { uid: 'uid-ada', filterGroups: [] },
        { uid: 'uid-bob', filterGroups: [] },
      ]);
      expect((await all.ask('GET', `${BASE}/all/subscriptions`, { as: ADMIN })).body.data).toContainEqual({
        Sub: 'uid-bob',
      });
      await all.ask('DELETE', `${named('Sub', '/subscription')}?uid=uid-ada`);
      expect((await all.ask('GET', named('Sub', '/subscriptions'))).body.data).toEqual(['uid-bob']);
      expect((await all.ask('GET', named('Sub', '/role'))).body).toMatchObject({
        type: ROLE_TYPE,
        data: { type: 'MISSION_OWNER' },
      });
      expect((await all.subscribe('Sub', ADA)).body.data.role.type).toBe('MISSION_OWNER');
      for (const path of [`${BASE}/all/invitations`, `${BASE}/invitations?clientUid=x`, named('Sub', '/invitations')])
        expect((await all.ask('GET', path)).body).toMatchObject({ type: 'MissionInvitation', data: [] });
    });

    it('needs a uid, has no topics, and no more devices of one person than the limit', async () => {
      await all.make('Devices');
      const path = named('Devices', '/subscription');
      expect((await all.ask('PUT', path)).status).toBe(400);
      expect((await all.ask('PUT', `${path}?topic=x`)).status).toBe(501);
      for (let index = 0; index < 20; index++)
        expect((await all.ask('PUT', `${path}?uid=d${index}`, { as: BOB })).status).toBe(201);
      expect((await all.ask('PUT', `${path}?uid=d20`, { as: BOB })).status).toBe(409);
      expect((await all.ask('PUT', `${path}?uid=d3`, { as: BOB })).status).toBe(201);
    });

    it('is ended by whose it is or an admin, and by nobody else', async () => {
      await all.make('Ended');
      await all.subscribe('Ended');
      const subscribed = async () => (await all.ask('GET', named('Ended', '/subscriptions'))).body.data as string[];
      const end = (as: CoreCaller) =>
        all.ask('DELETE', `${named('Ended', '/subscription')}?uid=uid-bob&disconnectOnly=false`, { as });
      await end(ADA);
      expect(await subscribed()).toEqual(['uid-ada', 'uid-bob']);
      expect((await end(ADMIN)).status).toBe(200);
      expect(await subscribed()).toEqual(['uid-ada']);
    });

    it('with a password: opened by it, by its token until it changes, by nothing else', async () => {
      const { guid } = await all.make('Secret', 'password=open%20sesame');
      expect((await all.ask('GET', named('Secret'), { as: BOB })).status).toBe(403);
      const emptied = await all.ask('GET', named('Secret'), { as: BOB, headers: { API_VERSION: '3' } });
      expect(emptied).toMatchObject({
        status: 200,
        body: { data: [{ passwordProtected: true, uids: [], contents: [] }] },
      });
      expect((await all.ask('GET', `${named('Secret')}?password=wrong`, { as: BOB })).status).toBe(403);
      expect((await all.subscribe('Secret')).status).toBe(403);
      expect((await all.subscribe('Secret', BOB, 'password=wrong')).status).toBe(403);
      const opened = await all.ask('GET', `${BASE}/guid/${guid}?password=open%20sesame`, { as: BOB });
      const headers = { MissionAuthorization: `Bearer ${opened.body.data[0].token}` };
      expect((await all.ask('GET', named('Secret', '/changes'), { as: BOB, headers })).status).toBe(200);
      expect((await all.ask('GET', named('Secret', '/changes'), { as: EVE, headers })).status).toBe(404);
      await all.make('Secret 2', 'password=open%20sesame');
      expect((await all.ask('GET', named('Secret 2', '/changes'), { as: BOB, headers })).status).toBe(403);
      expect((await all.ask('PUT', `${named('Secret')}?password=other`)).status).toBe(200);
      expect((await all.ask('GET', named('Secret', '/changes'), { as: BOB, headers })).status).toBe(403);
      expect((await all.subscribe('Secret', BOB, 'password=other')).status).toBe(201);
      expect((await all.ask('GET', named('Secret', '/changes'), { as: BOB })).status).toBe(200);
      await all.make('Open');
      expect((await all.subscribe('Open', BOB, 'password=x')).status).toBe(403);
      await all.put('Secret 2', { uids: ['inside'] });
      const query = 'passwordProtected=true&nameFilter=Secret';
      const listed = async (as: CoreCaller) =>
        (await all.ask('GET', `${BASE}?${query}`, { as })).body.data[1].uids.length;
      expect([await listed(RON), await listed(ADMIN)]).toEqual([0, 1]);
      const names = (await all.ask('GET', BASE, { as: BOB })).body.data.map(({ name }: { name: string }) => name);
      expect([names.includes('Open'), names.includes('Secret')]).toEqual([true, false]);
      const [row] = await all.sql`SELECT password_hash FROM mission WHERE name = 'Secret'`;
      expect(row?.['password_hash']).toMatch(/^scrypt:/);
    });

    it('gives tokens that lend a role, as long as it lasts; a forged one gives nothing', async () => {
      const { token } = await all.make('Lent', 'inviteOnly=true');
      const headers = { Authorization: `Bearer ${token}` };
      expect((await all.ask('GET', named('Lent'), { as: BOB })).status).toBe(403);
      expect((await all.subscribe('Lent')).status).toBe(403);
      expect((await all.ask('GET', named('Lent'), { as: BOB, headers })).status).toBe(200);
      const forged = { MissionAuthorization: `Bearer ${token.slice(0, -4)}AAAA` };
      expect((await all.ask('GET', named('Lent'), { as: BOB, headers: forged })).status).toBe(403);
      await all.ask('DELETE', `${named('Lent', '/subscription')}?uid=uid-ada&disconnectOnly=false`);
      expect((await all.ask('GET', named('Lent'), { as: BOB, headers })).status).toBe(403);
    });

    it('is opened to the invited alone, whoever knows its password', async () => {
      await all.make('Closed', 'inviteOnly=true&password=horse');
      expect((await all.ask('GET', `${named('Closed')}?password=horse`, { as: BOB })).status).toBe(403);
      expect((await all.subscribe('Closed', BOB, 'password=horse')).status).toBe(403);
    });

    it('has a role that an owner changes, which the device is told; the last owner stays', async () => {
      await all.make('Roles');
      await all.subscribe('Roles');
      all.notices.length = 0;
      const set = (query: string, as = ADA) => all.ask('PUT', `${named('Roles', '/role')}?${query}`, { as });
      expect((await set('clientUid=uid-bob&role=MISSION_OWNER', BOB)).status).toBe(403);
      expect((await set('clientUid=uid-ada&role=MISSION_SUBSCRIBER')).status).toBe(409);
      expect((await set('clientUid=nobody&role=MISSION_SUBSCRIBER')).status).toBe(404);
      expect((await set('clientUid=uid-bob&role=KING')).status).toBe(400);
      expect((await set('role=MISSION_OWNER')).status).toBe(400);
      expect(await set('clientUid=uid-bob&role=MISSION_READONLY_SUBSCRIBER')).toMatchObject({ status: 200, text: '' });
      expect(all.notices).toMatchObject([{ subject: ['uid-bob'], event: { type: 't-x-m-r' } }]);
      expect(all.notices[0]?.event.detail).toContain('type="INVITE"');
      expect((await all.put('Roles', { uids: ['a'] }, BOB)).status).toBe(403);
      expect((await all.ask('GET', named('Roles'), { as: BOB })).status).toBe(200);
    });
  });

  it('keeps an owner when two owners take the role from each other at once', async () => {
    await all.make('Duel');
    await all.subscribe('Duel');
    const set = (uid: string, role: string, as: CoreCaller) =>
      all.ask('PUT', `${named('Duel', '/role')}?clientUid=${uid}&role=${role}`, { as });
    for (let round = 0; round < 10; round++) {
      for (const uid of ['uid-ada', 'uid-bob']) await set(uid, 'MISSION_OWNER', ADMIN);
      const ends = await Promise.all([
        set('uid-bob', 'MISSION_SUBSCRIBER', ADA),
        set('uid-ada', 'MISSION_SUBSCRIBER', BOB),
      ]);
      expect(ends.filter(({ status }) => status === 200)).toHaveLength(1);
      const { body } = await all.ask('GET', named('Duel', '/subscriptions/roles'), { as: ADMIN });
      const roles = body.data.map((each: { role: { type: string } }) => each.role.type);
      expect(roles.toSorted()).toEqual(['MISSION_OWNER', 'MISSION_SUBSCRIBER']);
    }
  });

  it('counts owners beyond the end of a list', async () => {
    const { guid } = await all.make('Crowd');
    await all.sql`
      INSERT INTO mission_subscription (mission_id, client_uid, username, create_time, uid, role_id)
      SELECT m.id, 'a' || i, 'crowd', now(), 'crowd-' || i, 1 FROM mission m, generate_series(1, 10000) i
      WHERE m.guid = ${guid}::text::uuid`;
    await all.subscribe('Crowd');
    const set = (uid: string, role: string) =>
      all.ask('PUT', `${named('Crowd', '/role')}?clientUid=${uid}&role=${role}`, { as: ADMIN });
    expect((await set('uid-bob', 'MISSION_OWNER')).status).toBe(200);
    expect((await set('uid-bob', 'MISSION_SUBSCRIBER')).status).toBe(200);
    expect((await set('uid-ada', 'MISSION_SUBSCRIBER')).status).toBe(409);
  });

  describe('an event that is sent to a mission', () => {
    const from = async (name: string) => ({
      username: name,
      clientUid: `uid-${name}`,
      places: await all.placesOf(name === 'eve' ? 'Other' : 'Ops'),
    });
    const says = { callsign: 'T "1"', iconsetPath: 'a/b', color: undefined, point: { lat: 47.5, lon: 8.25 } };
    const event = (uid: string) => ({ uid, type: 'a-f-G', ...says });

    it('becomes content of it once, goes to whoever is subscribed, and costs no query any more', async () => {
      const { guid } = await all.make('Posts');
      await all.subscribe('Posts');
      all.notices.length = 0;
      const to = { name: 'Posts', guid: undefined };
      const { posts } = all.missions;
      const sent = await Promise.all(
        Array.from({ length: 50 }, async () => posts.post(to, event('t-1'), await from('bob'))),
      );
      expect(sent.every((devices) => devices.map(({ clientUid }) => clientUid).join() === 'uid-ada')).toBe(true);
      expect(await posts.post({ name: undefined, guid }, event('t-1'), await from('ada'))).toEqual([
        { clientUid: 'uid-bob', username: 'bob' },
      ]);
      expect(all.notices).toHaveLength(1);
      expect(all.notices[0]?.event.detail).toContain(
        '<details type="a-f-G" callsign="T &quot;1&quot;" iconsetPath="a/b"><location lat="47.5" lon="8.25"/></details>',
      );
      expect(await all.sql`SELECT FROM mission_change WHERE mission_name = 'Posts' AND change_type = 2`).toHaveLength(
        1,
      );
      await all.ask('DELETE', `${named('Posts', '/contents')}?uid=t-1`);
      await posts.post(to, event('t-1'), await from('bob'));
      expect((await all.ask('GET', named('Posts'))).body.data[0].uids).toMatchObject([
        { data: 't-1', creatorUid: 'uid-bob' },
      ]);
    });

    it('has a uid that the API takes too, or becomes no content and goes to whoever is subscribed all the same', async () => {
      const { guid } = await all.make('Odd uids');
      await all.subscribe('Odd uids');
      const { posts } = all.missions;
      for (const uid of ['', 'a\u2028b', 'a\nb', '\uD800', 'x'.repeat(256)])
        expect(await posts.post({ name: 'Odd uids', guid: undefined }, event(uid), await from('bob'))).toHaveLength(1);
      const braced = { name: undefined, guid: `{${guid.toUpperCase()}}` };
      expect(await posts.post(braced, event('plain'), await from('bob'))).toHaveLength(1);
      expect((await all.ask('GET', named('Odd uids'))).body.data[0].uids).toMatchObject([{ data: 'plain' }]);
      expect((await all.ask('DELETE', `${named('Odd uids', '/contents')}?uid=plain`)).body.data[0].uids).toEqual([]);
    });

    it('goes nowhere from somebody who is not subscribed, may not write, or does not send into its groups', async () => {
      await all.make('Closed');
      const { posts } = all.missions;
      const to = { name: 'Closed', guid: undefined };
      expect(await posts.post(to, event('x'), await from('bob'))).toEqual([]);
      expect(await posts.post(to, event('x'), await from('eve'))).toEqual([]);
      expect(await posts.post({ name: 'missing', guid: undefined }, event('x'), await from('ada'))).toEqual([]);
      expect(await posts.post({ name: undefined, guid: "'; --" }, event('x'), await from('ada'))).toEqual([]);
      await all.subscribe('Closed', RON);
      expect(await posts.post(to, event('x'), { username: 'ron', clientUid: 'uid-ron', places: [] })).toEqual([]);
      expect((await all.ask('GET', named('Closed'))).body.data[0].uids).toEqual([]);
    });
  });

  describe('the end of a mission', () => {
    it('needs an owner, leaves files and events, is told, and answers 410 from then on', async () => {
      const { guid } = await all.make('End');
      const hash = await all.addFile('end.txt');
      await all.addEvent('end-1', 'E');
      await all.put('End', { hashes: [hash], uids: ['end-1'] });
      await all.subscribe('End');
      expect((await all.ask('DELETE', named('End'), { as: BOB })).status).toBe(403);
      all.notices.length = 0;
      const { status, body } = await all.ask('DELETE', `${BASE}?guid=${guid}&creatorUid=uid-ada`);
      expect([status, body.data[0].name, body.data[0].contents.length]).toEqual([200, 'End', 1]);
      expect(all.notices).toMatchObject([{ to: 'places', except: 'uid-ada', event: { type: 't-x-m-d' } }]);
      for (const path of [named('End'), `${BASE}/guid/${guid}`, named('End', '/changes')])
        expect(await all.ask('GET', path)).toMatchObject({ status: 410, body: { status: 'GONE', code: 8 } });
      expect(await all.sql`SELECT FROM resource WHERE hash = ${hash}`).toHaveLength(1);
      expect(await all.sql`SELECT FROM cot_router WHERE uid = 'end-1'`).toHaveLength(1);
      expect((await all.make('End')).guid).not.toBe(guid);
      expect((await all.ask('DELETE', BASE)).status).toBe(400);
    });

    it('with deepDelete takes what was in it, and not what another mission has', async () => {
      await all.make('Deep');
      await all.make('Keeper');
      const [own, shared] = [await all.addFile('deep.txt'), await all.addFile('shared.txt')];
      await all.addEvent('deep-1', 'D');
      await all.addEvent('deep-2', 'D');
      await all.put('Deep', { hashes: [own, shared], uids: ['deep-1', 'deep-2'] });
      await all.put('Keeper', { hashes: [shared], uids: ['deep-2'] });
      expect((await all.ask('DELETE', `${named('Deep')}?deepDelete=true`, { as: ADMIN })).status).toBe(200);
      expect(await all.sql`SELECT hash FROM resource WHERE hash IN (${own}, ${shared})`).toEqual([{ hash: shared }]);
      expect(await all.sql`SELECT uid FROM cot_router WHERE uid LIKE 'deep-%'`).toEqual([{ uid: 'deep-2' }]);
    });

    it('with deepDelete takes of what others have sent nothing, as long as no administrator asks', async () => {
      await all.make('Raid', '', BOB);
      const [hers, his] = [await all.addFile('hers.txt'), await all.addFile('his.txt')];
      await all.sql`UPDATE resource SET submitter = 'bob' WHERE hash = ${his}`;
      await all.addEvent('raid-1', 'R');
      await all.put('Raid', { hashes: [hers, his], uids: ['raid-1'] }, BOB);
      expect((await all.ask('DELETE', `${named('Raid')}?deepDelete=true`, { as: BOB })).status).toBe(200);
      expect(await all.sql`SELECT hash FROM resource WHERE hash IN (${hers}, ${his})`).toEqual([{ hash: hers }]);
      expect(await all.sql`SELECT FROM cot_router WHERE uid = 'raid-1'`).toHaveLength(1);
    });

    it('is whole or not at all, as every change is: the database fails in the middle', async () => {
      const { guid } = await all.make('Crash');
      await all.put('Crash', { uids: ['a'] });
      const [mission] = await all.sql<
        { id: number }[]
      >`SELECT id::int AS id FROM mission WHERE guid = ${guid}::text::uuid`;
      const run = <T>(use: (sql: typeof all.sql) => Promise<T>): Promise<T> => use(all.sql);
      const writes = new StoredMissionWrites(run, new GroupVectors(run), () => undefined);
      await all.sql.unsafe(
        `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''gone''; END'`,
      );
      await all.sql.unsafe('CREATE TRIGGER fail BEFORE INSERT ON mission_change FOR EACH ROW EXECUTE FUNCTION fail()');
      const { id } = mission ?? { id: 0 };
      const now = new Date();
      const addition = { uids: ['b'], hashes: [], creatorUid: '', sees: 'all' as const, now };
      await expect(writes.addContent(id, addition)).rejects.toThrow('gone');
      await expect(writes.removeContent(id, { uids: ['a'], hashes: [] }, '', now)).rejects.toThrow('gone');
      await expect(writes.remove({ id, guid, name: 'Crash' }, '', now)).rejects.toThrow('gone');
      expect((await all.ask('PUT', named('Crash 2'))).status).toBe(500);
      await all.sql.unsafe('DROP TRIGGER fail ON mission_change');
      expect((await all.ask('GET', named('Crash'))).body.data[0].uids).toMatchObject([{ data: 'a' }]);
      expect((await all.ask('GET', named('Crash 2'))).status).toBe(404);
      expect((await all.ask('GET', named('Crash', '/subscriptions'))).body.data).toEqual(['uid-ada']);
    });
  });

  describe('a thousand missions', () => {
    it('are listed in one answer within a second, and no more than that', async () => {
      await all.sql`
        INSERT INTO mission (name, tool, groups) SELECT 'M' || i, 'many', (SELECT groups FROM mission WHERE name = 'Keeper')
        FROM generate_series(1, 1001) i`;
      const began = performance.now();
      const { body } = await all.ask('GET', `${BASE}?tool=many`);
      expect(performance.now() - began).toBeLessThan(1_000);
      expect([body.data.length, body.messages.length]).toEqual([1_000, 1]);
      expect((await all.ask('GET', `${BASE}?tool=many`, { as: EVE })).body.data).toEqual([]);
      expect((await all.ask('GET', '/Marti/api/missioncount?tool=many')).body.data).toBe(1_001);
    });
  });
}
