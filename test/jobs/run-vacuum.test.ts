// A vacuum from its order to its end, one step at a time: room, locks, errors, and what is said of it.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { isWanted } from '../../jobs/run-vacuum.ts';
import { NOTICE_AFTER, noticeBefore } from '../../shared/database/vacuum/rules.ts';
import { databaseMount, vacuumWorld, type VacuumWorld } from '../database/fake-vacuum-world.ts';
import { standIn } from '../devices/fake-revocation-world.ts';

let world: VacuumWorld;
beforeEach(async () => {
  world = await vacuumWorld();
});

const outcomes = () =>
  world.deps.audit.records.filter(({ action, phase }) => action === 'database.vacuum' && phase === 'outcome');
const BOTH = { mode: 'full', tables: ['resource', 'cot_router'] };
const ONE = { mode: 'full', tables: ['cot_router'] };
const unavailable = () => Promise.reject(new AppError('unavailable', 'The core’s database is unavailable'));
const tablesOf = async (id: string) => ((await world.job(id)).result as { tables: Record<string, unknown>[] }).tables;

describe('run-vacuum', () => {
  it('is wanted while a vacuum is ordered', async () => {
    expect([await isWanted(world.deps), await world.step()]).toEqual([false, 'none']);
    const id = await world.ordered();
    expect(await isWanted(world.deps)).toBe(true);
    await world.throughout(id);
    expect(await isWanted(world.deps)).toBe(false);
  });

  it('does one table after the other, and never two at once', async () => {
    const id = await world.ordered();
    const names = () => world.vacuum.begun.map(({ table }) => table);
    await world.step();
    expect(names()).toEqual(['cot_router_chat']);
    expect([await world.step(), await world.step(), names().length]).toEqual(['running', 'running', 1]);
    world.vacuum.end(id);
    await world.step();
    await world.step();
    expect(names()).toEqual(['cot_router_chat', 'resource']);
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded', error: null, progress: 1 });
    expect(names()).toEqual(['cot_router_chat', 'resource', 'cot_router']);
    expect(world.vacuum.begun.every(({ job, mode }) => job === id && mode === 'full')).toBe(true);
    expect(world.vacuum.statements.size).toBe(0);
  });

  it('does small tables at once, without a pause between them', async () => {
    const id = await world.ordered();
    standIn(world.deps.coreVacuum, 'begin', (real) => async (order) => {
      await real(order);
      if (order.table !== 'cot_router') world.vacuum.end(id);
    });
    expect(await world.step()).toBe('running');
    expect(world.vacuum.begun.map(({ table }) => table)).toEqual(['cot_router_chat', 'resource', 'cot_router']);
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
  });

  it('ends its step after some seconds, with however many of them', async () => {
    const id = await world.ordered();
    standIn(world.deps.coreVacuum, 'begin', (real) => async (order) => {
      await real(order);
      world.later(3);
      world.vacuum.end(id);
    });
    expect(await world.step()).toBe('running');
    expect(world.vacuum.begun).toHaveLength(2);
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
  });

  it('leaves out a table that was given to somebody else meanwhile', async () => {
    const id = await world.ordered(BOTH);
    world.table('resource').allowed = false;
    await world.throughout(id);
    expect(await tablesOf(id)).toMatchObject([
      { state: 'skipped', error: 'the owner of the database may no longer vacuum it.' },
      { state: 'done' },
    ]);
  });

  it('tells what was given back, of each table and in all', async () => {
    const id = await world.ordered(BOTH);
    const job = await world.throughout(id);
    expect(job.result).toMatchObject({
      mode: 'full',
      tables: [
        {
          table: 'resource',
          state: 'done',
          bytes_before: 1e9,
          bytes_after: 7.5e8,
          dead_tuples_before: 10,
          error: null,
        },
        { table: 'cot_router', state: 'done', bytes_before: 8e9, bytes_after: 6e9, seconds: 2 },
      ],
      bytes_before: 9e9,
      bytes_after: 6.75e9,
      bytes_given_back: 2.25e9,
    });
    expect(await world.reportedIn(id)).toEqual([
      `3 clients notified: ${noticeBefore(97)}`,
      'resource: VACUUM FULL started, 1 GB.',
      'resource: done in 2 s, 1 GB before, 750 MB after.',
      'cot_router: VACUUM FULL started, 8 GB.',
      'cot_router: done in 2 s, 8 GB before, 6 GB after.',
      `3 clients notified: ${NOTICE_AFTER}`,
      '2.3 GB returned to the disk: 9 GB before, 6.8 GB after.',
    ]);
    expect(outcomes()).toMatchObject([{ actor: 'webadmin', target: id, result: 'ok' }]);
    expect(JSON.parse(outcomes()[0]?.detail ?? '')).toMatchObject({ tables: { done: 2 }, bytes_given_back: 2.25e9 });
  });

  it('tells phase and percent as PostgreSQL gives them, progress by whole tables, and when it will be done', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    const statement = world.vacuum.statements.get(id);
    if (statement?.shown.state !== 'running') throw new Error('it does not run');
    Object.assign(statement.shown, { phase: 'seq scanning heap', percent: 40.0457 });
    await world.step();
    expect(await world.job(id)).toMatchObject({
      state: 'running',
      phase: 'resource: seq scanning heap',
      phasePercent: 40,
      progress: 0,
      eta: new Date(world.around.now.getTime() + (11 - 2 + 86) * 1000).toISOString(),
    });
    Object.assign(statement.shown, { waits: true });
    await world.step();
    expect(await world.job(id)).toMatchObject({ phase: 'resource: waiting for a lock', phasePercent: null });
    world.vacuum.end(id);
    await world.step();
    expect(await world.job(id)).toMatchObject({ phase: 'cot_router: VACUUM FULL', progress: 0.111 });
  });

  it('has health look again when it ends', async () => {
    const forgotten: string[] = [];
    world.deps.health.forget = (module) => void forgotten.push(module);
    await world.throughout(await world.ordered({ mode: 'standard' }));
    expect(forgotten).toEqual(['database', 'autovacuum', 'disk']);
  });

  it('does nothing to clients in the mode standard, and has no time by which it will be done', async () => {
    const id = await world.ordered({ mode: 'standard' });
    await world.begun(id);
    expect((await world.job(id)).eta).toBeNull();
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded', result: { bytes_given_back: 0 } });
    expect((await world.reportedIn(id)).at(-1)).toBe(
      'No space was returned to the disk: in standard mode new rows reuse the space of dead ones.',
    );
    expect(world.vacuum.notices).toEqual([]);
    expect(world.table('cot_router')).toMatchObject({ vacuums: 1, filenode: 1 });
  });

  it('says how many dead rows an older transaction has kept', async () => {
    const table = world.table('cot_router');
    table.dead_tuples = 50_000;
    const id = await world.ordered({ mode: 'standard', tables: ['cot_router'] });
    await world.begun(id);
    world.vacuum.end(id);
    table.dead_tuples = 40_000;
    await world.throughout(id);
    expect(await world.reportedIn(id)).toContain(
      'cot_router: 40000 dead rows could not be removed: a transaction is older than they are.',
    );
  });

  it('ends a job that it cannot read, and leaves those of other kinds alone', async () => {
    const now = world.around.now.toISOString();
    const add = (kind: string, id: string) => world.deps.opsJobs.add({ id, kind, actor: 'ada', input: 5, now });
    await add('retention', '00000000-0000-4000-8000-000000000001');
    expect(await world.step()).toBe('none');
    await add('vacuum', '00000000-0000-4000-8000-000000000002');
    expect(await world.step()).toBe('ended');
    expect((await world.job('00000000-0000-4000-8000-000000000002')).state).toBe('failed');
    const id = await world.ordered({ mode: 'standard' });
    await world.deps.opsJobs.change(id, { memory: { looked_at: 'yesterday' } });
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({
      state: 'failed',
      error: expect.stringContaining("Couldn't read the row"),
    });
    expect(world.vacuum.begun).toEqual([]);
  });
});

describe('a table that cannot be vacuumed', () => {
  it('is skipped when there is not enough room any more, with the figures, and the job goes on', async () => {
    const id = await world.ordered(BOTH);
    world.around.mounts = [databaseMount(6e9)];
    expect(await world.throughout(id)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/^Not vacuumed: 1 of 2 tables\. cot_router: cot_router needs 11 GB .*6 GB are free/),
    });
    expect(await tablesOf(id)).toMatchObject([
      { table: 'resource', state: 'done' },
      { table: 'cot_router', state: 'skipped', bytes_after: null },
    ]);
    expect(outcomes()).toMatchObject([{ result: 'failed' }]);
  });

  it('is skipped when it was dropped before its turn, or in the middle of it', async () => {
    const id = await world.ordered();
    await world.begun(id);
    world.vacuum.tables = world.vacuum.tables.filter(({ table }) => table === 'cot_router');
    world.vacuum.statements.clear();
    await world.throughout(id);
    expect(await tablesOf(id)).toMatchObject([
      { table: 'cot_router_chat', state: 'skipped', error: expect.stringContaining('dropped') },
      { table: 'resource', state: 'skipped', error: 'the table no longer exists.' },
      { table: 'cot_router', state: 'done' },
    ]);
  });

  it('has failed when it is another one by the time it is begun', async () => {
    standIn(world.deps.vacuumFacts, 'marks', (real) => async (...given) => {
      const marks = await real(...given);
      return marks && { ...marks, oid: 1 };
    });
    const id = await world.ordered(ONE);
    await world.throughout(id);
    expect(await tablesOf(id)).toMatchObject([{ state: 'failed', error: expect.stringContaining('another one') }]);
  });

  it('has failed with the words of the server, and the next one comes', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    world.vacuum.end(id, '42501', 'permission denied for table resource');
    await world.throughout(id);
    expect(await tablesOf(id)).toMatchObject([
      { state: 'failed', error: 'permission denied for table resource' },
      { state: 'done' },
    ]);
  });

  it('has failed when the statement ended well and the table is as it was', async () => {
    const id = await world.ordered(ONE);
    await world.begun(id);
    const { filenode } = world.table('cot_router');
    world.vacuum.end(id);
    world.table('cot_router').filenode = filenode;
    await world.throughout(id);
    expect(await tablesOf(id)).toMatchObject([
      { state: 'failed', error: expect.stringContaining('the table is unchanged') },
    ]);
  });

  it('ends the job when the disk is full, and nothing more is begun', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    world.vacuum.end(id, '53100', 'could not extend file: No space left on device');
    expect(await world.throughout(id)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/^The disk is full.*No space left on device Not started: 1 table\.$/),
    });
    expect(world.vacuum.begun).toHaveLength(1);
    expect(world.vacuum.notices?.at(-1)).toBe(NOTICE_AFTER);
  });
});

describe('what clients are told', () => {
  it('is one word before the first FULL and one after the last', async () => {
    const id = await world.ordered();
    standIn(world.deps.coreVacuum, 'begin', (real) => async (...given) => {
      expect(world.vacuum.notices).toHaveLength(1);
      return real(...given);
    });
    await world.throughout(id);
    expect(world.vacuum.notices).toEqual([expect.stringContaining('for about 2 minutes'), NOTICE_AFTER]);
  });

  it('is the end too, when the vacuum fails or is interrupted', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    world.vacuum.die();
    expect(await world.throughout(id)).toMatchObject({ state: 'interrupted' });
    expect(world.vacuum.notices).toHaveLength(2);
  });

  it('is nothing when nothing was begun', async () => {
    const id = await world.ordered(ONE);
    world.around.mounts = [];
    expect(await world.throughout(id)).toMatchObject({ state: 'failed' });
    expect(world.vacuum.notices).toEqual([]);
  });

  it.each([
    [
      'has no such call',
      () => (world.vacuum.notices = undefined),
      'Clients were not notified: this core has no call for it.',
    ],
    ['is away', () => (world.deps.coreNotices.announce = unavailable), "Couldn't notify clients: "],
  ])('is nothing when the core %s, which the log says once, and the vacuum goes on', async (_, change, words) => {
    change();
    const id = await world.ordered(BOTH);
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
    expect((await world.reportedIn(id)).filter((line) => line.startsWith(words))).toHaveLength(1);
  });
});
