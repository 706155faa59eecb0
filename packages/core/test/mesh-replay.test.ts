import { afterEach, describe, expect, it } from 'vitest';
import { cot, settled } from './fake-cot-stream.ts';
import { beat, closeMeshes, cluster } from './mesh-world.ts';

afterEach(closeMeshes);

type World = ReturnType<typeof cluster>;
const CHAT = (uid: string): string => cot(uid, 'b-t-f', '<__chat/>');
const chats = (client: { names(): string[] }): string[] => client.names().filter((name) => name.startsWith('b-t-f'));

async function blip(world: World, { bus }: World['nodes'][0]): Promise<void> {
  bus.turn(false);
  await settled();
  bus.turn(true);
  await settled(60);
  await beat(world, 3);
}

describe('what a node of a cluster gets again after a cut', () => {
  it('is nothing that was sent before a device came to it', async () => {
    const world = cluster();
    const {
      people,
      nodes: [a, b],
    } = world;
    for (const username of ['ada', 'ben', 'eve']) people.set(username, ['Ops']);
    await beat(world);
    const [ada, first] = [await a.report('ada'), await a.report('ben')];
    await ada.say(CHAT('m1'));
    expect(chats(first)).toEqual(['b-t-f m1']);
    await beat(world, 3);
    for (const client of [ada, first]) await client.leave();
    const [ben, eve] = [await b.report('ben'), await b.report('eve')];
    await blip(world, b);
    await (await a.report('ada')).say(CHAT('m2'));
    expect([ben, eve].map(chats)).toEqual([['b-t-f m2'], ['b-t-f m2']]);
  });

  it('does not go to a device that came during the cut, nor to one that was in another group then', async () => {
    const world = cluster();
    const {
      people,
      nodes: [a, b],
    } = world;
    for (const username of ['ada', 'ben', 'cyd']) people.set(username, ['Ops']);
    people.set('dan', ['Sea']);
    const [ada, moving, cyd, dan] = [
      await a.report('ada'),
      await a.report('ben'),
      await b.report('cyd'),
      await b.report('dan'),
    ];
    await beat(world, 2);
    a.bus.turn(false);
    await ada.say(CHAT('m1'));
    await beat(world, 1);
    await moving.leave();
    const ben = await b.report('ben');
    people.set('dan', ['Sea', 'Ops']);
    await b.stream.regroup(['dan'], undefined);
    await beat(world, 1);
    await ada.say(CHAT('m2'));
    a.bus.turn(true);
    await settled(60);
    await beat(world, 3);
    expect([ben, cyd, dan].map(chats)).toEqual([['b-t-f m2'], ['b-t-f m1', 'b-t-f m2'], ['b-t-f m2']]);
  });

  it('is also what a node has sent that was started during the cut', async () => {
    const world = cluster();
    const {
      people,
      told,
      nodes: [a, b],
    } = world;
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    // Before the two have ever met.
    a.bus.turn(false);
    const [ada, ben] = [await a.report('ada'), await b.report('ben')];
    await beat(world);
    await ada.say(CHAT('m1'));
    a.mesh.tell(Buffer.from('{"changed":"injectors"}'));
    a.bus.turn(true);
    await settled(60);
    await beat(world, 3);
    await ada.say(CHAT('m2'));
    expect(chats(ben)).toEqual(['b-t-f m1', 'b-t-f m2']);
    expect(told).toEqual(['core-2 {"changed":"injectors"}']);
  });

  it('counts as missed when a run of a node has ended without notice, and not when it has said so', async () => {
    for (const isLost of [true, false]) {
      const world = cluster();
      const {
        told,
        nodes: [a],
      } = world;
      await beat(world, 2);
      if (isLost) a.bus.isUp = false;
      await a.mesh.close();
      await beat(world, 8, a);
      world.start(0);
      await settled(60);
      expect(told).toEqual(isLost ? ['core-2 missed'] : []);
    }
  });

  it('is nothing when it had only not been concerned, however much the other one has sent', async () => {
    const world = cluster(3);
    const {
      people,
      told,
      nodes: [a, b, c],
    } = world;
    people.set('ada', ['Ops']).set('cyd', ['Ops']).set('ben', ['Sea']);
    const ada = await a.report('ada');
    await c?.report('cyd');
    await b.report('ben');
    for (let n = 0; n < 110; n++) await ada.bytes(Buffer.from(cot(`m${n}`, 'b-t-f', `<x>${'y'.repeat(200_000)}</x>`)));
    await beat(world, 2);
    await blip(world, b);
    expect(told).toEqual([]);
  });

  it('is nothing of the time before it started', async () => {
    const world = cluster();
    const {
      people,
      told,
      nodes: [a],
    } = world;
    people.set('ada', ['Ops']).set('ben', ['Ops']);
    const ada = await a.report('ada');
    await ada.say(CHAT('m1'));
    a.mesh.tell(Buffer.from('{"changed":"injectors"}'));
    await settled();
    told.splice(0);
    await beat(world);
    const { published } = world.hub;
    world.start(2);
    await settled(60);
    expect(told).toEqual([]);
    expect(world.hub.published - published).toBeLessThan(20);
  });
});
