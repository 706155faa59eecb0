// Coming, being there and going: the order after connect, position reports, changed groups, who is
// let in.

import { describe, expect, it } from 'vitest';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { StreamEvents } from '../stream/stream-events.ts';
import { cot, cotWorld, marti, sa, settled } from './fake-cot-stream.ts';

const types = (names: string[]): string[] => names.map((name) => name.split(' ')[0] ?? '');

function ops() {
  const world = cotWorld();
  for (const name of ['ada', 'bob']) world.people.set(name, ['Ops']);
  world.people.set('cid', ['Med']);
  return world;
}

describe('after connect', () => {
  it('come the newest reports of all whom it can hear, then what the server speaks', async () => {
    const world = ops();
    const ada = await world.report('ada');
    await world.report('cid');
    await ada.say(sa('uid-ada', 'ADA', { type: 'a-f-G-E' }));
    const bob = await world.join('bob');
    expect(bob.names()[0]).toBe('a-f-G-E uid-ada');
    expect(types(bob.names())).toEqual(['a-f-G-E', 't-x-takp-v']);
    expect(bob.heard()[1]).toContain('<TakServerVersionInfo serverVersion="5.7-RELEASE-0" apiVersion="3"/>');
  });

  it('come as many of the newest reports as may wait for a reader, and the oldest clients are left out', async () => {
    const world = cotWorld({ maxWaitingBytes: 300_000 });
    const long = `<remarks>${'x'.repeat(7_000)}</remarks>`;
    for (let n = 0; n < 80; n++) await (await world.join(`user${n}`)).say(sa(`u${n}`, `C${n}`, { detail: long }));
    const before = world.stream.counts().dropped;
    const bob = await world.join('bob');
    const names = bob.names();
    expect(names.at(-1)).toContain('t-x-takp-v');
    const heard = names.slice(0, -1);
    expect(heard.length).toBeGreaterThan(300_000 / 8_000);
    expect(heard).toEqual(Array.from({ length: heard.length }, (_, n) => `a-f-G-U-C u${80 - heard.length + n}`));
    expect(world.stream.counts().dropped - before).toBe(80 - heard.length);
    expect(heard.length).toBeLessThan(80);
  });

  it('what was said before the groups were known counts', async () => {
    const world = ops();
    const bob = await world.report('bob');
    let know: () => void = () => undefined;
    world.groupsKnown = new Promise((resolve) => (know = resolve));
    const ada = await world.join('ada');
    await ada.bytes(
      Buffer.from(`<?xml version="1.0"?>\n<auth><cot username="x" password="y"/></auth>${cot('m1', 'a-h-G')}`),
    );
    expect([ada.heard(), bob.names()]).toEqual([[], []]);
    know();
    await settled();
    expect(bob.names()).toEqual(['a-h-G m1']);
  });

  it('groups that change while they are asked for are asked for again', async () => {
    const world = ops();
    const bob = await world.report('bob');
    let know: () => void = () => undefined;
    world.groupsKnown = new Promise((resolve) => (know = resolve));
    const ada = await world.join('ada');
    world.people.set('ada', ['Med']);
    await world.stream.regroup(['ADA'], undefined);
    know();
    await ada.say(cot('m1', 'a-h-G'));
    expect([bob.names(), types(ada.names())]).toEqual([[], ['t-x-takp-v']]);
  });

  it('an account that is not active is turned away, and the log and the list of attempts say why', async () => {
    const world = ops();
    world.people.set('ada', 'closed');
    const ada = await world.join('ada');
    expect([ada.isOpen, world.stream.counts().clients, ada.heard()]).toEqual([false, 0, []]);
    expect(world.log.events.at(-1)).toMatchObject({
      event: 'stream.refused',
      fields: { user: 'ada', reason: 'the account is not active' },
    });
    expect(world.refused).toEqual([{ username: 'ada', address: '192.0.2.7', reason: 'the account is not active' }]);
  });

  it('with the directory away, who was seen before keeps the groups and a stranger is turned away', async () => {
    const world = ops();
    const bob = await world.report('bob');
    await (await world.report('ada')).leave();
    bob.forget();
    world.isDown = true;
    const [ada, stranger] = [await world.join('ada'), await world.join('zed')];
    expect([ada.isOpen, stranger.isOpen]).toEqual([true, false]);
    await ada.say(cot('m1', 'a-h-G'));
    expect(bob.names()).toEqual(['a-h-G m1']);
    expect(world.log.events.filter(({ event }) => event === 'stream.groups_unreadable')).toHaveLength(1);
    world.isDown = false;
    expect((await world.join('zed')).isOpen).toBe(true);
  });
});

describe('presence', () => {
  it('is what the first report says: tables and lists have it', async () => {
    const world = ops();
    const ada = await world.join('ada');
    await ada.say(cot('relay', 'a-f-G', '<contact callsign="NO-ENDPOINT"/>'));
    expect([world.presence, world.stream.list()[0]?.clientUid]).toEqual([[], '']);
    await ada.say(sa('uid-ada', 'ADA'), sa('uid-other', 'OTHER'));
    const who = {
      callsign: 'ADA',
      uid: 'uid-ada',
      username: 'ada',
      team: 'Cyan',
      role: 'Team Member',
      clientVersion: 'ATAK-CIV:5.3.0',
      places: [world.placeOf('Ops')],
    };
    expect(world.presence).toEqual([{ what: 'came', who }]);
    expect(world.stream.list()).toMatchObject([
      {
        subscriptionUid: 'tls:1',
        callsign: 'ADA',
        clientUid: 'uid-ada',
        username: 'ada',
        team: 'Cyan',
        role: 'Team Member',
        takClient: 'ATAK-CIV',
        takVersion: '5.3.0',
        address: '192.0.2.7',
        processed: 3,
        groups: [
          { name: 'Ops', direction: 'IN' },
          { name: 'Ops', direction: 'OUT' },
        ],
      },
    ]);
    await ada.leave();
    expect(world.presence.slice(1)).toEqual([{ what: 'went', who }]);
    expect(world.stream.list()).toEqual([]);
  });

  it('follows a new callsign: the lists and the destinations have it', async () => {
    const world = ops();
    const [ada, bob] = [await world.report('ada'), await world.report('bob')];
    await ada.say(sa('uid-ada', 'ADA-2'));
    expect(world.stream.list()[0]?.callsign).toBe('ADA-2');
    ada.forget();
    await bob.say(cot('m1', 'b-m-p', marti('callsign="ADA"')), cot('m2', 'b-m-p', marti('callsign="ADA-2"')));
    expect(ada.names()).toEqual(['b-m-p m2']);
  });

  it('ends with a notice to those who heard it', async () => {
    const world = ops();
    const [ada, bob, cid] = [await world.report('ada'), await world.report('bob'), await world.report('cid')];
    await ada.say(sa('uid-ada', 'ADA', { type: 'a-f-A' }));
    bob.forget();
    await ada.leave();
    expect(types(bob.names())).toEqual(['t-x-d-d']);
    expect(bob.heard()[0]).toContain('<link relation="p-p" uid="uid-ada" type="a-f-A"/>');
    expect(cid.names()).toEqual([]);
  });

  it('goes on without notice when the device has come back by a newer connection', async () => {
    const world = ops();
    const [ada, bob] = [await world.report('ada'), await world.report('bob')];
    const again = await world.report('ada');
    bob.forget();
    await ada.leave();
    expect(bob.names()).toEqual([]);
    expect(world.presence.map(({ what }) => what)).toEqual(['came', 'came', 'came']);
    await again.leave();
    expect(types(bob.names())).toEqual(['t-x-d-d']);
    expect(world.presence.at(-1)?.what).toBe('went');
  });

  it('of a person is not ended by a stranger who goes by the same uid', async () => {
    const world = ops();
    const [ada, bob] = [await world.report('ada'), await world.report('bob')];
    await world.report('cid', 'uid-ada', 'ADA');
    await ada.leave();
    expect(types(bob.names())).toEqual(['t-x-d-d']);
    expect(world.presence.at(-1)).toMatchObject({ what: 'went', who: { username: 'ada' } });
  });

  it('is in the log with a line for each who comes and goes, clean and so many in a minute', async () => {
    const world = ops();
    const ada = await world.report('ada', 'uid&#10;x', 'A&#13;{DA}');
    await ada.leave();
    const lines = world.log.events.map(({ event, fields }) => [event, fields['uid'], fields['callsign']]);
    expect(lines).toEqual([
      ['stream.connected', undefined, undefined],
      ['stream.disconnected', 'uid x', 'A {DA}'],
    ]);
    for (let n = 0; n < 100; n++) await (await world.join('bob')).leave();
    expect(world.log.events.length).toBeLessThanOrEqual(60);
  });

  it('what slow readers have missed is told once a minute, and only when there is more', () => {
    const log = memoryLog();
    const clock = { ms: 0 };
    const events = new StreamEvents(log, () => clock.ms);
    for (const [seconds, dropped] of [
      [30, 5],
      [61, 7],
      [90, 9],
      [122, 9],
      [183, 9],
    ] as const) {
      clock.ms = seconds * 1000;
      events.tick(dropped);
    }
    expect(log.events.map(({ event, fields }) => [event, fields['events'], fields['since_start']])).toEqual([
      ['stream.dropped', 7, 7],
      ['stream.dropped', 2, 9],
    ]);
  });
});

describe('groups', () => {
  it('that were switched count at once: the others and it get the reports they may have now', async () => {
    const world = ops();
    const [ada, bob, cid] = [await world.report('ada'), await world.report('bob'), await world.report('cid')];
    for (const client of [ada, bob]) client.forget();
    world.people.set('ada', ['Med']);
    await world.stream.regroup(['ada'], undefined);
    await settled();
    expect(types(ada.names())).toEqual(['t-x-g-c', 'a-f-G-U-C']);
    expect([cid.names(), bob.names()]).toEqual([['a-f-G-U-C uid-ada'], []]);
    for (const client of [ada, cid]) client.forget();
    await ada.say(cot('m1', 'a-h-G'));
    await bob.say(cot('m2', 'a-h-G'));
    expect([bob.names(), cid.names(), ada.names()]).toEqual([[], ['a-h-G m1'], []]);
  });

  it('that a device has switched itself are no news to it, and to another of the same person they are', async () => {
    const world = ops();
    const [first, second] = [await world.report('ada', 'uid-1'), await world.report('ada', 'uid-2')];
    for (const client of [first, second]) client.forget();
    world.people.set('ada', ['Ops', 'Med']);
    await world.stream.regroup(['ADA'], 'uid-1');
    await settled();
    expect([types(first.names()), types(second.names())]).toEqual([[], ['t-x-g-c']]);
  });

  it('that are the same as before are told to nobody', async () => {
    const world = ops();
    const ada = await world.report('ada');
    await world.stream.regroup(['ada'], undefined);
    await settled();
    expect(ada.names()).toEqual([]);
  });

  it('are taken anew at their interval, and a closed account falls off', async () => {
    const world = cotWorld({ regroupEveryMs: 40 });
    world.people.set('ada', ['Ops']);
    const ada = await world.report('ada');
    world.people.set('ada', 'closed');
    await expect.poll(() => ada.isOpen, { timeout: 2_000 }).toBe(false);
    await expect.poll(() => world.log.events.at(-1)?.fields['reason']).toBe('the account is not active');
    await world.stream.close();
  });

  it('an answer that comes after that of a later question counts no more', async () => {
    const world = ops();
    const ada = await world.report('ada');
    world.people.set('ada', ['Med']);
    const early = world.stream.regroup(['ada'], undefined);
    world.people.set('ada', ['Ops', 'Med']);
    await Promise.all([early, world.stream.regroup(['ada'], undefined)]);
    expect(world.stream.list()[0]?.groups.map(({ name }) => name)).toEqual(['Ops', 'Ops', 'Med', 'Med']);
    expect(ada.isOpen).toBe(true);
  });
});

describe('what the API does on the stream', () => {
  it('ends a connection by its number or its uid', async () => {
    const world = ops();
    const [ada, bob] = [await world.report('ada'), await world.report('bob')];
    expect([world.stream.end('tls:1'), world.stream.end('uid-bob'), world.stream.end('nobody')]).toEqual([
      true,
      true,
      false,
    ]);
    await settled();
    expect([ada.isOpen, bob.isOpen]).toEqual([false, false]);
  });

  it('tells devices, and everybody of a group but one', async () => {
    const world = ops();
    const [ada, bob, cid] = [await world.report('ada'), await world.report('bob'), await world.report('cid')];
    for (const client of [ada, bob, cid]) client.forget();
    const notice = { uid: 'n1', type: 't-x-m-n', how: 'h-g-i-g-o', staleMs: 1_000, detail: '' };
    const devices = ['cid', 'cid', 'gone'].map((username) => ({ clientUid: `uid-${username}`, username }));
    world.stream.toDevices(devices, notice);
    world.stream.toPlaces([world.placeOf('Ops') ?? 0], { ...notice, uid: 'n2' }, 'uid-ada');
    await settled();
    expect([ada.names(), bob.names(), cid.names()]).toEqual([[], ['t-x-m-n n2'], ['t-x-m-n n1']]);
  });

  it('closes with everybody in the tables as gone, and lets nobody in any more', async () => {
    const world = ops();
    const [ada] = [await world.report('ada'), await world.report('bob')];
    await world.stream.close();
    await settled();
    expect(world.presence.filter(({ what }) => what === 'went')).toHaveLength(2);
    expect([ada.isOpen, (await world.join('cid')).isOpen]).toEqual([false, false]);
  });
});
