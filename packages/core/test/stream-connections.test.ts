// One connection of the stream: faults that end it and nothing else, protobuf, readers that do not
// read.

import type { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { HalfEvents } from '../stream/framings.ts';
import { Memberships } from '../stream/regrouping.ts';
import { clientCertificate } from './fake-core-admin.ts';
import { cot, cotWorld, marti, sa, settled } from './fake-cot-stream.ts';

const RESET = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
const REQUEST = cot('q1', 't-x-takp-q', '<TakControl><TakRequest version="1"/></TakControl>');

/** Everybody in `__ANON__` sees her report anew. */
async function leavesAndComesBack({ people, stream }: ReturnType<typeof cotWorld>, name: string): Promise<void> {
  for (const group of ['Ops', '__ANON__']) {
    people.set(name, [group]);
    await stream.regroup([name], undefined);
  }
}

/** Bob is subscribed to the mission; nobody has more than 100,000 bytes under way. */
async function missionsRequested() {
  const world = cotWorld({ maxHalvesBytes: 100_000 });
  const answers: (() => void)[] = [];
  world.subscribers = () =>
    new Promise((resolve) => answers.push(() => resolve([{ clientUid: 'uid-bob', username: 'bob' }])));
  return {
    world,
    bob: await world.report('bob'),
    forMission: (uid: string, bytes: number): string =>
      cot(uid, 'b-m-p', `${marti('mission="Search"')}<remarks>${'x'.repeat(bytes)}</remarks>`),
    answer: async (): Promise<void> => {
      for (const each of answers.splice(0)) each();
      await settled();
    },
  };
}

describe('what is wrong with one connection', () => {
  it.each([
    ['malformed XML', '<event><point></event>'],
    ['a DOCTYPE', '<!DOCTYPE x [<!ENTITY a "b">]>'],
    ['an entity that is none', cot('m1', 'a-h-G', '&lol;')],
    ['nothing that ends', `<event uid="${'x'.repeat(70_000)}`],
  ])('%s ends it, and the others go on', async (_, message) => {
    const world = cotWorld({ maxEventBytes: 65_536 });
    const [ada, bob, cid] = [await world.report('ada'), await world.report('bob'), await world.report('cid')];
    for (const client of [bob, cid]) client.forget();
    await ada.say(cot('before', 'a-h-G'), message);
    expect([ada.isOpen, bob.isOpen]).toEqual([false, true]);
    expect(world.stream.counts().faults).toBe(1);
    const line = world.log.events.find(({ event }) => event === 'stream.disconnected');
    expect(line?.fields['reason']).not.toContain('lol');
    await cid.say(cot('m2', 'a-h-G'));
    expect(bob.names().map((name) => name.split(' ')[0])).toEqual(['a-h-G', 't-x-d-d', 'a-h-G']);
  });

  it.each<[string, (socket: Duplex) => void, string]>([
    ['a revocation', (socket) => void socket.destroy(), 'closed by the server: the certificate is revoked or no'],
    ['a broken network', (socket) => void socket.destroy(RESET), 'the connection broke: ECONNRESET'],
    ['the client', (socket) => void socket.push(null), 'closed by the client'],
  ])('the log says that it was ended by %s', async (_, end, text) => {
    const world = cotWorld();
    const { socket } = await world.report('ada');
    socket.on('error', () => undefined).once('end', () => socket.destroy());
    end(socket);
    await settled();
    const line = world.log.events.find(({ event }) => event === 'stream.disconnected');
    expect(line?.fields['reason']).toContain(text);
  });

  it('the halves of events of all together are bounded: the largest goes', () => {
    const ended: string[] = [];
    const halves = new HalfEvents<{ end(): void }>(100);
    const connection = (name: string) => ({ end: () => void ended.push(name) });
    const [a, b, c] = [connection('a'), connection('b'), connection('c')];
    halves.holds(a, 40);
    halves.holds(b, 50);
    halves.holds(a, 30);
    halves.holds(c, 20);
    expect([ended, halves.bytes]).toEqual([[], 100]);
    halves.holds(c, 21);
    expect([ended, halves.bytes]).toEqual([['b'], 51]);
    halves.holds(c, 0);
    expect(halves.bytes).toBe(30);
  });

  it('an event for which missions are asked is bounded with them, until they have answered', async () => {
    const { world, bob, forMission, answer } = await missionsRequested();
    const [ada, cid] = [await world.report('ada'), await world.report('cid')];
    bob.forget();
    await ada.say(forMission('m1', 60_000));
    await cid.say(forMission('m2', 70_000));
    expect([ada.isOpen, cid.isOpen]).toEqual([true, false]);
    await answer();
    expect(bob.names()).toEqual([expect.stringMatching(/^t-x-d-d /), 'b-m-p m1']);
    await ada.say(forMission('m3', 90_000));
    await answer();
    expect([ada.isOpen, bob.names().at(-1)]).toEqual([true, 'b-m-p m3']);
  });

  it('and also when its connection has broken meanwhile', async () => {
    const { world, bob, forMission, answer } = await missionsRequested();
    const [ada, cid] = [await world.report('ada'), await world.report('cid')];
    bob.forget();
    await ada.say(forMission('m1', 60_000));
    await ada.leave();
    await cid.say(forMission('m2', 30_000));
    await answer();
    expect(bob.names().slice(1)).toEqual(['b-m-p m1', 'b-m-p m2']);
    const dan = await world.report('dan');
    bob.forget();
    await dan.say(forMission('m3', 60_000));
    await dan.leave();
    await cid.say(forMission('m4', 50_000));
    expect(cid.isOpen).toBe(true);
    await answer();
    expect(bob.names().slice(1)).toEqual(['b-m-p m4']);
  });
});

describe('protobuf', () => {
  it('begins after the answer, for what comes and what goes; others stay with XML', async () => {
    const world = cotWorld();
    const [ada, bob] = [await world.report('ada'), await world.report('bob')];
    for (const client of [ada, bob]) client.forget();
    await ada.say(REQUEST);
    expect(ada.heard()).toHaveLength(1);
    expect(ada.heard()[0]).toContain('<TakResponse status="true"/>');
    ada.forget();
    await bob.say(cot('m1', 'a-h-G'));
    expect(ada.raw()[0]).toBe(0xbf);
    await bob.say(REQUEST);
    bob.forget();
    await bob.bytes(ada.raw());
    expect(bob.isOpen).toBe(true);
    expect(ada.raw().toString('latin1').match(/m1/g)).toHaveLength(2);
  });

  it('may follow its request in the same bytes', async () => {
    const world = cotWorld();
    const [ada, bob] = [await world.report('ada'), await world.report('bob')];
    await ada.say(REQUEST);
    ada.forget();
    await bob.say(cot('m1', 'a-h-G'));
    const frame = ada.raw();
    const cid = await world.join('cid');
    bob.forget();
    await cid.bytes(Buffer.concat([Buffer.from(REQUEST), frame, frame]));
    expect(bob.names()).toEqual(['a-h-G m1', 'a-h-G m1']);
    await cid.bytes(Buffer.from('<event'));
    expect(cid.isOpen).toBe(false);
  });

  it('has the newest reports of those who speak XML', async () => {
    const world = cotWorld();
    const ada = await world.report('ada');
    const bob = await world.report('bob');
    await bob.say(REQUEST);
    bob.forget();
    await leavesAndComesBack(world, 'ada');
    await settled();
    expect(bob.raw()[0]).toBe(0xbf);
    expect(bob.raw().toString('latin1')).toContain('uid-ada');
    expect(ada.isOpen).toBe(true);
  });
});

describe('an event at the limits', () => {
  it('that is beyond them with what the server adds is not replayed in protobuf, and harms nobody', async () => {
    const world = cotWorld();
    const ada = await world.report('ada');
    const many = Array.from({ length: 1_024 }, (_, n) => ` a${n}="1"`).join('');
    await ada.say(sa('uid-ada', 'ADA', { detail: `<_flow-tags_${many}/>` }));
    const bob = await world.report('bob');
    await bob.say(REQUEST);
    bob.forget();
    await leavesAndComesBack(world, 'ada');
    await settled();
    expect([ada.isOpen, bob.isOpen, bob.raw().length]).toEqual([true, true, 0]);
    await ada.say(cot('m1', 'a-h-G'));
    expect(bob.raw().toString('latin1')).toContain('m1');
  });
});

describe('a reader that does not read', () => {
  it('loses the oldest, which is counted, ends after its time, and delays nobody', async () => {
    const world = cotWorld({ maxWaitingBytes: 100_000, stalledMs: 2_000 });
    const [ada, slow, fast] = [await world.report('ada'), await world.report('slow'), await world.report('fast')];
    fast.forget();
    slow.rest();
    for (let n = 0; n < 50; n++) await ada.say(cot(`m${n}`, 'a-h-G', `<remarks>${'x'.repeat(20_000)}</remarks>`));
    expect(fast.heard()).toHaveLength(50);
    expect(world.stream.counts().dropped).toBeGreaterThan(20);
    expect(world.stream.list().find(({ username }) => username === 'slow')?.pendingWrites).toBeGreaterThan(1);
    await expect.poll(() => slow.isOpen, { timeout: 8_000 }).toBe(false);
    expect(fast.isOpen).toBe(true);
    await expect
      .poll(() => world.log.events.find(({ event }) => event === 'stream.disconnected')?.fields['reason'])
      .toBe('it has read nothing while events wait for it');
    await world.stream.close();
  });
});

describe('a report', () => {
  it('that is too long to be kept is handed on, and not replayed', async () => {
    const world = cotWorld();
    const [ada, bob] = [await world.report('ada'), await world.report('bob')];
    await ada.say(sa('uid-ada', 'ADA', { detail: `<remarks>${'x'.repeat(40_000)}</remarks>` }));
    expect(bob.heard().at(-1)?.length).toBeGreaterThan(40_000);
    const cid = await world.join('cid');
    expect(
      cid
        .names()
        .map((name) => name.split(' ')[1])
        .slice(0, 1),
    ).toEqual(['uid-bob']);
  });
});

describe('groups that were learned', () => {
  it('are forgotten when the account is closed', async () => {
    const log = memoryLog();
    const answers: (() => Promise<[] | 'closed'>)[] = [
      async () => [],
      async () => 'closed',
      async () => {
        throw new Error('away');
      },
    ];
    const memberships = new Memberships(
      { of: () => (answers.shift() ?? (async () => []))(), forget: () => undefined },
      log,
    );
    const certificate = clientCertificate('ada');
    expect(await memberships.of(certificate)).toEqual([]);
    expect(await memberships.of(certificate)).toBe('closed');
    expect(await memberships.of(certificate)).toBe('unknown');
  });
});
