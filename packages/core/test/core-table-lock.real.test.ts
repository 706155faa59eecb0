// The table of events under an exclusive lock, as VACUUM FULL has it for minutes, on a real
// PostgreSQL: what goes on meanwhile, what waits, and that nothing is lost.

import { beforeEach, describe, expect, it } from 'vitest';
import { codeOf as codeOfThrown } from '@holdfast/kit/app-error';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { coreDatabase } from '../../../shared/core/database/database.ts';
import { codeOf } from '../../../test/core/core-retention-contract.ts';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { LIMIT, retentionRows, retentionWorld } from '../../../test/retention/core-retention-world-contract.ts';
import { createMissions } from '../missions/create-missions.ts';
import type { RunSql } from '../store/certificates.ts';
import { cotWriter } from '../store/cot-events.ts';
import { GroupVectors } from '../store/groups.ts';
import { coreDatabaseFacts } from '../store/presence.ts';
import { eventTable } from '../store/tables.ts';
import { EventArchive } from '../archive/archive.ts';
import { coreTables } from './core-tables.ts';
import { adminWorld } from './fake-core-admin.ts';
import { archivedEvent, memoryLosses, memoryUnwritten, uids } from './fake-core-archive.ts';

const core = coreTables();
const rows = retentionRows(() => core.sql);
beforeEach(() => rows.emptied());

/** Gives up waiting for a lock after 100 ms. */
function impatient(name: string): RunSql {
  const options = { name, called: 'the database', variable: 'it', lockTimeoutMs: 100 };
  return keptDatabase(new Secret(core.url()), options);
}

const whileLocked = <T>(work: () => Promise<T>): Promise<T> =>
  core.sql.begin(async (tx) => {
    await tx`LOCK TABLE cot_router IN ACCESS EXCLUSIVE MODE`;
    return work();
  }) as Promise<T>;

describe('what people ask', () => {
  let steadyMs = 0;
  const run: RunSql = (use) => use(core.sql);
  const now = (): Date => new Date();
  const made = () => {
    const runEvents = eventTable(impatient('events'), () => steadyMs);
    const missions = createMissions({
      run,
      runEvents,
      tokenKey: Buffer.alloc(32, 1),
      hostname: 'cot.example.org',
      notices: () => undefined,
      connected: { list: () => [] },
      log: memoryLog(),
      now,
    });
    return { ...missions.parts, database: coreDatabaseFacts(run, runEvents), runEvents };
  };
  it('of missions is answered, without what the events say; what is of events alone is unavailable', async () => {
    const { reads, writes, events, database } = made();
    const id = await rows.mission('m');
    await rows.holds(id, { uid: 'u1' });
    await core.sql`INSERT INTO mission_change (mission_id, change_type, uid, ts) VALUES (${id}, 2, 'u1', now())`;
    await rows.event('u1');
    const mission = await reads.find({ name: 'm' }, 'all');
    if (mission === undefined) throw new Error('no mission');
    const window = { start: undefined, end: undefined, squashed: false };
    const shown = async () => {
      const { uids: contents } = await reads.contents([id], 10, 'all');
      const changes = await reads.changes(mission, window, 'all');
      return [contents, changes].map((list) => list.map(({ details }) => details?.type));
    };
    expect(await shown()).toEqual([['a-f-G'], ['a-f-G']]);
    await whileLocked(async () => {
      expect(await shown()).toEqual([[undefined], [undefined]]);
      expect((await reads.contents([id], 10)).uids).toHaveLength(1);
      for (const work of [() => events.newest(id, 'all'), () => writes.removeEvents(id), () => database.cotCount()])
        expect(await codeOf(work())).toBe('unavailable');
      const world = adminWorld({ database });
      expect((await world.ask('GET', '/Marti/api/database/cotCount')).status).toBe(503);
      world.end();
    });
    steadyMs += 10_000;
    expect(await shown()).toEqual([['a-f-G'], ['a-f-G']]);
    expect((await database.cotCount()).cotEvents).toBe(1);
  });

  it('is refused at once after one has met the lock, and asked again a moment later', async () => {
    const requests: string[] = [];
    const met = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });
    const outcomes = [Promise.reject(met), Promise.resolve('rows')];
    for (const outcome of outcomes) outcome.catch(() => undefined);
    const guarded = eventTable(
      (() => {
        requests.push('asked');
        return outcomes[requests.length - 1];
      }) as RunSql,
      () => steadyMs,
    );
    const work = (): Promise<unknown> => guarded(async () => 'rows');
    expect([await codeOf(work()), await codeOf(work())]).toEqual(['unavailable', 'unavailable']);
    expect(requests).toHaveLength(1);
    steadyMs += 10_000;
    expect([await work(), requests.length]).toEqual(['rows', 2]);
  });

  it('of health is answered within its time, and names the table', async () => {
    const facts = coreDatabase({ run: impatient('health') });
    await whileLocked(async () => {
      expect((await facts.size()).locked_tables).toEqual(['public.cot_router']);
      expect((await facts.vacuumStatistics()).tables.map(({ table }) => table)).toContain('cot_router');
      expect(await facts.eventLosses()).toBe('none');
    });
  });
});

it('what the stream stores waits for the lock, and is there afterwards, each once', async () => {
  const run = impatient('archive');
  const log = memoryLog();
  const archive = new EventArchive({
    write: cotWriter(run, new GroupVectors(run)),
    losses: memoryLosses(),
    unwritten: memoryUnwritten(),
    log,
    now: () => new Date(),
    limits: { firstPauseMs: 20, maxPauseMs: 50 },
  });
  await whileLocked(async () => {
    for (const uid of uids(0, 3_000)) archive.store(archivedEvent({ uid }));
    await expect.poll(() => log.events.map(({ event }) => event)).toContain('archive.behind');
    expect(archive.counts()).toMatchObject({ waiting: 3_000, stored: 0, lost: 0 });
    expect(archive.isFullFor('ada')).toBe(false);
  });
  await expect.poll(() => archive.counts()).toMatchObject({ waiting: 0, stored: 3_000, lost: 0 });
  expect(await rows.uids()).toEqual(uids(0, 3_000).toSorted());
  await archive.close(1_000);
});

describe('a run of retention', () => {
  /** How often it has met the lock. */
  function counted() {
    const run = impatient('retention');
    const met = { locks: 0 };
    const counting: RunSql = (use) =>
      run(use).catch((error: unknown) => {
        if (codeOfThrown(error) === '55P03') met.locks++;
        throw error;
      });
    return { met, run: counting };
  }

  it('that comes upon the lock waits, however often it has met it, and goes on', async () => {
    await rows.many(5_000);
    await rows.event('kept', LIMIT);
    const { met, run } = counted();
    const patience = { firstPauseMs: 10, maxPauseMs: 20, forMs: 0, lockedForMs: 60_000 };
    const world = retentionWorld(core.sql, core.data(), { run, patience });
    const id = await whileLocked(async () => {
      const begun = await world.begun(['cot']);
      await expect.poll(() => met.locks, { timeout: 10_000 }).toBeGreaterThan(8);
      return begun.id;
    });
    expect(await world.ended(id)).toMatchObject({ state: 'done', rows: { cot: 5_000 }, error: null });
    expect(await rows.uids()).toEqual(['kept']);
  });

  it('that waits longer than it may has failed, and the next one deletes the rest', async () => {
    await rows.event('old');
    const patience = { firstPauseMs: 10, maxPauseMs: 20, forMs: 60_000, lockedForMs: 50 };
    const world = retentionWorld(core.sql, core.data(), { ...counted(), patience });
    const run = await whileLocked(() => world.whole(['cot']));
    expect([run.state, run.error]).toEqual(['failed', expect.stringContaining('lock timeout')]);
    expect(await world.whole(['cot'])).toMatchObject({ state: 'done', rows: { cot: 1 } });
  });
});
