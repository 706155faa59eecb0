// What the archive does while its table is locked, as by VACUUM FULL, and after that: senders go
// on, and what waited is stored.

import { describe, expect, it, vi } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { type ArchiveLimits, EventArchive } from '../archive/archive.ts';
import { archivedEvent, memoryCot, memoryLosses, memoryUnwritten, uids } from './fake-core-archive.ts';

/** However slow the machine is. */
const UNHURRIED = { timeout: 8_000 };

const ERRORS = {
  locked: () => Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' }),
  unavailable: () => new AppError('unavailable', 'the database does not answer'),
};

function world(limits: Partial<ArchiveLimits> = {}) {
  const cot = memoryCot();
  const losses = memoryLosses();
  const log = memoryLog();
  /** `once`: one write gets through. */
  const table = { mood: 'good' as 'good' | 'locked' | 'unavailable', once: false };
  /** Whether senders rest, before each write that gets through. */
  const rests: boolean[] = [];
  const archive = new EventArchive({
    write: {
      ids: (count) => cot.ids(count),
      async write(rows, again) {
        const { mood, once } = table;
        table.once = false;
        if (!once && mood !== 'good') throw ERRORS[mood]();
        rests.push(archive.isFullFor('ada'));
        await cot.write(rows, again);
      },
    },
    losses,
    unwritten: memoryUnwritten(),
    log,
    now: () => new Date(),
    limits: { lagMs: 1, firstPauseMs: 2, maxPauseMs: 5, ...limits },
  });
  const store = (from: number, to: number): void => {
    for (let n = from; n < to; n++) archive.store(archivedEvent({ uid: `u${n}` }));
  };
  const outages = (): number => log.events.filter(({ event }) => event === 'archive.behind').length;
  /** From the lock on until the archive knows of it; `many` wait then. */
  async function locked(many: number, mood: 'locked' | 'unavailable' = 'locked'): Promise<void> {
    table.mood = mood;
    const before = outages();
    store(0, 1);
    await vi.waitFor(() => expect(outages()).toBe(before + 1), UNHURRIED);
    store(1, many);
  }
  return { cot, losses, table, archive, store, locked, outages, rests };
}

/** Writes wait for it: the database answers, and takes nothing yet. */
function gate(cot: ReturnType<typeof memoryCot>) {
  const { promise, resolve } = Promise.withResolvers<void>();
  cot.gate = promise;
  return resolve;
}

describe('while the table is locked', () => {
  it('45,000 events wait, nobody rests, and all are stored afterwards, each once', async () => {
    const { cot, table, archive, locked } = world();
    await locked(45_000);
    expect(archive.counts()).toMatchObject({ waiting: 45_000, stored: 0, lost: 0 });
    expect(archive.isFullFor('ada')).toBe(false);
    table.mood = 'good';
    await vi.waitFor(() => expect(archive.counts()).toMatchObject({ waiting: 0, stored: 45_000, lost: 0 }), UNHURRIED);
    expect([...cot.rows.values()].toSorted()).toEqual(uids(0, 45_000).toSorted());
  });

  it('what is beyond the bound is counted and told exactly, with the lock as its reason', async () => {
    const { losses, table, archive, locked } = world({ maxEvents: 1_000, batchEvents: 50 });
    await locked(3_000);
    const { lost, waiting } = archive.counts();
    expect(lost + waiting).toBe(3_000);
    expect(lost).toBeGreaterThanOrEqual(1_900);
    table.mood = 'good';
    await vi.waitFor(() => expect(archive.counts()).toMatchObject({ waiting: 0, stored: waiting, lost }), UNHURRIED);
    await archive.close(1_000);
    expect([...losses.rows.values()]).toMatchObject([{ events: lost, reason: 'a table of events was locked' }]);
  });
});

describe('after the lock', () => {
  it('senders do not rest for what has waited meanwhile', async () => {
    const { table, archive, locked, rests } = world({ highEvents: 1_000 });
    await locked(4_000);
    table.mood = 'good';
    await vi.waitFor(() => expect(archive.counts().stored).toBe(4_000), UNHURRIED);
    expect(rests.length).toBeGreaterThan(8);
    expect(rests).not.toContain(true);
  });

  it('they rest when more comes than the database takes, until it has caught up with that', async () => {
    const { cot, table, archive, store, locked } = world({ highEvents: 1_000 });
    await locked(4_000);
    table.mood = 'good';
    await vi.waitFor(() => expect(archive.counts().stored).toBeGreaterThan(0), { ...UNHURRIED, interval: 0 });
    const release = gate(cot);
    store(4_000, 8_500);
    expect(archive.isFullFor('ada')).toBe(true);
    let resumed = 0;
    archive.onRoom(() => resumed++);
    release();
    await vi.waitFor(() => expect(archive.counts().stored).toBe(8_500), UNHURRIED);
    expect([archive.isFullFor('ada'), resumed]).toEqual([false, 1]);
  });

  it('they rest before anything is lost to a database that answers again', async () => {
    const { table, archive, locked, rests } = world({ highEvents: 1_000, maxEvents: 4_000, batchEvents: 50 });
    await locked(4_000);
    table.mood = 'good';
    await vi.waitFor(() => expect(archive.counts()).toMatchObject({ waiting: 0, stored: 4_000, lost: 0 }), UNHURRIED);
    expect(rests).toContain(true);
    expect([rests.at(-1), archive.isFullFor('ada')]).toEqual([false, false]);
  });

  it.each([
    ['a lock that comes again before all is stored changes nothing in that', 'locked', false],
    [
      'a database that goes away again before all is stored makes them rest as one that is too slow',
      'unavailable',
      true,
    ],
  ] as const)('%s', async (_, mood, doRest) => {
    const { table, archive, store, locked, outages, rests } = world({ highEvents: 1_000 });
    await locked(3_000, mood);
    table.once = true;
    await vi.waitFor(() => expect(outages()).toBe(2), UNHURRIED);
    store(3_000, 6_000);
    const before = rests.length;
    table.mood = 'good';
    await vi.waitFor(() => expect(archive.counts()).toMatchObject({ waiting: 0, stored: 6_000, lost: 0 }), UNHURRIED);
    expect(rests.slice(before).includes(true)).toBe(doRest);
  });
});
