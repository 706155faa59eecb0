import { describe, expect, it } from 'vitest';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { Freshness } from '../mesh/freshness.ts';
import { settled } from './fake-cot-stream.ts';
import { MemoryHub } from './memory-bus.ts';

function world() {
  const bus = new MemoryHub().bus();
  const state = { ms: 0, isDatabaseUp: true, reread: 0, all: 0, forgotten: 0, settled: Promise.resolve() };
  const answer = async (kind: 'reread' | 'all'): Promise<void> => {
    if (!state.isDatabaseUp) throw new Error('the database is away');
    state[kind]++;
  };
  const log = memoryLog();
  const freshness = new Freshness({
    bus,
    settled: () => state.settled,
    forget: () => void state.forgotten++,
    reread: () => answer('reread'),
    rereadAll: () => answer('all'),
    log,
    steadyMs: () => state.ms,
  });
  return { bus, state, log, freshness };
}

async function joined() {
  const made = world();
  await made.freshness.look();
  return made;
}

describe('a node of a cluster', () => {
  it('rereads everything once after it has joined, then admits without a question', async () => {
    const { freshness, state } = await joined();
    expect([state.all, freshness.isFresh]).toEqual([1, true]);
    expect(await freshness.admit()).toBe(true);
    expect(state.reread).toBe(0);
  });

  it('that stood still asks the bus before it admits, and needs no database', async () => {
    const { freshness, state } = await joined();
    state.ms += 60_000;
    state.isDatabaseUp = false;
    expect(freshness.isFresh).toBe(false);
    expect(await freshness.admit()).toBe(true);
    expect(freshness.isFresh).toBe(true);
  });

  it('that stood still admits nobody before it has read what it was told meanwhile', async () => {
    const { freshness, state } = await joined();
    const { promise, resolve } = Promise.withResolvers<void>();
    state.ms += 60_000;
    state.settled = promise;
    let isAdmitted = false;
    const admitting = freshness.admit().then((admitted) => (isAdmitted = admitted));
    await settled();
    expect(isAdmitted).toBe(false);
    resolve();
    await admitting;
    expect(isAdmitted).toBe(true);
  });

  it('that is cut off rereads before each admission, and admits nobody when it cannot', async () => {
    const { freshness, state, bus } = await joined();
    bus.turn(false);
    expect(await freshness.admit()).toBe(true);
    expect(await freshness.admit()).toBe(true);
    expect(state.reread).toBe(2);
    state.isDatabaseUp = false;
    expect(await freshness.admit()).toBe(false);
  });

  it('forgets once when it is cut off and once when it is back, however often it rereads', async () => {
    const { freshness, state, bus } = await joined();
    const before = state.forgotten;
    bus.turn(false);
    for (let n = 0; n < 5; n++) {
      await freshness.look();
      await freshness.admit();
    }
    expect([state.forgotten - before, state.reread]).toEqual([1, 10]);
    state.isDatabaseUp = false;
    bus.turn(true);
    await settled();
    await freshness.admit();
    state.isDatabaseUp = true;
    await freshness.look();
    expect([state.forgotten - before, freshness.isFresh]).toEqual([2, true]);
  });

  it('that reaches neither the bus nor the database says so once, however many want in', async () => {
    const { freshness, state, bus, log } = await joined();
    state.isDatabaseUp = false;
    bus.turn(false);
    for (let n = 0; n < 5; n++) {
      expect(await freshness.admit()).toBe(false);
      await freshness.look();
    }
    expect(log.events.map(({ event }) => event)).toEqual(['mesh.reread_failed']);
    state.isDatabaseUp = true;
    expect(await freshness.admit()).toBe(true);
    expect(log.events.map(({ event }) => event)).toEqual(['mesh.reread_failed', 'mesh.reread']);
  });

  it('that is back rereads everything before it counts as fresh, as often as it takes', async () => {
    const { freshness, state, bus } = await joined();
    state.isDatabaseUp = false;
    bus.turn(false);
    bus.turn(true);
    await settled();
    expect([state.all, freshness.isFresh, await freshness.admit()]).toEqual([1, false, false]);
    state.isDatabaseUp = true;
    await freshness.look();
    expect([state.all, freshness.isFresh]).toEqual([2, true]);
  });
});
