// /Marti/api/clientEndPoints, subscriptions and contacts, against the reference.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CoreCaller, Membership } from '../model/parts.ts';
import type { ClientEndpoint, EndpointQuery } from '../store/presence.ts';
import { ADMIN, adminWorld, byCertificate, START, subscription } from './fake-core-admin.ts';

const ADA = byCertificate('ada');
const IN_AIR: Membership = { name: 'Air', direction: 'IN' };
const OUT_OPS: Membership = { name: 'Ops', direction: 'OUT' };

let world: ReturnType<typeof adminWorld>;
beforeEach(() => {
  world = adminWorld();
  for (const name of ['core_Ops', 'core_Air_WRITE', 'core_Sea']) world.people.addGroup(name);
  world.people.addPerson('ada', 'x').groups.push('core_Ops', 'core_Air_WRITE');
  world.people.addPerson('bob', 'x').groups.push('core_Sea');
});
afterEach(() => world.end());

describe('client end points', () => {
  const row: ClientEndpoint = {
    callsign: 'ADA',
    uid: 'uid-ada',
    username: 'ada',
    team: null,
    role: 'Medic',
    lastEventTime: new Date(START),
    lastStatus: 'Connected',
  };
  let requests: EndpointQuery[];
  beforeEach(() => {
    requests = [];
    world.options.endpoints.list = async (query) => {
      requests.push(query);
      return [row];
    };
  });
  const ask = (query: string, as: CoreCaller = ADA) => world.ask('GET', `/Marti/api/clientEndPoints${query}`, { as });

  it('are shown with texts only', async () => {
    const { body } = await ask('');
    expect(body).toMatchObject({ type: 'com.bbn.marti.remote.ClientEndpoint' });
    expect(body.data).toEqual([{ ...row, team: '', lastEventTime: '2026-11-22T10:20:30.7Z' }]);
  });

  it('are those of the groups that the caller receives from; an admin sees all', async () => {
    await ask('');
    await ask('', ADMIN);
    expect(requests.map(({ groups }) => groups)).toEqual([[3], 'all']);
  });

  it('are filtered', async () => {
    await ask('?secAgo=60&showCurrentlyConnectedClients=TRUE&showMostRecentOnly=true&group=Ops');
    expect(requests).toEqual([{ groups: [3], since: new Date(START - 60_000), connectedOnly: true, newestOnly: true }]);
    await ask('?showCurrentlyConnectedClients=yes&secAgo=');
    expect(requests[1]).toEqual({ groups: [3], since: undefined, connectedOnly: false, newestOnly: false });
  });

  it('of a group that is none of the own ones are forbidden', async () => {
    for (const group of ['Sea', 'Air', 'none'])
      expect((await ask(`?group=Ops&group=${group}`)).body).toMatchObject({ status: 'FORBIDDEN', code: 10 });
    expect((await ask('?group=none', ADMIN)).status).toBe(404);
    expect(requests).toEqual([]);
  });

  it.each(['-1', '1.5', 'x', '9999999999999999'])('of %s seconds ago are none', async (seconds) => {
    expect((await ask(`?secAgo=${seconds}`)).body).toMatchObject({ code: 2 });
  });

  it('of all seconds since the beginning of time are all', async () => {
    expect((await ask('?secAgo=999999999999999')).status).toBe(200);
    expect(requests[0]?.since).toEqual(new Date(0));
  });

  it('are the same for 5 s, for the same question only', async () => {
    await ask('');
    await ask('?secAgo=60');
    await ask('');
    await ask('', byCertificate('bob'));
    expect(requests).toHaveLength(3);
    world.later(5_000);
    await ask('');
    expect(requests).toHaveLength(4);
  });

  it('are kept for a few questions only', async () => {
    for (let seconds = 1; seconds <= 21; seconds++) await ask(`?secAgo=${seconds}`);
    await ask('?secAgo=1');
    expect(requests).toHaveLength(22);
  });
});

describe('subscriptions', () => {
  const uids = async (query = '', as: CoreCaller = ADMIN): Promise<string[]> => {
    const { body } = await world.ask('GET', `/Marti/api/subscriptions/all${query}`, { as });
    return (body as { data: { clientUid: string }[] }).data.map(({ clientUid }) => clientUid);
  };
  beforeEach(() => {
    world.subscriptions.push(
      subscription('carl', { callsign: 'AAA' }),
      subscription('bob', { groups: [{ name: 'Sea', direction: 'OUT' }], callsign: '' }),
      subscription('ada'),
      subscription('dora', { groups: [IN_AIR], callsign: 'ZZZ' }),
      subscription('evan', { groups: [OUT_OPS], callsign: 'YYY' }),
    );
  });

  it('are shown with every member', async () => {
    world.subscriptions.splice(0, 2);
    const { body } = await world.ask('GET', '/Marti/api/subscriptions/all');
    expect(body).toMatchObject({ version: '3', type: 'SubscriptionInfo' });
    const unknown =
      'appFramerate battery batteryStatus batteryTemp deviceDataRx deviceDataTx heapCurrentSize heapFreeSize heapMaxSize ' +
      'deviceIPAddress storageAvailable storageTotal';
    const group = { name: 'Ops', created: '2026-11-22', type: 'LDAP', bitpos: 3, active: true };
    expect(body.data[0]).toEqual({
      dn: 'CN=ada,OU=CoT,O=Holdfast',
      callsign: 'ADA',
      clientUid: 'uid-ada',
      lastReportMilliseconds: START - 1500,
      lastReportDiffMilliseconds: 1500,
      takClient: 'ATAK-CIV',
      takVersion: '5.3.0',
      username: 'ada',
      groups: [
        { ...group, direction: 'IN' },
        { ...group, direction: 'OUT' },
      ],
      role: 'Team Member',
      team: 'Cyan',
      ipAddress: '127.0.0.1',
      port: '50001',
      pendingWrites: 0,
      numProcessed: 7,
      protocol: 'tls',
      framing: 'xml',
      xpath: null,
      subscriptionUid: 'tls:3',
      ...Object.fromEntries(unknown.split(' ').map((name) => [name, ''])),
      incognito: false,
      handlerType: '',
    });
  });

  it('have the positions of their newest reports, when somebody asks for them', async () => {
    const position = { lat: 47.5, lon: 8.25, hae: null, time: new Date(START) };
    world.subscriptions.splice(0, 5, { ...subscription('ada'), position: () => position }, subscription('bob'));
    const { body } = await world.ask('GET', '/Marti/api/subscriptions/all?positions=true');
    expect(body.data).toMatchObject([
      { clientUid: 'uid-ada', position: { ...position, time: position.time.toISOString() } },
      { clientUid: 'uid-bob', position: null },
    ]);
    expect((await world.ask('GET', '/Marti/api/subscriptions/all')).body.data[0]).not.toHaveProperty('position');
  });

  it('are sorted and paged', async () => {
    const byCallsign = ['uid-carl', 'uid-ada', 'uid-evan', 'uid-dora', 'uid-bob'];
    expect(await uids()).toEqual(byCallsign);
    expect(await uids('?direction=DESCENDING')).toEqual(byCallsign.toReversed());
    expect(await uids('?sortBy=UID')).toEqual(byCallsign.toSorted());
    expect(await uids('?page=1&limit=2')).toEqual(byCallsign.slice(0, 2));
    expect(await uids('?page=3&limit=2')).toEqual(byCallsign.slice(4));
    expect(await uids('?page=9&limit=2')).toEqual([]);
    expect(await uids('?page=-1&limit=-1')).toEqual(byCallsign);
  });

  it.each(['sortBy=NAME', 'direction=UP', 'page=x', 'limit=-2'])('are not sorted by ?%s', async (query) => {
    expect((await world.ask('GET', `/Marti/api/subscriptions/all?${query}`)).body).toMatchObject({ code: 2 });
  });

  it('are, for somebody who is no admin, the own ones and those whose events arrive', async () => {
    expect(await uids('', ADA)).toEqual(['uid-carl', 'uid-ada']);
    expect(await uids('', byCertificate('bob'))).toEqual(['uid-bob']);
    expect(await uids('', byCertificate('nobody'))).toEqual([]);
    const off = [{ name: 'Ops', direction: 'OUT', active: false }];
    await world.ask('PUT', '/Marti/api/groups/active', { as: ADA, json: off });
    expect(await uids('', ADA)).toEqual(['uid-ada']);
  });

  it('are read by the uid of the client; 404 without data for one that is not seen', async () => {
    const read = (uid: string, as: CoreCaller) => world.ask('GET', `/Marti/api/subscription/${uid}`, { as });
    expect((await read('uid-carl', ADA)).body.data.callsign).toBe('AAA');
    expect((await read('uid-bob', ADMIN)).body.data.callsign).toBe('uid-bob');
    const { status, body } = await read('uid-bob', ADA);
    expect([status, body.type, 'data' in body]).toEqual([404, 'SubscriptionInfo', false]);
    expect((await read('none', ADMIN)).status).toBe(404);
  });

  it('are ended by an admin; an unknown one is 400', async () => {
    const end = (uid: string) => world.ask('DELETE', `/Marti/api/subscriptions/delete/${uid}`);
    expect(await end('uid-carl')).toMatchObject({ status: 200, body: { type: 'String' } });
    expect(await uids()).not.toContain('uid-carl');
    expect((await end('uid-carl')).body).toMatchObject({ status: 'BAD_REQUEST', code: 2 });
  });

  it('are contacts, in a bare array, as soon as they have reported', async () => {
    world.subscriptions.push(subscription('carl', { clientUid: '', callsign: '', takClient: '', takVersion: '' }));
    const { type, body } = await world.ask('GET', '/Marti/api/contacts/all', { as: ADA });
    expect(type).toBe('application/json');
    expect(body[1]).toEqual({
      filterGroups: null,
      notes: 'ada',
      callsign: 'ADA',
      team: 'Cyan',
      role: 'Team Member',
      takv: 'ATAK-CIV:5.3.0',
      uid: 'uid-ada',
    });
    expect(body).toHaveLength(2);
    const { body: lite } = await world.ask('GET', '/Marti/api/contacts/all/lite', { as: ADA });
    const { body: full } = await world.ask('GET', '/Marti/api/contacts/all/full?sortBy=UID', { as: ADA });
    expect(lite).toEqual(body);
    expect(full[0]).toMatchObject({ uid: 'uid-ada', notes: 'ada', clientUid: 'uid-ada', subscriptionUid: 'tls:3' });
  });
});
