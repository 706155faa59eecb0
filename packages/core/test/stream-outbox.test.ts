// What goes out of the stream: one write a turn, whole events, a bounded queue for slow readers,
// and who is told to go.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { collectGarbage } from '../../../test/support/garbage.ts';
import type { OutboxSocket } from '../stream/outbox.ts';
import { Outboxes, type Outgoing } from '../stream/outboxes.ts';
import { runs } from '../../../test/support/runs.ts';

/** A socket that takes each write when it is told to. */
function slowSocket() {
  const writes: Buffer[] = [];
  const waiting: (() => void)[] = [];
  const socket: OutboxSocket = {
    write(bytes, done) {
      writes.push(Buffer.from(bytes));
      waiting.push(done);
    },
  };
  return {
    socket,
    writes,
    take: () => waiting.shift()?.(),
    takeAll() {
      while (waiting.length > 0) waiting.shift()?.();
    },
    text: () => Buffer.concat(writes).toString(),
  };
}

function event(text: string, protobuf = `p:${text}`): Outgoing {
  const xml = Buffer.from(text);
  return {
    maxXmlBytes: xml.length + 10,
    writeXml: (target, at) => at + xml.copy(target, at),
    protobuf: () => Buffer.from(protobuf),
  };
}

const replacement = (): never => {
  throw new Error('no event here is replaced');
};

function world(limits: { maxWaitingBytes?: number; maxWaitingTogetherBytes?: number } = {}) {
  const clock = { ms: 0 };
  const outboxes = new Outboxes(
    { maxWaitingBytes: 1_000_000, maxWaitingTogetherBytes: 10_000_000, ...limits },
    () => clock.ms,
    replacement,
  );
  const receiver = () => {
    const slow = slowSocket();
    return { ...slow, username: 'ada', outbox: outboxes.open(slow.socket) };
  };
  return { clock, outboxes, receiver };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** The second time waits for what the first one has left to be swept. */
function arrayBufferBytes(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

describe('a turn of the event loop', () => {
  it('is one write for each receiver, in the order of the events', async () => {
    const { outboxes, receiver } = world();
    const [a, b] = [receiver(), receiver()];
    outboxes.send(event('<1>'), [a, b]);
    outboxes.send(event('<2>'), [a, b], a);
    outboxes.send(event('<3>'), [a, b]);
    expect(a.writes).toEqual([]);
    await turn();
    expect([a.writes.length, b.writes.length]).toEqual([1, 1]);
    expect([a.text(), b.text()]).toEqual(['<1><3>', '<1><2><3>']);
    expect(outboxes.state).toMatchObject({ delivered: 5, bytesWritten: 15, dropped: 0 });
  });

  it('has more than its arena holds: everything arrives once and in order', async () => {
    const { outboxes, receiver } = world({ maxWaitingBytes: 64_000_000 });
    const [a, b] = [receiver(), receiver()];
    const sent = Array.from({ length: 300 }, (_, n) => `<${n} ${'x'.repeat((n * 7919) % 5000)}>`);
    sent.push(`<big ${'y'.repeat(700_000)}>`, '<end>');
    for (const text of sent) outboxes.send(event(text), [a, b]);
    await turn();
    for (let n = 0; n < 100; n++) {
      a.takeAll();
      b.takeAll();
      await turn();
    }
    expect(a.text() === sent.join('')).toBe(true);
    expect(b.text() === sent.join('')).toBe(true);
    expect(outboxes.state).toMatchObject({ delivered: 2 * sent.length, dropped: 0, waitingBytes: 0, lagging: 0 });
  });

  it('changes to protobuf in the middle: what was sent before goes as XML', async () => {
    const { outboxes, receiver } = world();
    const [a, b] = [receiver(), receiver()];
    outboxes.send(event('<1>'), [a, b]);
    outboxes.changeForm(a.outbox, 'protobuf');
    outboxes.send(event('<2>'), [a, b]);
    await turn();
    a.takeAll();
    await turn();
    expect([a.text(), b.text()]).toEqual(['<1>p:<2>', '<1><2>']);
  });
});

describe('receivers of both forms', () => {
  const filled = (letter: string, bytes: number): string => `<${letter.repeat(bytes)}>`;

  it('get what is for them and nothing else when an event is larger than the arena', async () => {
    const { outboxes, receiver } = world({ maxWaitingBytes: 64_000_000 });
    const [a, p, b, stranger] = [receiver(), receiver(), receiver(), receiver()];
    outboxes.changeForm(p.outbox, 'protobuf');
    outboxes.send(event(filled('s', 900_000)), [stranger]);
    await turn();
    stranger.takeAll();
    const large = filled('L', 1_200_000);
    outboxes.send(event(large), [a, p, b]);
    for (let n = 0; n < 30; n++) {
      await turn();
      for (const each of [a, p, b]) each.takeAll();
    }
    expect([a.text() === large, p.text() === `p:${large}`, b.text() === large]).toEqual([true, true, true]);
  });

  it('get what is for them and nothing else, whatever the sizes, the receivers and their order', async () => {
    const size = fc.constantFrom(10, 2_000, 300_000, 400_000, 800_000, 1_100_000);
    const step = fc.record({ size, to: fc.shuffledSubarray([0, 1, 2, 3], { minLength: 1 }), turns: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
        const { outboxes, receiver } = world({ maxWaitingBytes: 64_000_000, maxWaitingTogetherBytes: 256_000_000 });
        const all = [receiver(), receiver(), receiver(), receiver()];
        const expected = ['', '', '', ''];
        for (const index of [1, 3]) outboxes.changeForm((all[index] as (typeof all)[0]).outbox, 'protobuf');
        for (const [n, each] of steps.entries()) {
          const text = filled(String.fromCharCode(97 + n), each.size);
          outboxes.send(
            event(text),
            each.to.flatMap((index) => all[index] ?? []),
          );
          for (const index of each.to) expected[index] += index % 2 === 1 ? `p:${text}` : text;
          if (!each.turns) continue;
          await turn();
          for (const one of all) one.take();
        }
        for (let n = 0; n < 80; n++) {
          await turn();
          for (const one of all) one.takeAll();
        }
        expect(all.map((one, index) => one.text() === expected[index])).toEqual([true, true, true, true]);
      }),
      { numRuns: runs(40) },
    );
  });
});

describe('a reader that takes nothing', () => {
  it('keeps what fits, loses the oldest whole events, and delays nobody', async () => {
    const { outboxes, receiver } = world({ maxWaitingBytes: 30 });
    const [slow, fast] = [receiver(), receiver()];
    for (let n = 10; n < 30; n++) {
      outboxes.send(event(`<event ${n}>`), [slow, fast]);
      await turn();
      fast.takeAll();
    }
    expect(fast.writes).toHaveLength(20);
    expect(slow.text()).toBe('<event 10>');
    for (let n = 0; n < 5; n++) slow.takeAll();
    expect(slow.text()).toBe('<event 10><event 26><event 27><event 28><event 29>');
    expect(outboxes.state).toMatchObject({ dropped: 15, delivered: 25, waitingBytes: 0, lagging: 0 });
  });

  it('is up to date again after it has taken all', async () => {
    const { outboxes, receiver } = world();
    const slow = receiver();
    for (const text of ['<1>', '<2>', '<3>', '<4>']) {
      outboxes.send(event(text), [slow]);
      await turn();
    }
    slow.takeAll();
    outboxes.send(event('<5>'), [slow]);
    await turn();
    expect(slow.writes.map(String)).toEqual(['<1>', '<2>', '<3><4>', '<5>']);
  });

  it('shares the room of all slow readers with the others', async () => {
    const { outboxes, receiver } = world({ maxWaitingTogetherBytes: 4_000 });
    const slow = Array.from({ length: 8 }, receiver);
    for (let n = 0; n < 200; n++) {
      outboxes.send(event(`<${'x'.repeat(98)}>`), slow);
      await turn();
    }
    expect(outboxes.state.waitingBytes).toBeLessThanOrEqual(4_800);
    expect(outboxes.state.waitingBytes).toBeGreaterThan(2_000);
    for (const { outbox } of slow) outbox.end();
    expect(outboxes.state).toMatchObject({ waitingBytes: 0, lagging: 0 });
  });

  it('has an event that is larger than its room, in pieces, and what waited before', async () => {
    const { outboxes, receiver, clock } = world({ maxWaitingBytes: 100 });
    const slow = receiver();
    const big = `<${'b'.repeat(300_000)}>`;
    for (const text of ['<1>', '<2>', big]) {
      outboxes.send(event(text), [slow]);
      await turn();
    }
    for (let n = 0; n < 10; n++) {
      clock.ms += 1_000;
      outboxes.look();
      slow.take();
    }
    expect(slow.text() === `<1><2>${big}`).toBe(true);
    expect(Math.max(...slow.writes.map(({ length }) => length))).toBeLessThanOrEqual(64 * 1024);
  });

  it('and then all at once has larger pieces', async () => {
    const { outboxes, receiver } = world();
    const slow = receiver();
    for (let n = 0; n < 20; n++) {
      outboxes.send(event(`<${'q'.repeat(49_998)}>`), [slow]);
      await turn();
    }
    slow.takeAll();
    expect(slow.writes.map(({ length }) => length / 50_000)).toEqual([1, 1, 5, 5, 5, 3]);
  });

  it('has what is left of a run or of an event that was begun counted, until it is taken', async () => {
    const { outboxes, receiver } = world();
    const slow = receiver();
    outboxes.send(event(`<${'b'.repeat(299_998)}>`), [slow]);
    await turn();
    expect(outboxes.state.waitingBytes).toBe(300_000 - 65_536);
    slow.take();
    expect(outboxes.state.waitingBytes).toBeLessThan(300_000 - 65_536);
    slow.takeAll();
    expect(outboxes.state).toMatchObject({ waitingBytes: 0, lagging: 0, delivered: 1, bytesWritten: 300_000 });
    const gone = receiver();
    outboxes.send(event(`<${'b'.repeat(299_998)}>`), [gone]);
    await turn();
    gone.outbox.end();
    expect(outboxes.state).toMatchObject({ waitingBytes: 0, lagging: 0 });
  });

  it('loses nothing of what fits because a large event is on its way', async () => {
    const { outboxes, receiver } = world({ maxWaitingBytes: 1_000 });
    const slow = receiver();
    const sent = [`<${'b'.repeat(300_000)}>`, ...Array.from({ length: 50 }, (_, n) => `<${n}>`)];
    for (const text of sent) {
      outboxes.send(event(text), [slow]);
      await turn();
    }
    slow.takeAll();
    expect(slow.text() === sent.join('')).toBe(true);
  });

  it('can lose of what came in one turn all that was not begun', async () => {
    const most = 20_000_000;
    const { outboxes, receiver } = world({ maxWaitingBytes: 4_000_000, maxWaitingTogetherBytes: most });
    const readers = Array.from({ length: 100 }, receiver);
    for (const reader of readers) {
      for (let n = 0; n < 900; n++) outboxes.send(event(`<${'r'.repeat(998)}>`), [reader]);
      await turn();
    }
    outboxes.send(event('<all>'), readers);
    await turn();
    const { waitingBytes, dropped, delivered } = outboxes.state;
    expect(waitingBytes).toBeGreaterThan(most / 2);
    // A share may be exceeded by what has begun.
    expect(waitingBytes).toBeLessThan(2 * most);
    expect(dropped).toBeGreaterThan(50_000);
    expect(delivered).toBeLessThan(100 * 270);
  });

  it('holds no memory of what it was given or has lost', async () => {
    const { outboxes, receiver } = world({ maxWaitingBytes: 100_000 });
    const before = arrayBufferBytes();
    const slow = receiver();
    for (let n = 0; n < 400; n++) {
      outboxes.send(event(`<${'o'.repeat(49_998)}>`), [slow]);
      await turn();
    }
    expect(outboxes.state.dropped).toBeGreaterThan(390);
    expect(arrayBufferBytes() - before).toBeLessThan(4_000_000);
  });

  it('keeps no block for itself when there are many like it', async () => {
    const { outboxes, receiver } = world();
    const before = arrayBufferBytes();
    const readers = Array.from({ length: 200 }, receiver);
    for (const reader of readers) {
      outboxes.send(event(`<${'m'.repeat(9_998)}>`), [reader]);
      await turn();
    }
    expect(arrayBufferBytes() - before).toBeLessThan(45_000_000);
    for (const { outbox, text } of readers) {
      expect(text()).toHaveLength(10_000);
      outbox.end();
    }
    expect(arrayBufferBytes() - before).toBeLessThan(20_000_000);
  });

  it('keeps what it was given as it was while the others get more', async () => {
    const { outboxes, receiver } = world();
    const kept: Buffer[] = [];
    const outbox = outboxes.open({ write: (bytes) => void kept.push(bytes) });
    const fast = receiver();
    outboxes.send(event('<first>'), [{ outbox, username: 'ada' }, fast]);
    await turn();
    for (let n = 0; n < 100; n++) {
      fast.takeAll();
      outboxes.send(event(`<${'n'.repeat(40_000)}>`), [fast]);
      await turn();
    }
    expect(String(kept[0])).toBe('<first>');
    expect(fast.text()).toHaveLength(7 + 100 * 40_002);
  });

  it('that has closed gets nothing more', async () => {
    const clock = { ms: 0 };
    const limits = { maxWaitingBytes: 1_000, maxWaitingTogetherBytes: 1_000 };
    const outboxes = new Outboxes(limits, () => clock.ms, replacement);
    let fails: (error: Error) => void = () => undefined;
    let writes = 0;
    const outbox = outboxes.open({
      write(_, done) {
        writes++;
        fails = done;
      },
    });
    for (const text of ['<1>', '<2>', '<3>']) {
      outboxes.send(event(text), [{ outbox, username: 'ada' }]);
      await turn();
    }
    fails(new Error('closed'));
    outboxes.send(event('<4>'), [{ outbox, username: 'ada' }]);
    await turn();
    expect([writes, outboxes.state.waitingBytes, outboxes.state.lagging]).toEqual([1, 0, 0]);
  });

  it('counts as stalled when nothing was taken for so long, and only while something waits', async () => {
    const { outboxes, receiver, clock } = world();
    const slow = receiver();
    clock.ms = 100_000;
    outboxes.look();
    expect(slow.outbox.isStalled(60_000)).toBe(false);
    outboxes.send(event('<1>'), [slow]);
    outboxes.send(event('<2>'), [slow]);
    await turn();
    clock.ms = 159_999;
    outboxes.look();
    expect(slow.outbox.isStalled(60_000)).toBe(false);
    clock.ms = 160_000;
    outboxes.look();
    expect(slow.outbox.isStalled(60_000)).toBe(true);
    slow.take();
    expect(slow.outbox.isStalled(60_000)).toBe(false);
  });
});
