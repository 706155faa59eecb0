// Somebody on the stream who means harm: takes the uid of another, makes himself large.

import { describe, expect, it } from 'vitest';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import type { Presence } from '../model/stream.ts';
import { StoredPresenceLog } from '../stream/presence-log.ts';
import { cot, cotWorld, marti, sa, settled } from './fake-cot-stream.ts';

const notice = { uid: 'n1', type: 't-x-m-c', how: 'h-g-i-g-o', staleMs: 1_000, detail: '' };

/** Mallory is in the group of Ada and Bob, Mel is not; both give Bob's uid, after him. */
async function taken() {
  const world = cotWorld();
  for (const name of ['ada', 'bob', 'mallory']) world.people.set(name, ['Ops']);
  world.people.set('mel', ['Med']);
  const [ada, bob] = [await world.report('ada'), await world.report('bob')];
  const mallory = await world.report('mallory', 'uid-bob', 'BOB');
  const mel = await world.report('mel', 'uid-bob', 'BOB');
  for (const client of [ada, bob, mallory, mel]) client.forget();
  return { world, ada, bob, mallory, mel };
}

describe('whoever gives the uid of another', () => {
  it('takes nothing away from them that is sent to it, nor by the callsign', async () => {
    const { ada, bob, mel } = await taken();
    await ada.say(cot('c1', 'b-t-f', marti('uid="uid-bob"')), cot('c2', 'b-t-f', marti('callsign="BOB"')));
    expect([bob.names(), mel.names(), ada.names()]).toEqual([['b-t-f c1', 'b-t-f c2'], [], []]);
  });

  it('hears nothing of the missions that the other is subscribed to', async () => {
    const { world, ada, bob, mallory, mel } = await taken();
    world.stream.toDevices([{ clientUid: 'uid-bob', username: 'Bob' }], notice);
    world.subscribers = async () => [{ clientUid: 'uid-bob', username: 'bob' }];
    await ada.say(cot('m1', 'b-m-p', marti('mission="Search"')));
    expect([bob.names(), mallory.names(), mel.names()]).toEqual([['t-x-m-c n1', 'b-m-p m1'], [], []]);
  });

  it('makes nobody who hears the other believe that the other has left', async () => {
    const { ada, bob, mallory, mel } = await taken();
    await mallory.leave();
    await mel.leave();
    expect(ada.names()).toEqual([]);
    await bob.leave();
    expect(ada.names()).toEqual([expect.stringMatching(/^t-x-d-d /)]);
  });
});

describe('a report', () => {
  it('that was for one device or group is not shown to those who come later, nor stored for everybody', async () => {
    const { world, ada } = await taken();
    await ada.say(sa('uid-ada', 'ADA', { type: 'a-f-G-E', detail: marti('uid="uid-bob"') }));
    expect(world.stored.at(-1)).toMatchObject({ type: 'a-f-G-E', places: [] });
    const late = await world.join('bob');
    expect(late.names()).toContain('a-f-G-U-C uid-ada');
    expect(late.names()).not.toContain('a-f-G-E uid-ada');
  });

  it('with texts of megabytes binds nothing of that size', async () => {
    const world = cotWorld();
    const [ada, bob] = [await world.join('ada'), await world.join('bob')];
    await ada.say(sa('u'.repeat(257), 'ADA'));
    expect(world.presence).toEqual([]);
    await bob.say(sa('uid-bob', 'é\u{1F600}'.repeat(200), { type: `a-${'f'.repeat(999)}` }));
    const { callsign, clientUid } = world.stream.list()[1] ?? {};
    expect([clientUid, callsign?.length]).toEqual(['uid-bob', 256]);
    await bob.leave();
    expect(ada.heard().at(-1)).toContain(`type="a-${'f'.repeat(254)}"`);
  });
});

describe('somebody with very many connections', () => {
  it('who switches groups costs one question, and one change in each turn of the event loop', async () => {
    const world = cotWorld();
    world.people.set('mallory', ['Ops']);
    for (let n = 0; n < 20; n++) await world.report('mallory', `uid-${n}`);
    world.people.set('mallory', ['Ops', 'Med']);
    world.requested = 0;
    const changed = (): number => world.stream.list().filter(({ groups }) => groups.length === 4).length;
    const done = world.stream.regroup(['mallory'], undefined);
    await new Promise((resolve) => setImmediate(resolve));
    expect(changed()).toBeLessThan(5);
    await done;
    expect([changed(), world.requested]).toEqual([20, 1]);
  });

  it('who comes and goes again and again does not fill the tables, and the log says it once', async () => {
    const rows: string[] = [];
    const log = memoryLog();
    const store = {
      ids: async (count: number) => Array.from({ length: count }, (_, n) => n),
      write: async (given: readonly { who: Presence; kind: string }[]) =>
        void rows.push(...given.map(({ who, kind }) => `${kind} ${who.username}`)),
      everybodyWent: async () => undefined,
    };
    const at = new Date('2026-11-22T05:30:00Z');
    const noSql = (): never => {
      throw new Error('nothing is asked of a database');
    };
    const presence = new StoredPresenceLog(noSql, log, { now: () => at, store });
    const who = { callsign: 'M', uid: 'm', username: 'mallory', team: '', role: '', clientVersion: '', places: [] };
    for (let n = 0; n < 1_100; n++) {
      const came = { ...who, uid: `m-${n}` };
      presence.came(came, at);
      presence.went(came, at);
    }
    presence.came({ ...who, username: 'ada' }, at);
    await settled();
    await presence.close(1_000);
    const of = (row: string): number => rows.filter((each) => each === row).length;
    expect(['Connected mallory', 'Disconnected mallory', 'Connected ada'].map(of)).toEqual([1_000, 1_000, 1]);
    expect(log.events.filter(({ event }) => event === 'presence.too_often')).toHaveLength(1);
  });
});
