import { afterEach, describe, expect, it } from 'vitest';
import { cot, sa, settled } from './fake-cot-stream.ts';
import { beat, closeMeshes, cluster } from './mesh-world.ts';

afterEach(closeMeshes);

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
    await beat(world, 7, a);
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
    await a.mesh.confirm();
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
