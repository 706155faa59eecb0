import { afterEach, describe, expect, it } from 'vitest';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { Mesh } from '../mesh/mesh.ts';
import { framings, stamps } from '../stream/framings.ts';
import { cot, marti, sa, settled } from './fake-cot-stream.ts';
import { announcementOf, MemoryHub } from './memory-bus.ts';
import { closeMeshes, cluster, meshes } from './mesh-world.ts';

afterEach(closeMeshes);

describe('events between nodes', () => {
  it('reach those who share a group with the sender, once, and nobody else', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops', 'Air']).set('ben', ['Ops', 'Air']).set('cyd', ['Sea']).set('dan', ['>Ops']);
    const ada = await a.report('ada');
    const [ben, cyd, dan] = [await b.report('ben'), await b.report('cyd'), await b.report('dan')];
    for (const client of [ada, ben, cyd, dan]) client.forget();
    await ada.say(cot('m1', 'b-m-p-s-m'));
    expect(ben.names()).toEqual(['b-m-p-s-m m1']);
    expect([...cyd.names(), ...dan.names(), ...ada.names()]).toEqual([]);
    await dan.say(cot('m2', 'b-m-p-s-m'));
    expect(ada.names()).toEqual(['b-m-p-s-m m2']);
  });

  it('cost a node nothing whose clients are in other groups', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']).set('cyd', ['Sea']);
    const ada = await a.report('ada');
    await b.report('cyd');
    const before = b.bus.taken;
    for (let n = 0; n < 100; n++) await ada.say(cot(`m${n}`, 'b-m-p-s-m'));
    expect(b.bus.taken).toBe(before);
  });

  it('join in one message for each set of groups in a turn', async () => {
    const {
      hub,
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    const [ada, ben] = [await a.report('ada'), await b.report('ben')];
    const before = hub.published;
    await ada.say(...Array.from({ length: 50 }, (_, n) => cot(`m${n}`, 'b-m-p-s-m')));
    expect(hub.published - before).toBe(1);
    expect(ben.names()).toEqual(Array.from({ length: 50 }, (_, n) => `b-m-p-s-m m${n}`));
  });

  it('keep every byte, also beyond the size of a message', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']).set('ben', ['Ops']).set('eve', ['Ops']);
    const [ada, eve, ben] = [await a.report('ada'), await a.report('eve'), await b.report('ben')];
    for (const bytes of [10, 300_000, 1_500_000]) {
      for (const client of [ben, eve]) client.forget();
      await ada.say(cot('large', 'b-m-p-s-m', `<remarks>${'x'.repeat(bytes)}</remarks>`));
      expect(ben.raw().length).toBeGreaterThan(bytes);
      expect(ben.raw().equals(eve.raw())).toBe(true);
    }
  });

  it('go once to each node that needs them when they are large, whatever the number of groups', async () => {
    const {
      people,
      nodes: [a, b, c],
    } = cluster(3);
    const groups = Array.from({ length: 20 }, (_, n) => `Group ${n}`);
    people.set('ada', groups).set('ben', groups).set('cyd', ['Sea']);
    const [ada, ben] = [await a.report('ada'), await b.report('ben')];
    await c?.report('cyd');
    ben.forget();
    const before = [b.bus.taken, c?.bus.taken];
    await ada.say(cot('large', 'b-m-p-s-m', `<remarks>${'x'.repeat(1_500_000)}</remarks>`), cot('m1', 'b-m-p-s-m'));
    expect(ben.names()).toEqual(['b-m-p-s-m large', 'b-m-p-s-m m1']);
    expect(b.bus.taken - (before[0] ?? 0)).toBe(6 + groups.length);
    expect(c?.bus.taken).toBe(before[1]);
  });

  it('with a named receiver reach that device alone, by uid or callsign', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']).set('ben', ['Ops']).set('cyd', ['Ops']).set('eve', ['Sea']);
    const ada = await a.report('ada');
    const [ben, cyd, eve] = [await b.report('ben'), await b.report('cyd'), await b.report('eve')];
    ben.forget();
    await ada.say(cot('m1', 'b-t-f', marti('uid="uid-ben"')), cot('m2', 'b-t-f', marti('callsign="CYD"')));
    expect(ben.names()).toEqual(['b-t-f m1']);
    expect(cyd.names()).toEqual(['b-t-f m2']);
    ada.forget();
    await ada.say(cot('m3', 'b-t-f', marti('callsign="EVE"')));
    expect(eve.names()).toEqual([]);
    expect(ada.names()).toEqual(['b-t-f-s m3']);
  });

  it('to a group and a member of it reach the member once', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops', 'Air']).set('ben', ['Air']).set('cyd', ['Ops']);
    const ada = await a.report('ada');
    const [ben, cyd] = [await b.report('ben'), await b.report('cyd')];
    await ada.say(cot('m1', 'b-m-p-s-m', marti('group="Air"', 'uid="uid-ben"', 'uid="uid-cyd"')));
    expect([ben.names(), cyd.names()]).toEqual([['b-m-p-s-m m1'], ['b-m-p-s-m m1']]);
  });

  it('to a group and a mission reach a subscriber in the group once, and one outside of it too', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops', 'Air']).set('ben', ['Air']).set('cyd', ['Ops']);
    const ada = await a.report('ada');
    const [ben, cyd] = [await b.report('ben'), await b.report('cyd')];
    a.subscribers = async () => ['ben', 'cyd'].map((username) => ({ clientUid: `uid-${username}`, username }));
    await ada.say(cot('m1', 'b-m-p-s-m', marti('group="Air"', 'mission="Search"')));
    expect([ben.names(), cyd.names()]).toEqual([['b-m-p-s-m m1'], ['b-m-p-s-m m1']]);
    ben.forget();
    await ada.say(cot('m2', 'b-m-p-s-m', marti('uid="uid-ben"', 'mission="Search"')));
    expect(ben.names()).toEqual(['b-m-p-s-m m2']);
  });

  it('that a map filter hides reach those who are named or subscribed, as on one node', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']);
    const names = ['ben', 'cyd', 'dan'];
    for (const name of [...names, ...names.map((each) => `${each}2`)]) people.set(name, ['Ops']);
    const ada = await a.report('ada');
    const box = '<boundingBox minLatitude="40" minLongitude="40" maxLatitude="50" maxLongitude="50"/>';
    const filter = `<subscription><geospatialFilter>${box}</geospatialFilter></subscription>`;
    a.subscribers = async () => ['ben', 'ben2'].map((username) => ({ clientUid: `uid-${username}`, username }));
    const clients: (typeof ada)[] = [];
    for (const name of names)
      for (const client of [await a.report(name), await b.report(`${name}2`)]) {
        await client.say(cot('f1', 't-x-c-f', filter));
        clients.push(client);
      }
    const send = async (lat: number): Promise<string[]> => {
      for (const client of clients) client.forget();
      const [mission, device, other] = ['mission="Search"', 'uid="uid-cyd"', 'uid="uid-cyd2"'];
      const event = cot('m1', 'b-m-p-s-m', marti('group="Ops"', mission, device, other));
      await ada.say(event.replace('lat="1.5" lon="2.5"', `lat="${lat}" lon="45"`));
      return clients.map((client) => client.names().join());
    };
    const hasIt = 'b-m-p-s-m m1';
    expect(await send(20)).toEqual([hasIt, hasIt, hasIt, hasIt, '', '']);
    expect(await send(45)).toEqual(clients.map(() => hasIt));
    for (const client of clients)
      await client.say(cot('f1', 't-x-c-f', '<subscription><geospatialFilter/></subscription>'));
    expect(await send(20)).toEqual(clients.map(() => hasIt));
  });

  it('go to subscribers of a mission on every node', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']).set('ben', ['Ops']).set('cyd', ['Ops']);
    const ada = await a.report('ada');
    const [ben, cyd] = [await b.report('ben'), await b.report('cyd')];
    ben.forget();
    a.subscribers = async () => [{ clientUid: 'uid-ben', username: 'ben' }];
    await ada.say(cot('m1', 'b-m-p-s-m', marti('mission="Search"')));
    expect([ben.names(), cyd.names()]).toEqual([['b-m-p-s-m m1'], []]);
  });

  it('of the server go to groups, devices and everybody', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ben', ['Ops']).set('cyd', ['Sea']);
    const [ben, cyd] = [await b.report('ben'), await b.report('cyd')];
    const event = (uid: string) => ({ uid, type: 't-x-m-c', how: 'h-g-i-g-o', staleMs: 60_000, detail: '' });
    a.stream.toPlaces([a.placeOf('Ops') ?? 0], event('one'));
    a.stream.toPlaces([a.placeOf('Ops') ?? 0], event('two'), 'uid-ben');
    await settled();
    expect(ben.names()).toEqual(['t-x-m-c one']);
    a.stream.toDevices([{ clientUid: 'uid-cyd', username: 'cyd' }], event('three'));
    expect(a.stream.toEverybody(event('four'))).toBe(2);
    await settled();
    expect(cyd.names()).toEqual(['t-x-m-c three', 't-x-m-c four']);
    expect(ben.names()).toEqual(['t-x-m-c one', 't-x-m-c four']);
  });
});

describe('clients of other nodes', () => {
  it('show their newest report to whoever connects later, by group', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']).set('cyd', ['Sea']).set('ben', ['Ops']).set('eve', ['Ops']);
    const ada = await a.report('ada');
    await a.report('cyd');
    await ada.say(sa('uid-ada', 'ADA', { type: 'a-f-G-U-I' }));
    const ben = await b.join('ben');
    expect(ben.names().filter((name) => name.startsWith('a-'))).toEqual(['a-f-G-U-I uid-ada']);
    await ada.say(sa('uid-ada', 'ADA', { type: 'a-f-G-E' }));
    const eve = await b.join('eve');
    expect(eve.names().filter((name) => name.startsWith('a-'))).toEqual(['a-f-G-E uid-ada']);
  });

  it('show up and vanish when groups change on either side', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']).set('ben', ['Sea']);
    const ada = await a.report('ada');
    const ben = await b.report('ben');
    people.set('ben', ['Ops']);
    await b.stream.regroup(['ben'], undefined);
    await settled();
    expect(ben.names().filter((name) => name.startsWith('a-'))).toEqual(['a-f-G-U-C uid-ada']);
    expect(ada.names().filter((name) => name.startsWith('a-'))).toEqual(['a-f-G-U-C uid-ben']);
    people.set('ben', ['Sea']);
    await b.stream.regroup(['ben'], undefined);
    await settled();
    for (const client of [ada, ben]) client.forget();
    await ada.say(cot('m1', 'b-m-p-s-m'));
    await ben.say(cot('m2', 'b-m-p-s-m'));
    expect([ada.names(), ben.names()]).toEqual([[], []]);
  });

  it('show up also when their list is larger than a message of the bus', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops', ...Array.from({ length: 2_000 }, (_, n) => `Group ${'x'.repeat(200)} ${n}`)]);
    people.set('ben', ['Ops']);
    const ada = await a.report('ada');
    a.bus.turn(false);
    a.bus.turn(true);
    await settled();
    expect(b.stream.list().map(({ username }) => username)).toEqual(['ada']);
    const ben = await b.report('ben');
    await ben.say(cot('m1', 'b-m-p-s-m'));
    expect(ada.names().at(-1)).toBe('b-m-p-s-m m1');
    expect([...a.meshLog.events, ...b.meshLog.events].map(({ event }) => event)).not.toContain(
      'mesh.message_unreadable',
    );
  });

  it('are said to have left, unless they came back on another node', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    const ben = await b.report('ben');
    const first = await a.report('ada');
    ben.forget();
    const second = await b.report('ada');
    await first.leave();
    expect(ben.names().filter((name) => name.startsWith('t-x-d-d'))).toEqual([]);
    await second.leave();
    expect(ben.names().filter((name) => name.startsWith('t-x-d-d'))).toHaveLength(1);
    expect(b.presence.filter(({ what, who }) => what === 'went' && who.username === 'ada')).toHaveLength(1);
    expect(a.presence.filter(({ what }) => what === 'went')).toEqual([]);
  });

  it('have other numbers after each start of their node', () => {
    const hub = new MemoryHub();
    const firstNumber = (index: number, at: string): number => {
      const { bus, log, now } = { bus: hub.bus(), log: memoryLog(), now: () => new Date(at) };
      const { redeliver } = framings(1024);
      const nothing = (): void => undefined;
      const told = {
        control: nothing,
        missed: nothing,
        joined: nothing,
        went: nothing,
        came: nothing,
        working: async () => [],
      };
      const rest = { ...told, stampAt: stamps('node1'), steadyMs: () => 0, redeliver, log, now };
      const mesh = new Mesh({ node: 'core', run: at, index, announcement: () => announcementOf('core'), bus, ...rest });
      meshes.push(mesh);
      return mesh.firstNumber;
    };
    const [before, after] = [firstNumber(1, '2026-11-22T05:30:00Z'), firstNumber(1, '2026-11-22T05:30:10Z')];
    expect(after).toBeGreaterThan(before);
    expect(firstNumber(0, '2126-11-22T05:30:00Z')).toBeLessThan(before);
    expect(Number.isSafeInteger(firstNumber(500, '2026-11-22T05:30:00Z'))).toBe(true);
  });

  it('show the last position of whoever leaves before the notice', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster(2, [{ clients: 1, seconds: 10 }]);
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    const [ada, ben] = [await a.report('ada'), await b.report('ben')];
    ben.forget();
    await ada.say(sa('uid-ada', 'ADA', { type: 'a-f-G-E' }));
    expect(ben.names()).toEqual([]);
    await ada.leave();
    expect(ben.names()).toEqual(['a-f-G-E uid-ada', expect.stringMatching(/^t-x-d-d /)]);
  });

  it('count for thinning, wherever they are', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster(2, [{ clients: 3, seconds: 10 }]);
    people.set('ada', ['Ops']).set('ben', ['Ops']).set('cyd', ['Ops']);
    await a.report('ada');
    await b.report('ben');
    expect(a.stream.counts().thinning.seconds).toBe(0);
    const cyd = await b.report('cyd');
    expect([a, b].map(({ stream }) => stream.counts().thinning.seconds)).toEqual([10, 10]);
    await cyd.leave();
    expect(a.stream.counts().thinning.seconds).toBe(0);
  });

  it('are in the list of every node, with their node, and can be disconnected from there', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    await a.report('ada');
    const ben = await b.report('ben');
    const shown = a.stream.list().map(({ clientUid, node, username }) => [clientUid, node, username]);
    expect(shown).toEqual([
      ['uid-ada', undefined, 'ada'],
      ['uid-ben', 'core-2', 'ben'],
    ]);
    expect(a.stream.end(a.stream.list()[1]?.subscriptionUid ?? '')).toBe(true);
    await settled();
    expect(ben.isOpen).toBe(false);
    expect(a.stream.list()).toHaveLength(1);
    expect(a.stream.end('uid-ben')).toBe(false);
  });
});
