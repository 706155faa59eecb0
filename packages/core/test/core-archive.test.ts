// What the archive does with events while its database is well, slow, away, or refuses a row.

import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { archivable, instantOf } from '../archive/archivable.ts';
import { type ArchiveLimits, EventArchive } from '../archive/archive.ts';
import { takesNothing } from '../archive/batches.ts';
import { archivedEvent, memoryCot, memoryLosses, memoryUnwritten, RECEIVED_MS, uids } from './fake-core-archive.ts';
import { runs } from '../../../test/support/runs.ts';

function world(limits: Partial<ArchiveLimits> = {}) {
  const cot = memoryCot();
  const losses = memoryLosses();
  const log = memoryLog();
  const archive = new EventArchive({
    write: cot,
    losses,
    unwritten: memoryUnwritten(),
    log,
    now: () => new Date(),
    limits: { lagMs: 1, firstPauseMs: 2, maxPauseMs: 5, ...limits },
  });
  const store = (from: number, to: number, input = {}): void => {
    for (let n = from; n < to; n++) archive.store(archivedEvent({ uid: `u${n}`, ...input }));
  };
  const names = (): string[] => log.events.map(({ event }) => event);
  return { cot, losses, log, archive, store, names };
}

describe('the archive', () => {
  it('stores what comes in few statements, the ids in the order in which it came', async () => {
    const { cot, archive, store } = world();
    store(0, 1200);
    await vi.waitFor(() => expect(archive.counts().stored).toBe(1200));
    expect([...cot.rows.values()]).toEqual(uids(0, 1200));
    expect(cot.writes).toBe(3);
    expect(archive.counts()).toEqual({ waiting: 0, capacity: 100_000, stored: 1200, skipped: 0, lost: 0 });
  });

  it('writes within the lag at light load, and does not write each event alone', async () => {
    const { cot, archive, store } = world({ lagMs: 20 });
    for (let n = 0; n < 10; n++) {
      store(n, n + 1);
      await nextTurn();
    }
    await vi.waitFor(() => expect(archive.counts().stored).toBe(10), { timeout: 200 });
    expect(cot.writes).toBeLessThanOrEqual(3);
  });

  it('takes no more characters into one statement than it may, but one event always', async () => {
    const { cot, archive, store } = world({ batchCharacters: 10_000 });
    store(0, 6, { detail: 'x'.repeat(4_000) });
    store(6, 7, { detail: 'x'.repeat(50_000) });
    await vi.waitFor(() => expect(archive.counts().stored).toBe(7));
    expect(cot.writes).toBe(4);
  });

  it('writes again what was written and not answered, and nothing is there twice', async () => {
    const { cot, archive, store } = world();
    cot.mood = 'lost';
    store(0, 700);
    await vi.waitFor(() => expect(cot.writes).toBeGreaterThan(5));
    cot.mood = 'good';
    await vi.waitFor(() => expect(archive.counts().stored).toBe(700));
    expect([...cot.rows.values()].toSorted()).toEqual(uids(0, 700).toSorted());
    expect(archive.counts().lost).toBe(0);
  });

  it('has everything once, but what is refused, whatever the database does meanwhile', async () => {
    const step = fc.oneof(
      fc.record({ store: fc.integer({ min: 1, max: 40 }), refuse: fc.boolean() }),
      fc.record({ mood: fc.constantFrom('good' as const, 'away' as const, 'lost' as const) }),
      fc.constant({ rest: true }),
    );
    const random = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { cot, archive, store } = world({ batchEvents: 16, firstPauseMs: 0, maxPauseMs: 1, lagMs: 0 });
      let sent = 0;
      for (const each of steps) {
        if ('mood' in each) cot.mood = each.mood;
        else if ('rest' in each) await delay(1);
        else {
          if (each.refuse) cot.refused.add(`u${sent}`);
          store(sent, (sent += each.store));
        }
      }
      cot.mood = 'good';
      await vi.waitFor(() => expect(archive.counts().waiting).toBe(0), { interval: 1 });
      const kept = uids(0, sent).filter((uid) => !cot.refused.has(uid));
      expect([...cot.rows.values()].toSorted()).toEqual(kept.toSorted());
      expect(archive.counts()).toMatchObject({ stored: kept.length, lost: cot.refused.size });
    });
    await fc.assert(random, { numRuns: runs(30) });
  });

  it('finds the rows that the database refuses, loses these, and says so without what they hold', async () => {
    const { cot, losses, log, archive, store } = world();
    for (const uid of ['u3', 'u499', 'u777']) cot.refused.add(uid);
    store(0, 1000);
    await vi.waitFor(() => expect(archive.counts()).toMatchObject({ stored: 997, lost: 3, waiting: 0 }));
    expect(cot.rows.size).toBe(997);
    await archive.close(1000);
    expect([...losses.rows.values()]).toMatchObject([
      { events: 3, reason: 'the database refused it (23514: new row for "…" violates it)' },
    ]);
    expect(log.events.filter(({ event }) => event === 'archive.lost')).toHaveLength(2);
  });

  it('is full while the database is slow, and says when there is room again', async () => {
    const { cot, archive, store } = world({ highEvents: 1000 });
    let resumed = 0;
    archive.onRoom(() => resumed++);
    const { promise, resolve } = Promise.withResolvers<void>();
    cot.gate = promise;
    store(0, 900);
    await delay(5);
    expect(archive.isFullFor('ada')).toBe(false);
    store(900, 1500);
    expect([archive.isFullFor('ada'), resumed]).toEqual([true, 0]);
    resolve();
    await vi.waitFor(() => expect(archive.counts().stored).toBe(1500));
    expect([archive.isFullFor('ada'), resumed]).toEqual([false, 1]);
  });

  it('is full for whoever fills it, and for nobody who has less than an even share of what waits', async () => {
    const { cot, archive, store } = world({ highEvents: 100 });
    const { promise, resolve } = Promise.withResolvers<void>();
    cot.gate = promise;
    store(0, 1, { sender: 'x' });
    await delay(5);
    store(1, 201, { sender: 'mallory' });
    store(201, 211, { sender: 'ada' });
    expect(['mallory', 'ada', 'zed'].map((who) => archive.isFullFor(who))).toEqual([true, false, false]);
    store(211, 251, { sender: 'ada' });
    expect(archive.isFullFor('ada')).toBe(true);
    resolve();
    await vi.waitFor(() => expect(archive.counts().stored).toBe(251));
    expect(['mallory', 'ada'].map((who) => archive.isFullFor(who))).toEqual([false, false]);
  });

  it('counts a chat for each of its rows, and copies no large one a hundred times', () => {
    const chatOf = (length: number) =>
      archivable(
        archivedEvent({
          detail: 'x'.repeat(length),
          chat: {
            senderCallsign: null,
            destCallsign: null,
            destUids: Array.from({ length: 250 }, (_, n) => `u${n}`),
            content: null,
            room: null,
          },
        }),
      );
    expect([chatOf(1_000)?.rows, chatOf(100_000)?.rows]).toEqual([250, 10]);
    expect(chatOf(1_000)?.characters).toBeGreaterThan(250 * 1_000);
  });

  it('is not full while the database takes nothing: senders go on, the oldest that wait are lost and counted', async () => {
    const { cot, losses, archive, store, names } = world({ highEvents: 100, maxEvents: 1000, batchEvents: 50 });
    let resumed = 0;
    archive.onRoom(() => resumed++);
    cot.mood = 'away';
    store(0, 200);
    expect(archive.isFullFor('ada')).toBe(true);
    await vi.waitFor(() => expect(archive.isFullFor('ada')).toBe(false));
    expect(resumed).toBe(1);
    store(200, 1500);
    expect(archive.counts()).toMatchObject({ waiting: 1050, lost: 450, stored: 0 });
    expect(archive.isFullFor('ada')).toBe(false);
    cot.mood = 'good';
    await vi.waitFor(() => expect(archive.counts()).toMatchObject({ waiting: 0, stored: 1050 }));
    expect([...cot.rows.values()]).toEqual([...uids(0, 50), ...uids(500, 1500)]);
    await archive.close(1000);
    expect([...losses.rows.values()]).toMatchObject([{ events: 450, reason: 'the database took nothing' }]);
    expect(names()).toEqual(['archive.behind', 'archive.lost', 'archive.caught_up', 'archive.lost']);
  });

  it.each(['how', 'access', 'qos', 'opex', 'caveat', 'releaseableTo', 'detail'] as const)(
    'keeps no more characters than it may, wherever a client puts them: %s',
    (member) => {
      const { cot, archive, store } = world({ maxCharacters: 100_000 });
      cot.mood = 'away';
      store(0, 50, { [member]: 'x'.repeat(9_000) });
      expect(archive.counts()).toMatchObject({ waiting: 10, lost: 40 });
    },
  );

  it('writes what is waiting when it is closed, at once', async () => {
    const { archive, cot, store } = world({ lagMs: 60_000 });
    store(0, 10);
    await archive.close(1000);
    expect(cot.rows.size).toBe(10);
    store(10, 11);
    expect(archive.counts()).toMatchObject({ stored: 10, lost: 1 });
  });

  it('ends in time when it is closed while the database is away, and counts what is lost by that', async () => {
    const { archive, cot, store } = world();
    cot.mood = 'away';
    store(0, 10);
    await archive.close(200);
    expect(archive.counts()).toEqual({ waiting: 0, capacity: 100_000, stored: 0, skipped: 0, lost: 10 });
  });
});

describe('an event', () => {
  const BAD = [
    { start: undefined },
    { stale: undefined },
    { time: 'soon' },
    { start: '' },
    { start: '+300000-01-01T00:00:00Z' },
    { start: '2026-13-01T00:00:00Z' },
    { stale: `2026-11-22T05:30:00.${'1'.repeat(400)}Z` },
    { uid: '' },
    { uid: 'x'.repeat(513) },
    { type: 'x'.repeat(513) },
    { receivedAtMs: Number.NaN },
    ...[Number.NaN, Number.POSITIVE_INFINITY, 1e16].map((hae) => ({ point: { ...archivedEvent().point, hae } })),
    ...[Number.NaN, 1e7].map((lat) => ({ point: { ...archivedEvent().point, lat } })),
  ];
  it.each(BAD)('that no row can be is skipped: %j', async (input) => {
    const { archive } = world();
    archive.store(archivedEvent(input));
    expect(archive.counts()).toMatchObject({ waiting: 0, skipped: 1, lost: 0 });
  });

  it.each([
    ['2026-11-22T05:30:00Z', 0],
    ['2026-11-22T05:30:00.007Z', 7],
    ['2026-11-22T05:30:00.0070000Z', 7],
    ['2026-11-22T06:30:00+01:00', 0],
    ['2026-11-22T06:30:00+0100', 0],
    ['2026-11-22T05:30:00', 0],
  ])('may write its dates as %s', (text, ms) => expect(instantOf(text)).toBe(RECEIVED_MS + ms));

  it.each(['22 Nov 2026', '2026-11-22', '1763789400000', '2026-11-22T05:30Z', 'Invalid Date'])(
    'may not write them as %s',
    (text) => expect(instantOf(text)).toBeUndefined(),
  );

  it.each([
    '2024-02-29',
    '2026-02-28',
    '2026-12-31',
    '0099-01-01',
    '2026-00-10',
    '2026-13-01',
    '2026-11-32',
    '2026-1a-01',
  ])('may be of %s when that is a date, at any time of the day that there is', (day) => {
    for (const time of ['00:00:00', '23:59:59', '24:00:01', '05:60:00', '05:30:61', '05:3x:00', '05.30:00'])
      for (const fraction of ['', '.123', '.1x3']) {
        const text = `${day}T${time}${fraction}Z`;
        const ms = Date.parse(text);
        expect(instantOf(text), text).toBe(Number.isNaN(ms) ? undefined : ms);
      }
  });

  it('to very many has a row for no more than the limits allow', () => {
    const chat = { senderCallsign: 'A', destCallsign: 'B', content: 'x', room: 'B', destUids: uids(0, 5000) };
    expect(archivable(archivedEvent({ chat }))?.rows).toBe(1000);
    expect(archivable(archivedEvent({ chat, detail: 'x'.repeat(128 * 1024) }))?.rows).toBe(7);
    expect(archivable(archivedEvent({ chat: { ...chat, destUids: [] } }))?.rows).toBe(1);
  });
});

it.each([
  [new AppError('unavailable', 'away'), true],
  [Object.assign(new Error('no such table'), { code: '42P01' }), true],
  [Object.assign(new Error('disk full'), { code: '53100' }), true],
  [Object.assign(new Error('overflow'), { code: '22003' }), false],
  [Object.assign(new Error('index row too long'), { code: '54000' }), false],
  [new TypeError('ours'), false],
])('an error is of the server or of a row: %s', (error, expected) => expect(takesNothing(error)).toBe(expected));
