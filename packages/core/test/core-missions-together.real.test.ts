// How people work together in missions, on a real PostgreSQL: passwords, invitations, logs.

import { describe, expect, it } from 'vitest';
import type { CoreCaller } from '../model/parts.ts';
import { ADA, BASE, BOB, EVE, JSON_TYPE, missionSteps, named, RON } from './core-missions-world-contract.ts';
import { coreTables } from './core-tables.ts';
import { type AskOptions, subscription } from './fake-core-admin.ts';

const core = coreTables();
const { world, ask, status, noticeTypes } = missionSteps(core);
const bearer = (token: string) => ({ missionauthorization: `Bearer ${token}` });

describe('a password of a mission', () => {
  it('is set and taken away by its owner alone; its token opens the mission as long as it holds', async () => {
    await world().make('Locked');
    expect(await status('PUT', `${named('Locked', '/password')}?password=one`, BOB)).toBe(403);
    expect(await status('PUT', named('Locked', '/password'))).toBe(400);
    expect(await status('PUT', `${named('Locked', '/password')}?password=one&creatorUid=uid-ada`)).toBe(200);
    expect(noticeTypes()).toEqual(['t-x-m-c-m']);
    expect(await status('GET', named('Locked'), BOB)).toBe(403);
    expect(await status('GET', named('Locked', '/token'), BOB)).toBe(403);
    expect(await status('GET', `${named('Locked', '/token')}?password=two`, BOB)).toBe(403);
    const opened = await ask('GET', `${named('Locked', '/token')}?password=one`, { as: BOB });
    expect([opened.status, opened.body.type]).toEqual([201, 'java.lang.String']);
    const headers = bearer(opened.body.data);
    expect((await ask('GET', named('Locked'), { as: BOB, headers })).status).toBe(200);
    expect((await ask('GET', named('Locked'), { as: EVE, headers })).status).toBe(404);
    expect(await status('PUT', `${named('Locked', '/password')}?password=two`)).toBe(200);
    expect((await ask('GET', named('Locked'), { as: BOB, headers })).status).toBe(403);
    expect(await status('DELETE', named('Locked', '/password'), BOB)).toBe(403);
    expect(await status('DELETE', named('Locked', '/password'))).toBe(200);
    expect(await status('GET', named('Locked'), BOB)).toBe(200);
  });
});

describe('an invitation', () => {
  const invite = (mission: string, rest: string, as?: CoreCaller) =>
    status('PUT', `${named(mission, `/invite/${rest}`)}?creatorUid=uid-ada`, as);
  const own = async (as: CoreCaller, query = '') =>
    (await ask('GET', `${BASE}/invitations?${query}`, { as })).body.data;

  it('reaches the device, opens the mission to its person, and ends when it is revoked or taken up', async () => {
    await world().make('Closed', 'inviteOnly=true');
    expect(await status('GET', named('Closed'), BOB)).toBe(403);
    expect(await invite('Closed', 'clientUid/uid-bob')).toBe(200);
    expect(world().notices).toMatchObject([{ subject: ['uid-bob'], event: { type: 't-x-m-i' } }]);
    const [mine] = await own(BOB, 'clientUid=uid-bob');
    expect(mine).toMatchObject({
      missionName: 'Closed',
      invitee: 'uid-bob',
      type: 'clientUid',
      creatorUid: 'uid-ada',
      role: { type: 'MISSION_SUBSCRIBER' },
    });
    expect(world().notices[0]?.event.detail).toContain(` token="${mine.token}"`);
    expect(world().notices[0]?.event.detail).toContain('<role type="MISSION_SUBSCRIBER"><permissions>MISSION_READ');
    expect(await own(BOB, 'clientUid=another')).toEqual([]);
    expect(await own(RON, 'clientUid=uid-bob')).toEqual([]);
    expect((await ask('GET', `${BASE}/all/invitations?clientUid=uid-bob`, { as: BOB })).body.data).toEqual(['Closed']);
    expect(await status('GET', named('Closed'), BOB)).toBe(200);
    expect(await status('GET', named('Closed'), RON)).toBe(403);
    expect((await ask('GET', named('Closed'), { as: RON, headers: bearer(mine.token) })).status).toBe(200);
    expect((await ask('GET', named('Closed'), { as: EVE, headers: bearer(mine.token) })).status).toBe(404);
    const revoked = `${named('Closed', '/invite/clientUid/uid-bob')}?creatorUid=uid-ada`;
    expect(await status('DELETE', revoked, RON)).toBe(403);
    expect(await status('DELETE', revoked)).toBe(200);
    expect(await status('GET', named('Closed'), BOB)).toBe(403);
    expect((await ask('GET', named('Closed'), { as: RON, headers: bearer(mine.token) })).status).toBe(403);
    expect(await invite('Closed', 'userName/BOB')).toBe(200);
    expect((await world().subscribe('Closed')).status).toBe(201);
    expect(await own(BOB)).toEqual([]);
    expect(await status('GET', named('Closed'), BOB)).toBe(200);
  });

  it('goes to a callsign, a group, a team; to nobody who is not known, nor into groups of others', async () => {
    await world().make('Wide', 'password=x');
    expect(await invite('Wide', 'callsign/BOB')).toBe(200);
    expect(await own(BOB)).toHaveLength(1);
    expect(await invite('Wide', 'team/Cyan')).toBe(200);
    expect(world().notices.at(-1)?.subject).toEqual(['uid-ada', 'uid-bob', 'uid-ron']);
    expect(await own(BOB)).toHaveLength(2);
    expect(await invite('Wide', 'group/Ops')).toBe(200);
    expect((await own(RON)).map(({ type }: { type: string }) => type)).toEqual(['group', 'team']);
    expect(await own(EVE)).toEqual([]);
    expect(await invite('Wide', 'group/Other')).toBe(403);
    for (const unknown of ['callsign/NOBODY', 'clientUid/uid-eve', 'userName/nobody', 'team/Mauve'])
      expect(await invite('Wide', unknown)).toBe(404);
    for (const bad of ['nonsense/x', `userName/${'x'.repeat(256)}`, 'userName/%00'])
      expect(await invite('Wide', bad)).toBe(400);
    // Whoever shows the uid of another afterwards is not invited by it.
    await world().make('Spoofed', 'inviteOnly=true');
    expect(await invite('Spoofed', 'clientUid/uid-bob')).toBe(200);
    world().world.subscriptions.push(subscription('ron', { clientUid: 'uid-bob' }));
    expect(await own(RON, 'clientUid=uid-bob')).not.toContainEqual(expect.objectContaining({ missionName: 'Spoofed' }));
    expect(await status('GET', named('Spoofed'), RON)).toBe(403);
    world().world.subscriptions.pop();
  });

  it('gives no more than its author has, and its token is shown to owners alone', async () => {
    await world().make('Roles', 'defaultRole=MISSION_READONLY_SUBSCRIBER');
    expect(await invite('Roles', 'userName/ron', BOB)).toBe(403);
    await world().subscribe('Roles');
    await ask('PUT', `${named('Roles', '/role')}?username=bob&role=MISSION_SUBSCRIBER`);
    expect(await status('PUT', `${named('Roles', '/invite/userName/ron')}?role=MISSION_OWNER`, BOB)).toBe(403);
    expect(await status('PUT', `${named('Roles', '/invite/userName/ron')}?role=MISSION_SUBSCRIBER`, BOB)).toBe(200);
    const [shown] = (await ask('GET', named('Roles', '/invitations'))).body.data;
    expect(shown.token).toEqual(expect.any(String));
    const [hidden] = (await ask('GET', named('Roles', '/invitations'), { as: BOB })).body.data;
    expect([hidden.invitee, hidden.token]).toEqual(['ron', undefined]);
    expect((await ask('GET', named('Roles', '/role'), { as: RON })).body.data.type).toBe('MISSION_SUBSCRIBER');
  });

  it('goes to many at once, as parameters and as JSON, all or none', async () => {
    await world().make('Many', 'inviteOnly=true');
    const post = (input: AskOptions, query = '') =>
      ask('POST', `${named('Many', '/invite')}?creatorUid=u&${query}`, input);
    const headers = { ...JSON_TYPE, api_version: '3' };
    expect((await post({}, 'contacts=uid-bob&contacts=uid-nobody')).status).toBe(404);
    expect(await own(BOB)).not.toContainEqual(expect.objectContaining({ missionName: 'Many' }));
    expect((await post({}, 'contacts=uid-bob')).status).toBe(200);
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await post({ body: 'contacts=uid-ron', headers: form })).status).toBe(200);
    expect(
      (await post({ json: [{ type: 'userName', invitee: 'ron', role: { type: 'MISSION_OWNER' } }], headers })).status,
    ).toBe(200);
    expect((await ask('GET', named('Many', '/invitations'))).body.data).toHaveLength(3);
    expect((await ask('GET', named('Many', '/role'), { as: RON })).body.data.type).toBe('MISSION_OWNER');
    for (const json of [{}, [], [{ type: 'x', invitee: 'y' }], [{ type: 'userName' }], [7]])
      expect((await post({ json, headers })).status).toBe(400);
    expect((await post({ body: 'x'.repeat(300_000), headers })).status).toBe(413);
    expect((await post({})).status).toBe(400);
  });
});

describe('the log of a mission', () => {
  const entries = `${BASE}/logs/entries`;
  const write = (json: unknown, as: CoreCaller = ADA, method = 'POST') =>
    ask(method, entries, { as, json, headers: JSON_TYPE });

  it('is written, read, changed and cut, and told', async () => {
    await world().make('Diary');
    await world().make('Diary 2');
    const text = '<b>Found & "lost"</b>';
    const made = await write({
      content: text,
      creatorUid: 'uid-ada',
      missionNames: ['Diary', 'Diary 2'],
      dtg: '2026-11-22T10:00:00Z',
      entryUid: 'e-1',
      contentHashes: ['h'],
      keywords: ['k', 'k'],
    });
    expect(made.status).toBe(201);
    const { id } = made.body.data;
    expect(made.body).toMatchObject({
      type: 'com.bbn.marti.sync.model.LogEntry',
      data: { content: text, missionNames: ['Diary', 'Diary 2'], dtg: '2026-11-22T10:00:00.000Z', keywords: ['k'] },
    });
    expect(noticeTypes()).toEqual(['t-x-m-c-l', 't-x-m-c-l']);
    const changed = await write({ id, content: 'Found', creatorUid: 'uid-ada', missionNames: ['Diary'] }, ADA, 'PUT');
    expect([changed.status, changed.body.data.created]).toEqual([201, made.body.data.created]);
    expect((await ask('GET', named('Diary 2', '/log'))).body.data).toEqual([]);
    world().world.later(1_000);
    await write({ content: 'Later', missionNames: ['Diary'] });
    const read = async (query = '') =>
      (await ask('GET', `${named('Diary', '/log')}?${query}`, { as: BOB })).body.data.map(
        ({ content }: { content: string }) => content,
      );
    expect(await read()).toEqual(['Found', 'Later']);
    expect(await read(`end=${changed.body.data.servertime}`)).toEqual(['Found']);
    expect(await read(`start=2027-01-01T00:00:00Z`)).toEqual([]);
    expect((await ask('GET', `${named('Diary')}?logs=true`)).body.data[0].logs).toHaveLength(2);
    expect((await ask('GET', `${entries}/${id}`, { as: BOB })).body.data).toMatchObject([
      { id, missionNames: ['Diary'] },
    ]);
    expect(await status('DELETE', `${entries}/${id}`)).toBe(200);
    expect(await read()).toEqual(['Later']);
    await ask('DELETE', named('Diary'));
    expect((await core.sql`SELECT FROM mission_log WHERE content = 'Later'`).count).toBe(0);
  });

  it('is closed to strangers, and entries of others to all but owners', async () => {
    await world().make('Shared');
    await world().subscribe('Shared');
    const { id } = (await write({ content: 'Of ada', missionNames: ['Shared'] })).body.data;
    const { id: bobs } = (await write({ content: 'Of bob', missionNames: ['Shared'] }, BOB)).body.data;
    const change = (of: string, as: CoreCaller) => write({ id: of, content: 'X', missionNames: ['Shared'] }, as, 'PUT');
    expect((await change(id, BOB)).status).toBe(403);
    expect(await status('DELETE', `${entries}/${id}`, BOB)).toBe(403);
    expect((await change(bobs, ADA)).status).toBe(201);
    expect(await status('DELETE', `${entries}/${bobs}`, BOB)).toBe(200);
    for (const as of [EVE]) {
      expect(await status('GET', `${entries}/${id}`, as)).toBe(404);
      expect((await change(id, as)).status).toBe(404);
      expect(await status('DELETE', `${entries}/${id}`, as)).toBe(404);
      expect((await write({ content: 'x', missionNames: ['Shared'] }, as)).status).toBe(404);
    }
    await world().make('Of eve', '', EVE);
    expect((await write({ id, content: 'X', missionNames: ['Of eve'] }, EVE, 'PUT')).status).toBe(404);
    expect((await write({ content: 'x', missionNames: ['Shared'] }, RON)).status).toBe(403);
    for (const json of [
      7,
      {},
      { content: 7, missionNames: ['Shared'] },
      { content: 'x', missionNames: [] },
      { content: 'x'.repeat(20_001), missionNames: ['Shared'] },
      { content: 'a\u0000', missionNames: ['Shared'] },
      { content: 'x', missionNames: ['Shared'], dtg: 'yesterday' },
      { content: 'x', missionNames: ['Shared'], id: 'mine' },
    ])
      expect((await write(json)).status).toBe(400);
    for (const bad of ['%00', 'nothing', 'x'.repeat(300)]) expect(await status('GET', `${entries}/${bad}`)).toBe(404);
  });
});
