// With many clients receivers get the newest position of each uid, once in S seconds.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseThinning } from '@holdfast/kit/core-wire';
import { AUTO_THINNING, thinningSeconds } from '../stream/thinning.ts';
import { cot, cotWorld, marti, sa, settled, type TestClient } from './fake-cot-stream.ts';

let world: ReturnType<typeof cotWorld>;
let ada: TestClient;
let bob: TestClient;

/** As the clock of the system goes on. */
async function pass(ms: number): Promise<void> {
  vi.advanceTimersByTime(ms);
  await settled();
}

const remarks = (client: TestClient): (string | undefined)[] =>
  client.heard().map((text) => /<remarks>([^<]*)/.exec(text)?.[1]);
const at = (place: string): string => sa('uid-ada', 'ADA', { detail: `<remarks>${place}</remarks>` });
const feed = (uid: string, place: string, how = 'm-g'): string =>
  cot(uid, 'a-n-A-C', `<remarks>${place}</remarks>`).replace('how="m-g"', `how="${how}"`);

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
  world = cotWorld({}, { thinning: [{ clients: 2, seconds: 10 }] });
  ada = await world.join('ada');
  bob = await world.report('bob');
  ada.forget();
});

afterEach(async () => {
  await world.stream.close();
  vi.useRealTimers();
});

describe('position reports of a crowd', () => {
  it('pass at first, then only the newest one when the seconds are over', async () => {
    await ada.say(at('first'));
    await ada.say(at('second'), at('third'));
    expect(remarks(bob)).toEqual(['first']);
    expect(world.stream.counts().thinning).toEqual({ seconds: 10, held: 1, replaced: 1 });
    await pass(9_000);
    expect(remarks(bob)).toEqual(['first']);
    await pass(1_250);
    expect(remarks(bob)).toEqual(['first', 'third']);
    await ada.say(at('fourth'));
    await pass(9_000);
    expect(remarks(bob)).toEqual(['first', 'third']);
    await pass(1_500);
    expect(remarks(bob)).toEqual(['first', 'third', 'fourth']);
    await pass(20_000);
    await ada.say(at('fifth'));
    expect(remarks(bob).at(-1)).toBe('fifth');
    expect(world.stored).toHaveLength(6);
  });

  it('are thinned by uid, those of a feed as well, and what a person marks is not', async () => {
    await ada.say(at('own'), feed('plane-1', 'one'), feed('plane-2', 'two'));
    await ada.say(feed('plane-1', 'later'), feed('mark', 'put', 'h-g-i-g-o'), feed('mark', 'moved', 'h-g-i-g-o'));
    expect(remarks(bob)).toEqual(['own', 'one', 'two', 'put', 'moved']);
    await pass(10_250);
    expect(remarks(bob).at(-1)).toBe('later');
  });

  it.each([
    ['chat', cot('GeoChat.1', 'b-t-f', '<remarks>now</remarks>')],
    ['an alarm', cot('uid-ada-9-1-1', 'b-a-o-tbl', '<remarks>now</remarks>')],
    ['a report with an emergency', sa('uid-ada', 'ADA', { detail: '<emergency/><remarks>now</remarks>' })],
    ['a named device', sa('uid-ada', 'ADA', { detail: `${marti('uid="uid-bob"')}<remarks>now</remarks>` })],
    [
      'everybody by name',
      sa('uid-ada', 'ADA', { detail: `${marti('callsign="All Streaming"')}<remarks>now</remarks>` }),
    ],
  ])('does not delay %s', async (_, event) => {
    await ada.say(at('first'), event, event);
    expect(remarks(bob)).toEqual(['first', 'now', 'now']);
  });

  it('never come after a newer event of that uid that passed at once', async () => {
    const urgent = sa('uid-ada', 'ADA', { detail: '<emergency/><remarks>urgent</remarks>' });
    await ada.say(at('first'), at('old'), urgent);
    await ada.say(feed('plane', 'flies'), feed('plane', 'on'), cot('x', 't-x-d-d', '<link uid="plane"/>'));
    const toAll = `${marti('callsign="All Streaming"')}<remarks>to all</remarks>`;
    await ada.say(at('next'), at('old'), sa('uid-ada', 'ADA', { detail: toAll }));
    await pass(11_000);
    expect(remarks(bob)).toEqual(['first', 'urgent', 'flies', undefined, 'next', 'to all']);
  });

  it('reach a client that has just arrived, the next one too', async () => {
    await ada.say(at('first'), at('second'), feed('plane', 'before'));
    const cid = await world.join('cid');
    expect(remarks(cid)).toContain('second');
    cid.forget();
    await ada.say(at('third'), feed('plane', 'after'));
    expect(remarks(cid)).toEqual(['third', 'after']);
    await ada.say(at('fourth'), feed('plane', 'held'));
    expect(remarks(cid)).toEqual(['third', 'after']);
    expect(remarks(bob)).toEqual(['first', 'before']);
  });

  it('are delivered before the notice that their sender has disconnected', async () => {
    await ada.say(at('first'), at('second'), at('last'));
    await ada.leave();
    expect(remarks(bob)).toEqual(['first', 'last', undefined]);
    expect(bob.names().at(-1)).toMatch(/^t-x-d-d /);
    expect(world.stream.counts().thinning).toMatchObject({ held: 0 });
    await pass(11_000);
    expect(bob.names()).toHaveLength(3);
  });

  it('are dropped when the server stops', async () => {
    await ada.say(at('first'), at('second'));
    await world.stream.close();
    await settled();
    expect(remarks(bob)).toEqual(['first']);
    expect(world.stream.counts().thinning).toMatchObject({ held: 0 });
  });

  it('respect the filter of a receiver also when they were held', async () => {
    const box = '<boundingBox minLatitude="50" maxLatitude="51" minLongitude="7" maxLongitude="8"/>';
    await ada.say(feed('plane', 'first'), feed('plane', 'second'));
    await bob.say(cot('f', 't-x-c-f', `<subscription><geospatialFilter>${box}</geospatialFilter></subscription>`));
    await pass(11_000);
    expect(remarks(bob)).toEqual(['first']);
  });

  it('are all delivered at once again when the crowd has left', async () => {
    const crowd = cotWorld({}, { thinning: [{ clients: 3, seconds: 10 }] });
    const [sender, receiver, third] = [await crowd.join('ada'), await crowd.report('bob'), await crowd.report('cid')];
    await sender.say(at('first'), at('second'));
    await third.leave();
    receiver.forget();
    await pass(250);
    await sender.say(at('third'), at('fourth'));
    expect(remarks(receiver)).toEqual(['second', 'third', 'fourth']);
    expect(crowd.stream.counts().thinning).toEqual({ seconds: 0, held: 0, replaced: 0 });
    await crowd.stream.close();
  });

  it('longer than is held pass at once', async () => {
    const long = sa('uid-ada', 'ADA', { detail: `<remarks>long</remarks><x>${'y'.repeat(9_000)}</x>` });
    await ada.say(at('first'), long, long);
    expect(remarks(bob)).toEqual(['first', 'long', 'long']);
  });
});

describe('the table', () => {
  it('gives the seconds of the last row that is reached', () => {
    const rows = parseThinning('1000:120, 10000:240');
    if (rows === undefined || rows === 'auto') throw new Error('no rows');
    expect([999, 1_000, 9_999, 10_000].map((clients) => thinningSeconds(rows, clients))).toEqual([0, 120, 120, 240]);
    expect([parseThinning('off'), parseThinning('auto')]).toEqual([[], 'auto']);
  });

  it('may begin with no client at all', async () => {
    const always = cotWorld({}, { thinning: [{ clients: 0, seconds: 7 }] });
    expect(always.stream.counts().thinning.seconds).toBe(7);
    await always.stream.close();
  });

  it.each(['', '1000', '1000:0', '1000:3601', '2000:5,1000:9', '-1:5', 'a:b', '1000:5;2000:9'])('is not %j', (text) => {
    expect(parseThinning(text)).toBeUndefined();
  });

  it('of auto keeps deliveries below what 1 Gbit/s carries, as XML up to 4,999 clients', () => {
    const ends = AUTO_THINNING.map(({ seconds }, at) => ({
      most: (AUTO_THINNING[at + 1]?.clients ?? 10_001) - 1,
      seconds,
    }));
    for (const { most, seconds } of ends) {
      const deliveries = (most * most) / seconds;
      expect(deliveries).toBeLessThan(most < 5_000 ? 201_000 : 571_000);
    }
  });
});
