// Events that no protobuf frame holds: who gets a pointer, what it points to, and for how long.

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '@holdfast/kit/time';
import type { StoredEvent } from '../model/stored-event.ts';
import type { CotEvent } from '../model/stream.ts';
import { LargeEvents } from '../stream/large-events.ts';
import { ProtobufFrames } from '../stream/wire/frames.ts';
import { decodeEvent } from '../stream/wire/protobuf-decode.ts';
import { cot, cotWorld, marti, type TestClient } from './fake-cot-stream.ts';

const REQUEST = cot('q1', 't-x-takp-q', '<TakControl><TakRequest version="1"/></TakControl>');
const points = '<link point="47.1,8.2"/>'.repeat(9_000);
/** Some 200 KB. */
const drawing = (uid: string, more = ''): string =>
  cot(uid, 'u-d-f', `<contact callsign="Fire line"/>${points}${more}`);

type World = ReturnType<typeof cotWorld>;

async function speaking(world: World, name: string): Promise<TestClient> {
  const client = await world.report(name);
  await client.say(REQUEST);
  client.forget();
  return client;
}

function framesOf(client: TestClient): { bytes: number; event: CotEvent | undefined }[] {
  const reader = new ProtobufFrames(10_000_000);
  reader.push(client.raw());
  const found = [];
  for (let frame = reader.next(); frame !== undefined; frame = reader.next())
    found.push({ bytes: frame.length, event: decodeEvent(Buffer.from(frame)) });
  return found;
}

async function field() {
  const world = cotWorld();
  for (const [name, group] of Object.entries({ ada: 'Ops', bob: 'Ops', xan: 'Ops', eve: 'Med' }))
    world.people.set(name, [group]);
  const ada = await world.report('ada');
  const xan = await world.report('xan');
  const [bob, eve] = [await speaking(world, 'bob'), await speaking(world, 'eve')];
  xan.forget();
  return { world, ada, bob, xan, eve };
}

describe('a drawing of 200 KB', () => {
  it('reaches XML whole, and protobuf as a pointer to bytes of that hash', async () => {
    const { world, ada, bob, xan, eve } = await field();
    await ada.say(drawing('line <1>/é'.replaceAll('<', '&lt;')));
    expect(xan.raw().length).toBeGreaterThan(200_000);
    const [frame, ...more] = framesOf(bob);
    expect(more).toEqual([]);
    expect(frame?.bytes).toBeLessThan(2_000);
    expect(frame?.event?.type).toBe('b-f-t-r');
    const share = frame?.event?.detail('fileshare');
    const found = world.largeEvents.find('line <1>/é', 'BOB');
    const text = Buffer.from(found?.xml ?? []).toString();
    expect(share?.attribute('sha256')).toBe(createHash('sha256').update(text).digest('hex'));
    expect(share?.attribute('sizeInBytes')).toBe(String(Buffer.byteLength(text)));
    expect(share?.attribute('senderUrl')).toBe(
      'https://cot.example.org:8443/Marti/api/cot/xml/line%20%3C1%3E%2F%C3%A9',
    );
    expect(share?.attribute('senderCallsign')).toBe('ada');
    expect(share?.attribute('filename')).toBe('line__1___.cot');
    expect(text).toContain(points);
    expect(text).toContain('type="u-d-f"');
    expect(text).not.toContain('<marti');
    expect([framesOf(eve), world.largeEvents.find('line <1>/é', 'eve')]).toEqual([[], undefined]);
    expect(world.largeEvents.find('line <1>/é', 'xan')).toBeUndefined();
  });

  it('for one device is found by its person alone', async () => {
    const { world, ada, bob } = await field();
    const cid = await speaking(Object.assign(world, { people: world.people.set('cid', ['Ops']) }), 'cid');
    bob.forget();
    await ada.say(drawing('secret', marti('uid="uid-bob"')));
    expect(framesOf(bob).map(({ event }) => event?.type)).toEqual(['b-f-t-r']);
    expect(framesOf(cid)).toEqual([]);
    expect(world.largeEvents.find('secret', 'bob')).toBeDefined();
    expect(world.largeEvents.find('secret', 'cid')).toBeUndefined();
  });

  it('of a mission comes by pointer to who is subscribed', async () => {
    const { world, ada, bob } = await field();
    world.subscribers = async () => [{ clientUid: 'uid-bob', username: 'bob' }];
    await ada.say(drawing('plan', marti('mission="Alpha"')));
    expect(framesOf(bob).map(({ event }) => event?.type)).toEqual(['b-f-t-r']);
    expect(world.largeEvents.find('plan', 'bob')).toBeDefined();
  });

  it('just below the limit of a frame goes as it is', async () => {
    const { ada, bob } = await field();
    await ada.say(
      cot('small', 'u-d-f', `<x>${'y'.repeat(65_000)}</x>`),
      cot('large', 'u-d-f', `<x>${'y'.repeat(65_500)}</x>`),
    );
    expect(framesOf(bob).map(({ event }) => `${event?.type} ${event?.uid.length}`)).toEqual(['u-d-f 5', 'b-f-t-r 64']);
  });
});

describe('what is kept of large events', () => {
  const event = (uid: string, detail: string): StoredEvent => ({
    uid,
    type: 'u-d-f',
    how: 'h-e',
    access: null,
    qos: null,
    opex: null,
    caveat: null,
    releaseableTo: null,
    time: new Date(0),
    start: null,
    stale: null,
    lat: 1,
    lon: 2,
    hae: 3,
    ce: 4,
    le: 5,
    detail: `<detail>${detail}</detail>`,
  });
  const clock = { ms: 0 };
  const events = () => new LargeEvents({ apiUrl: 'https://h:1', now: () => new Date(clock.ms), maxBytes: 10_000 });

  it('is the newest that somebody got, whoever else uses the uid', () => {
    const large = events();
    large.pointerTo(event('u', 'one'), ['ada'], 's');
    large.pointerTo(event('u', 'two'), ['ada', 'bob'], 's');
    large.pointerTo(event('u', 'three'), ['eve'], 's');
    const seen = (name: string) =>
      /<detail>(.*)<\/detail>/.exec(Buffer.from(large.find('u', name)?.xml ?? []).toString())?.[1];
    expect([seen('ada'), seen('bob'), seen('eve'), seen('zed')]).toEqual(['two', 'two', 'three', undefined]);
  });

  it('is bounded in bytes and time: the oldest go', () => {
    const large = events();
    for (let n = 0; n < 10; n++) large.pointerTo(event(`u${n}`, 'x'.repeat(3_000)), ['ada'], 's');
    const left = Array.from({ length: 10 }, (_, n) => large.find(`u${n}`, 'ada')).map((each) => each !== undefined);
    expect(left.filter(Boolean)).toHaveLength(3);
    expect(left.slice(-3)).toEqual([true, true, true]);
    clock.ms += HOUR_MS;
    expect(large.find('u9', 'ada')).toBeUndefined();
  });
});
