import { afterEach, describe, expect, it } from 'vitest';
import { cot, sa, settled } from './fake-cot-stream.ts';
import { beat, closeMeshes, cluster } from './mesh-world.ts';

afterEach(closeMeshes);

/** Ada is on the second node. */
async function clusterWithAda(count?: number): Promise<ReturnType<typeof cluster>> {
  const world = cluster(count);
  world.people.set('ada', ['Ops']);
  await world.nodes[1].report('ada');
  await beat(world);
  return world;
}

describe('a node that fails', () => {
  it('is written off after five seconds of silence, by one node', async () => {
    const world = cluster(3);
    const {
      people,
      went,
      nodes: [a, b, c],
    } = world;
    people.set('ada', ['Ops']).set('ben', ['Ops']).set('cyd', ['Ops']);
    await a.report('ada');
    const [ben, cyd] = [await b.report('ben'), await c?.report('cyd')];
    for (const client of [ben, cyd]) client?.forget();
    a.bus.isUp = false;
    await beat(world, 12, a);
    expect(went.map(({ uid }) => uid)).toEqual(['uid-ada']);
    for (const client of [ben, cyd]) expect(client?.names().map((name) => name.split(' ')[0])).toEqual(['t-x-d-d']);
    expect(b.stream.list()).toHaveLength(2);
  });

  it.each(['is unreachable', 'does not answer'])('keeps the others while the bus %s, however long', async (how) => {
    const world = cluster();
    const {
      people,
      clock,
      nodes: [a, b],
    } = world;
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    await a.report('ada');
    const ben = await b.report('ben');
    await beat(world);
    const fence = b.bus.fence.bind(b.bus);
    if (how === 'is unreachable') b.bus.turn(false);
    else b.bus.fence = () => Promise.reject(new Error('late'));
    a.bus.isUp = false;
    await beat(world, 60, a);
    expect(b.stream.list()).toHaveLength(2);
    b.bus.fence = fence;
    if (how === 'is unreachable') b.bus.turn(true);
    clock.ms += 900;
    await beat(world, 4, a);
    expect(b.stream.list()).toHaveLength(2);
    await beat(world, 4, a);
    expect(b.stream.list()).toHaveLength(1);
    expect(ben.names().at(-1)).toMatch(/^t-x-d-d /);
  });

  it('tells what was said during a cut once it is back, chat once and no old position', async () => {
    const world = cluster();
    const {
      people,
      nodes: [a, b],
    } = world;
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    const [ada, ben] = [await a.report('ada'), await b.report('ben')];
    await a.mesh.look();
    await ada.say(cot('m0', 'b-t-f', '<__chat/>'));
    a.bus.turn(false);
    await ada.say(sa('uid-ada', 'ADA', { type: 'a-f-G-E' }), cot('m1', 'b-m-p-s-m'));
    await ben.say(cot('m2', 'b-m-p-s-m'));
    a.bus.turn(true);
    await settled();
    expect(ben.names()).toEqual(['b-t-f m0', 'b-m-p-s-m m1']);
    await ada.say(cot('m3', 'b-m-p-s-m'));
    expect(ben.names()).toEqual(['b-t-f m0', 'b-m-p-s-m m1', 'b-m-p-s-m m3']);
  });

  it.each([1, 60])('that is cut off for %i s gets what was said meanwhile, in order, each once', async (seconds) => {
    const world = cluster(3);
    const {
      people,
      nodes: [a, b, c],
    } = world;
    people.set('ada', ['Ops']).set('ben', ['Ops', 'Air']).set('cyd', ['Sea']).set('dan', ['Ops']);
    const [ada, ben, cyd, dan] = [
      await a.report('ada'),
      await b.report('ben'),
      await b.report('cyd'),
      await c?.report('dan'),
    ];
    await beat(world);
    for (const client of [ada, ben, cyd, dan]) client?.forget();
    b.bus.turn(false);
    for (let n = 0; n < 3; n++) {
      await ada.say(cot(`a${n}`, 'b-t-f', '<__chat/>'), sa('uid-ada', 'ADA', { type: 'a-f-G-E' }));
      await dan?.say(cot(`d${n}`, 'b-m-p-s-m'));
      await ben.say(cot(`b${n}`, 'b-m-p-s-m'));
    }
    await beat(world, seconds);
    const expectedNames = ['a0', 'd0', 'a1', 'd1', 'a2', 'd2'].toSorted();
    b.bus.turn(true);
    await ada.say(cot('after', 'b-m-p-s-m'));
    await settled();
    await beat(world, 3);
    const marks = (names: string[] = []) =>
      names.filter((name) => name.startsWith('b-')).map((name) => name.split(' ')[1] ?? '');
    expect(marks(ben.names()).toSorted()).toEqual([...expectedNames, 'after'].toSorted());
    expect(marks(ben.names()).filter((name) => name.startsWith('a'))).toEqual(['a0', 'a1', 'a2', 'after']);
    expect(marks(ada.names())).toEqual(expect.arrayContaining(['b0', 'b1', 'b2', 'd0']));
    expect(marks(dan?.names()).filter((name) => name.startsWith('b'))).toEqual(['b0', 'b1', 'b2']);
    expect(marks(cyd.names())).toEqual([]);
    await ada.say(cot('last', 'b-m-p-s-m'));
    expect(marks(ben.names()).at(-1)).toBe('last');
  });

  it('that is cut off hears no old position later, and new ones at once', async () => {
    const world = cluster();
    const {
      people,
      nodes: [a, b],
    } = world;
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    const [ada, ben] = [await a.report('ada'), await b.report('ben')];
    ben.forget();
    b.bus.turn(false);
    await ada.say(sa('uid-ada', 'ADA', { type: 'a-f-G-E' }) + cot('m1', 'b-m-p-s-m'));
    b.bus.turn(true);
    await settled();
    expect(ben.names()).toEqual(['b-m-p-s-m m1']);
    await ada.say(sa('uid-ada', 'ADA', { type: 'a-f-G-I' }));
    expect(ben.names()).toEqual(['b-m-p-s-m m1', 'a-f-G-I uid-ada']);
  });

  it('that is cut off gets a large event whole', async () => {
    const {
      people,
      nodes: [a, b],
    } = cluster();
    people.set('ada', ['Ops']).set('ben', ['Ops']).set('eve', ['Ops']);
    const [ada, eve, ben] = [await a.report('ada'), await a.report('eve'), await b.report('ben')];
    for (const client of [ben, eve]) client.forget();
    b.bus.turn(false);
    await ada.say(cot('large', 'b-m-p-s-m', `<remarks>${'x'.repeat(1_500_000)}</remarks>`));
    b.bus.turn(true);
    await settled();
    expect(ben.raw().length).toBeGreaterThan(1_500_000);
    expect(ben.raw().equals(eve.raw())).toBe(true);
  });

  it.each(['that tells', 'that is told'])('%s is cut off: it learns later what is no event', async (cut) => {
    const {
      told,
      nodes: [a, b],
    } = cluster();
    await settled();
    const { bus } = cut === 'that tells' ? a : b;
    bus.turn(false);
    a.mesh.tell(Buffer.from('{"changed":"injectors"}'));
    await settled();
    expect(told).toEqual([]);
    bus.turn(true);
    await settled();
    expect(told).toEqual(['core-2 {"changed":"injectors"}']);
  });

  it('is written off also when the node that would do it fails with it, once', async () => {
    for (const secondsBetween of [0, 2, 4]) {
      const world = cluster(3);
      const {
        people,
        went,
        nodes: [a, b, c],
      } = world;
      people.set('ada', ['Ops']).set('ben', ['Ops']);
      await a.report('ada');
      await b.report('ben');
      await beat(world);
      a.bus.isUp = false;
      await beat(world, secondsBetween, a);
      b.bus.isUp = false;
      for (let n = 0; n < 12; n++) {
        world.clock.ms += 1_000;
        await c?.mesh.look();
        c?.mesh.peers.beat();
        await settled();
      }
      expect(went.map(({ uid }) => uid).toSorted()).toEqual(['uid-ada', 'uid-ben']);
    }
  });

  it.each(['ends', 'comes back', 'is followed by another run'])(
    'is not written off while it works with the database, until it %s',
    async (how) => {
      const world = await clusterWithAda(3);
      const {
        went,
        came,
        database,
        nodes: [a, b],
      } = world;
      database.working = [b];
      b.bus.turn(false);
      await beat(world, 30, b);
      expect(a.stream.list()).toEqual([]);
      expect(went).toEqual([]);
      database.working = how === 'comes back' ? undefined : [{ ...b, run: 'run-2 of another start' }];
      if (how === 'comes back') {
        b.bus.turn(true);
        await settled();
        expect(a.stream.list()).toHaveLength(1);
        database.working = [];
      }
      await beat(world, 8, how === 'comes back' ? undefined : b);
      expect(went.map(({ uid }) => uid)).toEqual(how === 'comes back' ? [] : ['uid-ada']);
      expect(came).toEqual([]);
    },
  );

  it.each([[[0, 1, 2]], [[2, 1, 0]], [[1, 2, 0]]])(
    'is written off by the one that was cut off when all others have started again, as %j',
    async (order) => {
      const world = await clusterWithAda(4);
      const {
        went,
        nodes: [, , , d],
      } = world;
      d?.bus.turn(false);
      for (const each of world.nodes) if (each !== d) await each.bus.close();
      await beat(world, 3, d);
      const started = [...order.map((index) => world.start(index)), ...(d === undefined ? [] : [d])];
      const others = { ...world, nodes: started as unknown as typeof world.nodes };
      await beat(others, 5);
      d?.bus.turn(true);
      await settled();
      await beat(others, 10);
      expect(went.map(({ uid }) => uid)).toEqual(['uid-ada']);
    },
  );

  it('is not written off when the database has restarted and another node was faster to use it', async () => {
    const world = await clusterWithAda();
    const {
      went,
      database,
      nodes: [, b],
    } = world;
    b.bus.turn(false);
    for (const [working, seconds] of [
      [[b], 10],
      [undefined, 20],
      [[], 2],
      [undefined, 20],
      [[], 2],
      [[b], 10],
      [[], 2],
      [[b], 10],
    ] as const) {
      database.working = working === undefined ? undefined : [...working];
      await beat(world, seconds, b);
      expect(went).toEqual([]);
    }
    database.working = [];
    await beat(world, 7, b);
    expect(went.map(({ uid }) => uid)).toEqual(['uid-ada']);
  });

  it.each(['stops', 'fails'])('is written off by the next node when the one that was to do it %s', async (how) => {
    const world = await clusterWithAda(3);
    const {
      went,
      database,
      nodes: [a, b, c],
    } = world;
    database.working = [b];
    b.bus.turn(false);
    await beat(world, 30, b);
    if (how === 'stops') await a.mesh.close();
    else a.bus.isUp = false;
    const others = { ...world, nodes: world.nodes.filter((each) => each === c) as typeof world.nodes };
    await beat(others, 10);
    expect(went).toEqual([]);
    database.working = [];
    await beat(others, 8);
    expect(went.map(({ uid }) => uid)).toEqual(['uid-ada']);
  });

  it('comes again with its clients, if it was only out of reach', async () => {
    const world = cluster(3);
    const {
      people,
      went,
      came,
      nodes: [, b],
    } = world;
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    await b.report('ada');
    const ben = await b.report('ben');
    await beat(world);
    b.bus.turn(false);
    await beat(world, 13, b);
    await ben.leave();
    b.bus.turn(true);
    await settled();
    expect([went, came].map((all) => all.map(({ uid }) => uid))).toEqual([['uid-ada', 'uid-ben'], ['uid-ada']]);
  });

  it('learns from a beat that it missed something', async () => {
    const world = cluster();
    const {
      people,
      nodes: [a, b],
    } = world;
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    const ben = await b.report('ben');
    b.bus.isUp = false;
    const ada = await a.report('ada');
    b.bus.isUp = true;
    expect(b.stream.list()).toHaveLength(1);
    await beat(world);
    expect(b.stream.list().map(({ username }) => username)).toEqual(['ben', 'ada']);
    await beat(world);
    await ada.say(cot('m1', 'b-m-p-s-m'));
    expect(ben.names().at(-1)).toBe('b-m-p-s-m m1');
  });

  it('passes over a message that is none of ours', async () => {
    const {
      hub,
      nodes: [a],
    } = cluster();
    const stranger = hub.bus();
    for (const subject of ['holdfast.core.all', 'holdfast.core.clients', 'holdfast.core.reports'])
      stranger.publish(subject, Buffer.from('nonsense'));
    await settled();
    expect(a.meshLog.events.filter(({ event }) => event === 'mesh.message_unreadable')).toHaveLength(3);
  });
});
