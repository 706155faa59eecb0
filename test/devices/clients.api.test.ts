import { beforeEach, describe, expect, it } from 'vitest';
import { VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
});

async function ask(method: string, path: string, headers?: Record<string, string>): Promise<[number, unknown]> {
  const response = await world.ask(method, path, undefined, headers);
  const text = await response.text();
  return [response.status, text === '' ? undefined : JSON.parse(text)];
}
const listed = async (query = ''): Promise<string[]> => {
  const [, page] = await ask('GET', `/api/clients${query}`, VIEWER);
  return (page as { results: { uid: string }[] }).results.map(({ uid }) => uid);
};

describe('GET /api/clients', () => {
  it('shows who is connected, with channels as they are called here', async () => {
    const { theCore } = world.deps;
    const client = theCore.online('ada', 'ANDROID-1');
    client.groups = ['Red', '__ANON__', 'Blue'];
    client.lastReport = null;
    expect(await ask('GET', '/api/clients', VIEWER)).toEqual([
      200,
      {
        results: [
          {
            uid: 'ANDROID-1',
            callsign: 'ADA',
            username: 'ada',
            groups: ['__ANON__', 'core_Blue', 'core_Red'],
            team: 'Cyan',
            role: 'Team Member',
            device: 'ATAK 5.1',
            address: '192.0.2.9',
            framing: 'protobuf',
            since: client.since,
            last_report: null,
          },
        ],
        count: 1,
        page: 1,
        page_size: 50,
      },
    ]);
  });

  it('names the core node where there are several', async () => {
    world.deps.theCore.online('ada', 'ANDROID-1').node = 'core-2';
    world.deps.theCore.online('bob', 'ANDROID-2');
    const [, answer] = await ask('GET', '/api/clients', VIEWER);
    const { results } = answer as { results: { uid: string; node?: string }[] };
    expect(results.map(({ uid, node }) => [uid, node])).toEqual([
      ['ANDROID-1', 'core-2'],
      ['ANDROID-2', undefined],
    ]);
  });

  it('sorts by callsign without regard to case, and gives pages', async () => {
    for (const [name, callsign] of [
      ['a', 'zulu'],
      ['b', 'Alpha'],
      ['c', 'mike'],
    ] as const)
      world.deps.theCore.online(name, name).callsign = callsign;
    expect(await listed()).toEqual(['b', 'c', 'a']);
    expect([await listed('?page=2&page_size=2'), await listed('?page=9')]).toEqual([['a'], []]);
    expect((await ask('GET', '/api/clients?page=9'))[1]).toMatchObject({ count: 3, page: 9 });
  });

  it("leaves out the stack's own probe and canary, in any case", async () => {
    for (const name of ['svc_probe', 'SVC_Canary', 'svc_nodered']) world.deps.theCore.online(name, name);
    expect(await listed()).toEqual(['svc_nodered']);
  });

  it('names one that has not reported yet by its connection', async () => {
    const { connection } = world.deps.theCore.online('ada', '');
    expect(await listed()).toEqual([connection]);
    expect(await ask('DELETE', `/api/clients/${connection}`)).toEqual([204, undefined]);
    expect(await listed()).toEqual([]);
  });

  it('is 503 while the core does not answer', async () => {
    world.deps.theCore.mood = 'down';
    expect((await ask('GET', '/api/clients'))[0]).toBe(503);
  });
});

describe('DELETE /api/clients/{uid}', () => {
  it('ends that connection and no other, and is audited', async () => {
    for (const name of ['ada', 'bob']) world.deps.theCore.online(name, name);
    expect(await ask('DELETE', '/api/clients/ada')).toEqual([204, undefined]);
    expect(await listed()).toEqual(['bob']);
    expect(world.deps.audit.records).toMatchObject([
      { action: 'client.disconnect', target: 'ada', phase: 'intent', actor: 'webadmin' },
      { action: 'client.disconnect', target: 'ada', phase: 'outcome', result: 'ok' },
    ]);
    expect(JSON.parse(world.deps.audit.records[0]?.detail ?? '')).toMatchObject({ username: 'ada', callsign: 'ADA' });
  });

  it.each(['S-1-5-21-{a}', 'a/b', 'a b?c=d#e', '%41', 'ü😀', 'a+b', '../../x', 'GeoChat.a:b', '%2F'])(
    'takes any characters in the uid: %j',
    async (uid) => {
      world.deps.theCore.online('ada', uid);
      const path = `/api/clients/${encodeURIComponent(uid)}`;
      const found = world.deps.theCore.clients.length;
      expect([await ask('DELETE', path), found]).toEqual([[204, undefined], 1]);
      expect(await listed()).toEqual([]);
    },
  );

  it('takes the name of the connection too: no address can end in the uid ".."', async () => {
    const { connection } = world.deps.theCore.online('ada', '..');
    expect((await ask('DELETE', `/api/clients/${connection}`))[0]).toBe(204);
    expect(await listed()).toEqual([]);
  });

  it('ends all connections of that uid of one person, and nobody else who has chosen the same', async () => {
    const { theCore } = world.deps;
    for (const name of ['ada', 'bob', 'svc_probe', 'ADA']) theCore.online(name, 'SAME');
    const [first, , , again] = theCore.clients;
    expect(await ask('DELETE', '/api/clients/SAME')).toEqual([204, undefined]);
    expect(theCore.clients.map(({ username }) => username)).toEqual(['bob', 'svc_probe']);
    expect(JSON.parse(world.deps.audit.records[0]?.detail ?? '')).toMatchObject({
      username: 'ada',
      connections: [first?.connection, again?.connection],
    });
  });

  it('is 404 for one that is not connected, and for the probe', async () => {
    world.deps.theCore.online('svc_probe', 'probe');
    for (const uid of ['nobody', 'probe']) expect((await ask('DELETE', `/api/clients/${uid}`))[0]).toBe(404);
    expect(world.deps.theCore.clients).toHaveLength(1);
    expect(world.deps.audit.records).toEqual([]);
  });

  it('is 422 for a uid that is longer than any', async () => {
    expect((await ask('DELETE', `/api/clients/${'x'.repeat(257)}`))[0]).toBe(422);
  });

  it('is 404 when it has gone by itself meanwhile, and says so in the audit log', async () => {
    world.deps.theCore.online('ada', 'ada');
    world.deps.core.disconnect = async () => false;
    expect((await ask('DELETE', '/api/clients/ada'))[0]).toBe(404);
    expect(world.deps.audit.records.at(-1)).toMatchObject({ phase: 'outcome', result: 'failed' });
  });
});
