// Exchanges on the stream, after the reference of a release: one row each.

import { describe, expect, it } from 'vitest';
import type { StreamDevice } from '../model/stream.ts';
import { cot, cotWorld, marti, sa, settled } from './fake-cot-stream.ts';

type World = ReturnType<typeof cotWorld>;

/** ada and bob in Ops, cid in Med, dot in both, eve in none. */
async function field(world: World = cotWorld()) {
  for (const [name, groups] of Object.entries({
    ada: ['Ops'],
    bob: ['Ops'],
    cid: ['Med'],
    dot: ['Ops', 'Med'],
    eve: ['__ANON__'],
  }))
    world.people.set(name, groups);
  const clients = {
    ada: await world.report('ada'),
    bob: await world.report('bob'),
    cid: await world.report('cid'),
    dot: await world.report('dot'),
    eve: await world.report('eve'),
  };
  for (const client of Object.values(clients)) client.forget();
  world.stored.splice(0);
  return { world, ...clients };
}

const chat = (uid: string, dests: string, inside = ''): string =>
  cot(
    uid,
    'b-t-f',
    `<__chat senderCallsign="ADA" chatroom="BOB" id="uid-bob">${inside}</__chat><remarks>hi</remarks>${dests}`,
  );

/** What ada says, and what then comes to whom: `type uid`. */
const ROWS: [name: string, said: string, heard: Partial<Record<'ada' | 'bob' | 'cid' | 'dot' | 'eve', string[]>>][] = [
  [
    'a broadcast reaches the groups of the sender, not itself',
    cot('m1', 'a-h-G'),
    { bob: ['a-h-G m1'], dot: ['a-h-G m1'] },
  ],
  ['marti without dest is a broadcast', cot('m2', 'a-h-G', '<marti/>'), { bob: ['a-h-G m2'], dot: ['a-h-G m2'] }],
  ['dest callsign', cot('m3', 'b-m-p', marti('callsign="BOB"')), { bob: ['b-m-p m3'] }],
  ['dest uid', cot('m4', 'b-m-p', marti('uid="uid-dot"')), { dot: ['b-m-p m4'] }],
  [
    'several dests, each receiver once',
    cot('m5', 'b-m-p', marti('callsign="BOB"', 'uid="uid-bob"', 'uid="uid-dot"')),
    { bob: ['b-m-p m5'], dot: ['b-m-p m5'] },
  ],
  ['dest callsign of another group is not reached', cot('m6', 'b-m-p', marti('callsign="CID"', 'uid="uid-cid"')), {}],
  ['dest group', cot('m7', 'b-m-p', marti('group="Ops"')), { bob: ['b-m-p m7'], dot: ['b-m-p m7'] }],
  ['dest group that is none of the sender', cot('m8', 'b-m-p', marti('group="Med"')), {}],
  [
    'dest All Streaming is a broadcast',
    cot('m9', 'b-m-p', marti('callsign="All Streaming"')),
    { bob: ['b-m-p m9'], dot: ['b-m-p m9'] },
  ],
  [
    'a device and its group: once',
    cot('m10', 'b-m-p', marti('callsign="BOB"', 'group="Ops"')),
    { bob: ['b-m-p m10'], dot: ['b-m-p m10'] },
  ],
  ['dest itself is no echo', cot('m11', 'b-m-p', marti('callsign="ADA"')), {}],
  ['chat to somebody', chat('c1', marti('callsign="BOB"')), { bob: ['b-t-f c1'] }],
  ['chat to somebody who is gone comes back', chat('c2', marti('callsign="ZED"')), { ada: ['b-t-f-s c2'] }],
  [
    'chat to somebody out of reach comes back as if there were nobody',
    chat('c3', marti('callsign="CID"')),
    { ada: ['b-t-f-s c3'] },
  ],
  [
    'chat to one who is there and one who is gone',
    chat('c4', marti('uid="uid-bob"', 'uid="zed"')),
    { bob: ['b-t-f c4'], ada: ['b-t-f-s c4'] },
  ],
  ['a receipt to somebody who is gone does not come back', cot('c5', 'b-t-f-d', marti('callsign="ZED"')), {}],
  ['a ping is answered at once', cot('p1', 't-x-c-t'), { ada: ['t-x-c-t-r takPong'] }],
  ['pings that come together have one answer', cot('p1', 't-x-c-t').repeat(50), { ada: ['t-x-c-t-r takPong'] }],
  ...['t-b', 't-b-a', 't-b-c', 't-b-q', 't-x-c-f', 't-x-c-t-r', 't-x-c-m', 't-x-c-i-e', 't-x-c-i-d'].map(
    (type): (typeof ROWS)[number] => [`${type} is for the server alone`, cot('x', type), {}],
  ),
  [
    'another version of the protocol is refused',
    cot('q1', 't-x-takp-q', '<TakControl><TakRequest version="2"/></TakControl>'),
    { ada: ['t-x-takp-r q1'] },
  ],
  [
    'XML that is no event is passed over',
    '<event><point/></event>' + cot('m12', 'a-h-G', marti('uid="uid-bob"')),
    { bob: ['a-h-G m12'] },
  ],
];

describe('what one says and the others hear', () => {
  it.each(ROWS)('%s', async (_, message, heard) => {
    const clients = await field();
    await clients.ada.say(message);
    for (const name of ['ada', 'bob', 'cid', 'dot', 'eve'] as const)
      expect([name, clients[name].names()]).toEqual([name, heard[name] ?? []]);
  });

  it('carries the time and the tag of the server, and no marti', async () => {
    const { ada, bob } = await field();
    await ada.say(cot('m1', 'a-h-G', `${marti('callsign="BOB"')}<remarks>x</remarks>`));
    const [event = ''] = bob.heard();
    expect(event).toMatch(/^<\?xml version="1.0" encoding="UTF-8" standalone="yes"\?>\n<event /);
    expect(event).toContain(' time="2026-11-22T05:30:00Z"');
    expect(event).toContain('<_flow-tags_ TAK-Server-node1="2026-11-22T05:30:00Z"/>');
    expect(event).not.toContain('marti');
  });

  it('says that another version is refused, and stays with XML', async () => {
    const { ada, bob } = await field();
    await ada.say(cot('q1', 't-x-takp-q', '<TakControl><TakRequest version="7"/></TakControl>'));
    expect(ada.heard()[0]).toContain('status="false"');
    ada.forget();
    await bob.say(cot('m1', 'a-h-G'));
    expect(ada.names()).toEqual(['a-h-G m1']);
  });

  it('the newest connection that is reachable has the callsign', async () => {
    const { world, ada, bob, cid } = await field();
    const newer = await world.report('bob', 'uid-bob-2', 'BOB');
    const stranger = await world.report('cid', 'uid-bob', 'BOB');
    bob.forget();
    cid.forget();
    await ada.say(cot('m1', 'b-m-p', marti('callsign="BOB"')), cot('m2', 'b-m-p', marti('uid="uid-bob"')));
    expect([newer.names(), bob.names(), stranger.names()]).toEqual([['b-m-p m1'], ['b-m-p m2'], []]);
  });

  it('goes one way only where the directions say so', async () => {
    const world = cotWorld();
    world.people.set('sensor', ['>Ops']).set('screen', ['<Ops']);
    const sensor = await world.report('sensor');
    const screen = await world.report('screen');
    sensor.forget();
    await sensor.say(cot('m1', 'a-h-G'));
    await screen.say(cot('m2', 'a-h-G'));
    expect([screen.names(), sensor.names()]).toEqual([['a-h-G m1'], []]);
  });
});

const deviceOf = (username: string): StreamDevice => ({ clientUid: `uid-${username}`, username });

describe('an event for a mission', () => {
  const message = cot(
    'm1',
    'b-m-p',
    `<contact callsign="POINT"/><usericon iconsetpath="a/b"/><color argb="-1"/>${marti('mission="Search" after="x"', 'mission-guid="g-1"')}`,
  );

  it('goes to those who are subscribed and reachable, and is posted', async () => {
    const { world, ada, bob, cid } = await field();
    world.subscribers = async () => ['bob', 'cid', 'ada', 'gone'].map(deviceOf);
    await ada.say(message);
    expect([ada.names(), bob.names(), cid.names()]).toEqual([[], ['b-m-p m1'], []]);
    const says = {
      callsign: 'POINT',
      iconsetPath: 'a/b',
      color: '-1',
      point: expect.objectContaining({ lat: 1.5, lon: 2.5 }),
    };
    const event = { uid: 'm1', type: 'b-m-p', ...says };
    expect(world.posts).toEqual([
      { destination: { name: 'Search', guid: undefined }, event },
      { destination: { name: undefined, guid: 'g-1' }, event },
    ]);
  });

  it('is not overtaken by what its sender says next, and the sender alone waits', async () => {
    const { world, ada, bob, dot } = await field();
    let answer: (devices: StreamDevice[]) => void = () => undefined;
    world.subscribers = () => new Promise((resolve) => (answer = resolve));
    await ada.say(cot('m1', 'b-m-p', marti('mission="Search"')), cot('m2', 'a-h-G', marti('uid="uid-bob"')));
    await dot.say(cot('m3', 'a-h-G', marti('uid="uid-bob"')));
    expect(bob.names()).toEqual(['a-h-G m3']);
    answer([deviceOf('bob')]);
    await settled();
    expect(bob.names()).toEqual(['a-h-G m3', 'b-m-p m1', 'a-h-G m2']);
  });

  it('of missions that cannot be asked reaches whom it names otherwise, and the log says it once', async () => {
    const { world, ada, bob } = await field();
    world.subscribers = async () => {
      throw new Error('the database does not answer');
    };
    const dests = marti('mission="Search"', 'uid="uid-bob"');
    await ada.say(cot('m1', 'b-m-p', dests), cot('m2', 'b-m-p', dests));
    expect(bob.names()).toEqual(['b-m-p m1', 'b-m-p m2']);
    expect(world.log.events.filter(({ event }) => event === 'stream.mission_unreached')).toHaveLength(1);
  });
});

describe('what is stored', () => {
  const kept = async (message: string) => {
    const { world, ada } = await field();
    await ada.say(message);
    return world;
  };

  it.each([
    ['a position report', sa('uid-ada', 'ADA'), 1],
    ['an event that reaches nobody', cot('m1', 'b-m-p', marti('callsign="ZED"')), 1],
    ['an event for a mission', cot('m1', 'b-m-p', marti('mission="Search"')), 1],
    ['archive="false"', cot('m1', 'a-h-G', '<marti archive="false"/>'), 0],
    ['a ping', cot('m1', 't-x-c-t'), 0],
    ['chat to a device', chat('c1', marti('callsign="BOB"')), 1],
    ['chat to a group', chat('c1', marti('group="Ops"')), 1],
    [
      'chat to all chat rooms',
      chat('c1', '', '<chatgrp uid0="uid-ada" uid1="All Chat Rooms" id="All Chat Rooms"/>'),
      1,
    ],
    ['chat without destination', chat('c1', ''), 0],
    ['chat to a mission', chat('c1', marti('mission="Search"'), '<chatgrp uid0="uid-ada" uid1="Search"/>'), 0],
  ])('%s: %#', async (_, text, rows) => {
    expect((await kept(text)).stored).toHaveLength(rows);
  });

  it('has the texts of the event as delivered, and the places of the groups it went to', async () => {
    const world = await kept(cot('m1', 'a-h-G', '<remarks>x</remarks>'));
    expect(world.stored[0]).toEqual({
      sender: 'ada',
      uid: 'm1',
      type: 'a-h-G',
      how: 'm-g',
      time: '2026-11-22T05:30:00Z',
      start: '2026-11-22T05:00:00.000Z',
      stale: '2026-11-22T05:05:00.000Z',
      point: { lat: 1.5, lon: 2.5, hae: 3, ce: 4, le: 5 },
      detail: '<detail><remarks>x</remarks><_flow-tags_ TAK-Server-node1="2026-11-22T05:30:00Z"/></detail>',
      receivedAtMs: world.clock.at.getTime(),
      places: [world.placeOf('Ops')],
    });
  });

  it('has the group that was named as its place', async () => {
    const { world, dot } = await field();
    await dot.say(
      cot('m1', 'a-h-G', marti('group="Med"')),
      cot('m2', 'a-h-G'),
      cot('m3', 'a-h-G', marti('group="Med"')),
    );
    const [med, ops] = [world.placeOf('Med') ?? 0, world.placeOf('Ops') ?? 0];
    expect(world.stored.map(({ places }) => places)).toEqual([[med], [ops, med], [med]]);
    expect(world.stored[2]?.places).toBe(world.stored[0]?.places);
  });

  it('has the fields of chat', async () => {
    const world = await kept(
      chat('c1', marti('callsign="BOB"'), '<chatgrp uid0="uid-ada" uid1="uid-bob" uid2="uid-dot" id="x"/>'),
    );
    expect(world.stored[0]?.chat).toEqual({
      senderCallsign: 'ADA',
      destCallsign: 'BOB',
      destUids: ['uid-bob', 'uid-dot'],
      content: 'hi',
      room: 'BOB',
    });
  });

  it('rests its senders while the archive is full, and loses nothing', async () => {
    const { world, ada, bob } = await field();
    world.isFull = true;
    await ada.say(cot('m1', 'a-h-G'), cot('m2', 'a-h-G'));
    await ada.say(cot('m3', 'a-h-G'));
    expect(bob.names()).toEqual([]);
    world.room();
    await settled();
    expect(bob.names()).toEqual(['a-h-G m1', 'a-h-G m2', 'a-h-G m3']);
    expect(world.stored).toHaveLength(3);
  });
});

describe('a geospatial filter', () => {
  const box = (minLatitude: string, minLongitude: string, maxLatitude: string, maxLongitude: string): string =>
    `<boundingBox minLatitude="${minLatitude}" minLongitude="${minLongitude}" maxLatitude="${maxLatitude}" maxLongitude="${maxLongitude}"/>`;
  const filter = (boxes: string, attributes = ''): string =>
    cot('f1', 't-x-c-f', `<subscription><geospatialFilter ${attributes}>${boxes}</geospatialFilter></subscription>`);
  const at = (uid: string, lat: number, lon: number, type = 'a-h-G', detail = ''): string =>
    cot(uid, type, detail).replace('lat="1.5" lon="2.5"', `lat="${lat}" lon="${lon}"`);

  it('hides what lies outside, for that client alone, and never chat, clients or what has no place', async () => {
    const { ada, bob, dot } = await field();
    await bob.say(filter(box('40', '170', '50', '-170') + box('10', '10', '11', '11')));
    const all = [
      at('in', 45, 175),
      at('across', 45, -175),
      at('second', 10.5, 10.5),
      at('out', 45, 100),
      at('south', 39, 175),
      at('nowhere', 0, 0),
      at('chat', 60, 60, 'b-t-f', '<remarks>x</remarks>'),
      at('client', 60, 60, 'a-f-G-U-C', '<__group name="Cyan" role="Team Member"/>'),
      at('named', 60, 60, 'b-m-p', marti('uid="uid-bob"')),
      at('group', 60, 60, 'b-m-p', marti('group="Ops"')),
    ];
    await ada.say(...all);
    const uids = (names: string[]) => names.map((name) => name.split(' ')[1]);
    expect(uids(bob.names())).toEqual(['in', 'across', 'second', 'nowhere', 'chat', 'client', 'named']);
    expect(uids(dot.names())).not.toContain('named');
    expect(dot.names()).toHaveLength(9);
  });

  it('is replaced, taken away, and stays as it was after one that cannot be read', async () => {
    const { ada, bob } = await field();
    await bob.say(filter(box('1', '1', '2', '2'), 'filterTAKClients="true"'));
    await bob.say(filter(box('1', '1', 'north', '2')));
    await ada.say(sa('uid-ada', 'ADA'), at('far', 60, 60), at('cid', 60, 60, 'a-f-G', '<__group name="x" role="y"/>'));
    expect(bob.names()).toEqual([]);
    await bob.say(filter(''));
    await ada.say(at('far', 60, 60));
    expect(bob.names()).toEqual(['a-h-G far']);
  });

  it('of a client that has left is forgotten', async () => {
    const { ada, bob, dot } = await field();
    await bob.say(filter(box('1', '1', '2', '2')));
    await bob.leave();
    dot.forget();
    await ada.say(at('far', 60, 60));
    expect(dot.names()).toEqual(['a-h-G far']);
  });
});
