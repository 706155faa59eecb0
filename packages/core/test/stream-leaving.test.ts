// What a client has sent before it closed: it counts, also while its connection rests; not after
// the server has ended it.

import { describe, expect, it } from 'vitest';
import type { StreamDevice } from '../model/stream.ts';
import { cot, cotWorld, marti, sa, settled } from './fake-cot-stream.ts';

const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `m${n}`);
const toMission = (name: string): string => cot(name, 'b-m-p', marti('mission="Search"'));

/** Ada rests: a mission is asked until `answer`, each time. */
async function asking() {
  const world = cotWorld();
  const bob = await world.report('bob');
  const ada = await world.report('ada');
  bob.forget();
  let answer: () => void = () => undefined;
  world.subscribers = () =>
    new Promise<StreamDevice[]>((resolve) => (answer = () => resolve([{ clientUid: 'uid-bob', username: 'bob' }])));
  return { world, ada, bob, answer: () => settled().then(() => answer()) };
}

/** Bob hears ada until the archive has three of her events, and then no more before it has room. */
async function full() {
  const world = cotWorld();
  const bob = await world.report('bob');
  const ada = await world.report('ada');
  bob.forget();
  world.stored.splice(0);
  let isSlow = true;
  Object.defineProperty(world, 'isFull', {
    get: () => isSlow && world.stored.length >= 3,
    set(value: boolean) {
      isSlow = value;
    },
  });
  return { world, ada, bob };
}

describe('a client that closes while its connection rests', () => {
  it('has sent all that it has sent when missions are asked, in order', async () => {
    const { world, ada, bob, answer } = await asking();
    await ada.say(...names(10).map(toMission));
    await ada.close();
    for (let n = 0; n < 10; n++) await answer();
    await settled();
    expect(bob.names()).toEqual([...names(10).map((name) => `b-m-p ${name}`), expect.stringMatching(/^t-x-d-d /)]);
    expect(world.stored.slice(-10).map(({ uid }) => uid)).toEqual(names(10));
    expect([ada.isOpen, world.stream.list().length]).toEqual([false, 1]);
    const line = world.log.events.find(({ event }) => event === 'stream.disconnected');
    expect(line?.fields['reason']).toBe('closed by the client');
  });

  it('has sent all that it has sent when the archive is full', async () => {
    const { world, ada, bob } = await full();
    await ada.say(...names(10).map((name) => cot(name, 'a-h-G')));
    await ada.close();
    expect([bob.names().length, world.stored.length]).toEqual([3, 3]);
    world.room();
    await settled();
    expect(bob.names()).toEqual([...names(10).map((name) => `a-h-G ${name}`), expect.stringMatching(/^t-x-d-d /)]);
    expect([ada.isOpen, world.stored.length, world.stream.list().length]).toEqual([false, 10, 1]);
  });

  it('is sent nothing more', async () => {
    const { ada, bob, answer } = await asking();
    await ada.say(toMission('m1'));
    await ada.close();
    ada.forget();
    await bob.say(sa('uid-bob', 'BOB'));
    expect([ada.isOpen, ada.names()]).toEqual([true, []]);
    await answer();
    await settled();
    expect([ada.isOpen, ada.names()]).toEqual([false, []]);
  });

  it.each<[string, (of: Awaited<ReturnType<typeof asking>>) => unknown]>([
    ['its certificate is revoked', ({ ada }) => ada.socket.destroy()],
    ['an administrator ends it', ({ world }) => world.stream.end(world.stream.list().at(-1)?.subscriptionUid ?? '')],
    ['the server stops', ({ world }) => world.stream.close()],
  ])('is heard no more when %s', async (_, end) => {
    const all = await asking();
    const { world, ada, answer } = all;
    await ada.say(...names(3).map(toMission));
    const before = world.stored.length;
    await ada.close();
    expect(world.stream.list()).toHaveLength(2);
    await end(all);
    await answer();
    await settled();
    expect([ada.isOpen, world.stored.length, world.posts.length]).toEqual([false, before, 1]);
    expect(world.stream.list().some(({ username }) => username === 'ada')).toBe(false);
  });
});
