// Runs of the embedded core's retention on a real PostgreSQL: what may be ordered, how they end,
// what is known of them.

import { randomUUID } from 'node:crypto';
import { getEventListeners } from 'node:events';
import type postgres from 'postgres';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { DAY_MS } from '@holdfast/kit/time';
import {
  heldTransaction,
  insteadOfBegin,
  isDeletion,
  LIMIT,
  retentionRows,
  type RetentionWorld,
  retentionWorld,
} from '../../../test/retention/core-retention-world-contract.ts';
import type { RunSql } from '../store/certificates.ts';
import { RetentionRunStore } from '../store/retention-runs.ts';
import { coreTablesBehindProxy } from './core-tables.ts';

const core = coreTablesBehindProxy();
const rows = retentionRows(() => core.sql);
let world: RetentionWorld;
beforeEach(async () => {
  await rows.emptied();
  world = retentionWorld(core.sql, core.data());
});

const ago = (days: number, ms = 0): string => new Date(Date.now() - days * DAY_MS + ms).toISOString();

describe('an order', () => {
  it('may not ask for more than the policy in force deletes', async () => {
    world.policy.cot = 30;
    world.policy.geochat = null;
    const order = (limits: object) => world.service.begin({ id: randomUUID(), limits, maxRows: null });
    await expect(order({ cot: ago(30, 60_000) })).rejects.toMatchObject({ kind: 'invalid' });
    await expect(order({ cot: ago(29) })).rejects.toThrow('limits.cot');
    await expect(order({ geochat: ago(400) })).rejects.toThrow('limits.geochat: the policy keeps geochat forever');
    await expect(order({ cot: 'yesterday' })).rejects.toThrow('is no moment');
    await expect(order({})).rejects.toThrow('no type is named');
    expect(await world.service.runs()).toEqual([]);
    expect(await world.ended((await order({ cot: ago(30, 200) })).id)).toMatchObject({ state: 'done' });
  });

  it('is refused while a file of the core was changed by hand and is not in force', async () => {
    await rows.event('old');
    world.edited.file = '/data/retention-policy.yml';
    await expect(world.begun(['cot'])).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('/data/retention-policy.yml was edited after the core read it'),
    });
    expect([await rows.uids(), await world.service.runs()]).toEqual([['old'], []]);
    world.edited.file = undefined;
    expect(await world.whole(['cot'])).toMatchObject({ state: 'done', rows: { cot: 1 } });
  });

  it('of the same id is the same run, after a restart too', async () => {
    await rows.event('old');
    const run = await world.whole(['cot']);
    await rows.event('old again');
    const again = { id: run.id, limits: { cot: ago(1) }, maxRows: null };
    expect(await world.service.begin(again)).toEqual(run);
    const restarted = retentionWorld(core.sql, core.data());
    await restarted.service.start();
    expect(await restarted.service.begin(again)).toEqual(run);
    expect(await rows.uids()).toEqual(['old again']);
    await restarted.service.close(1_000);
  });

  it('while a run goes on is a conflict', async () => {
    await rows.event('old');
    const batch = heldTransaction(core.sql, isDeletion);
    world = retentionWorld(core.sql, core.data(), { run: batch.run });
    const run = await world.begun(['cot']);
    expect(run).toMatchObject({ state: 'running', finishedAt: null, rows: { cot: 0 } });
    await batch.reached;
    await expect(world.begun(['cot'])).rejects.toMatchObject({ kind: 'conflict' });
    expect((await world.service.begin({ id: run.id, limits: {}, maxRows: null })).id).toBe(run.id);
    batch.end();
    expect(await world.ended(run.id)).toMatchObject({ state: 'done', rows: { cot: 1 } });
  });

  it('that would delete more than it may deletes nothing', async () => {
    await rows.many(500);
    const run = await world.whole(['cot'], 499);
    expect(run).toMatchObject({ state: 'failed', rows: { cot: 0 }, expected: 500 });
    expect(run.error).toContain('it would delete 500 rows, and at most 499');
    expect(await world.whole(['cot'], 500)).toMatchObject({ state: 'done', rows: { cot: 500 } });
  });

  it('that could not be counted stops before it has deleted more than it may', async () => {
    await rows.many(5_000);
    const uncounted = insteadOfBegin(core.sql, (work) => core.sql.begin((tx) => work(withoutCounts(tx))));
    const without = retentionWorld(core.sql, core.data(), { run: uncounted });
    const run = await without.whole(['cot'], 3_000);
    expect(run).toMatchObject({ state: 'failed', expected: null });
    expect(run.error).toContain('more than 3000 rows');
    const left = (await rows.uids()).length;
    expect(left).toBeGreaterThanOrEqual(2_000);
    expect(left).toBe(5_000 - (run.rows.cot ?? 0));
    expect(await without.whole(['cot'], left - 1)).toMatchObject({ state: 'failed' });
    expect(await without.whole(['cot'], (await rows.uids()).length)).toMatchObject({ state: 'done' });
  });
});

/** Counting beforehand always takes too long. */
function withoutCounts(tx: postgres.TransactionSql): postgres.TransactionSql {
  return new Proxy(tx, {
    apply: (target, self, args: [TemplateStringsArray, ...unknown[]]) => {
      if (String(args[0]).includes('statement_timeout'))
        return Promise.reject(Object.assign(new Error('took too long'), { code: '57014' }));
      return Reflect.apply(target, self, args) as unknown;
    },
  });
}

function withoutExpected(sql: postgres.Sql): postgres.Sql {
  return new Proxy(sql, {
    apply: (target, self, args: [TemplateStringsArray, ...unknown[]]) =>
      String(args[0]).includes('SET expected')
        ? Promise.reject(new AppError('unavailable', 'the database is away'))
        : (Reflect.apply(target, self, args) as unknown),
  });
}

describe('a run', () => {
  it('goes on with the other types when one fails, and says which', async () => {
    await rows.file('old');
    await rows.event('old');
    await rows.chat('old');
    await core.sql.unsafe(`
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
      CREATE TRIGGER refuse BEFORE DELETE ON cot_router FOR EACH ROW EXECUTE FUNCTION refuse()`);
    const run = await world.whole(['files', 'cot', 'geochat']);
    await core.sql.unsafe('DROP TRIGGER refuse ON cot_router; DROP FUNCTION refuse()');
    expect(run).toMatchObject({ state: 'failed', error: 'cot: not this one', rows: { files: 1, cot: 0, geochat: 1 } });
    expect(world.messagesOf()).toMatch(/ERROR holdfast.retention - retention run .* failed .*cot: not this one/);
    expect(await world.whole(['cot'])).toMatchObject({ state: 'done', rows: { cot: 1 } });
  });

  it('stops deleting a type that is kept longer meanwhile, and goes on with the others', async () => {
    await rows.many(3_000);
    await rows.chat('old');
    const batch = heldTransaction(core.sql, isDeletion);
    world = retentionWorld(core.sql, core.data(), { run: batch.run });
    const run = await world.begun(['cot', 'geochat']);
    await batch.reached;
    world.policy.cot = null;
    batch.end();
    const ended = await world.ended(run.id);
    expect(ended).toMatchObject({ state: 'failed', rows: { geochat: 1 } });
    expect(ended.error).toBe('cot: stopped, for since the run began the policy keeps cot forever');
    expect((await rows.uids()).length).toBe(3_000 - (ended.rows.cot ?? 0));
    expect(ended.rows.cot).toBeLessThan(3_000);
  });

  it('does not delete a mission that is kept longer meanwhile', async () => {
    await rows.mission('old');
    const { id } = await world.begun(['missions']);
    world.policy.missions = 100_000;
    const ended = await world.ended(id);
    expect(ended).toMatchObject({ state: 'failed', rows: { missions: 0 } });
    expect(ended.error).toMatch(/^missions: stopped, for since the run began .* keeps missions for 100000 days$/);
    expect(await rows.missions()).toEqual(['old']);
  });

  it('stops between two batches, and the next one deletes the rest', async () => {
    await rows.many(3_000);
    const batch = heldTransaction(core.sql, isDeletion);
    world = retentionWorld(core.sql, core.data(), { run: batch.run });
    const { id } = await world.begun(['cot']);
    await batch.reached;
    const closed = world.service.close(100_000);
    batch.end();
    await closed;
    const [run] = await world.service.runs();
    expect(run).toMatchObject({ id, state: 'interrupted' });
    expect(run?.error).toContain('The next run deletes the rest');
    expect((await rows.uids()).length).toBe(3_000 - (run?.rows.cot ?? 0));
    const next = await retentionWorld(core.sql, core.data()).whole(['cot']);
    expect((run?.rows.cot ?? 0) + (next.rows.cot ?? 0)).toBe(3_000);
  });

  it('that has ended listens for no stop any more', async () => {
    const listening = vi.spyOn(EventTarget.prototype, 'addEventListener');
    for (let n = 0; n < 3; n++) await world.whole(['cot']);
    const signals = listening.mock.contexts.filter((each) => each instanceof AbortSignal);
    listening.mockRestore();
    expect(signals.length).toBeGreaterThanOrEqual(3);
    for (const signal of new Set(signals)) expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('that a killed core has left is closed at the next start', async () => {
    await core.sql`
      INSERT INTO retention_run (id, trigger, state, limits, rows, included, bytes)
      VALUES ('killed', 'schedule', 'running', '{}', '{"cot": 7}', '{"cot": 0, "files": 0}', 70)`;
    await world.service.start();
    expect(await world.service.runs()).toMatchObject([
      {
        id: 'killed',
        state: 'interrupted',
        rows: { cot: 7 },
        finishedAt: expect.any(String),
        error: 'The core stopped, or another core replaced it. The next run deletes the rest.',
      },
    ]);
    expect(world.log.events.map(({ event }) => event)).toContain('retention.interrupted');
    await world.service.close(1_000);
  });

  it('goes on when the database comes back, and its counts are right', async () => {
    await rows.many(3_000);
    const kept = keptDatabase(new Secret(core.proxy.url), {
      name: 'core-retention',
      called: 'the database',
      variable: 'its URL',
      withinMs: 10_000,
    });
    let batches = 0;
    // The second batch has deleted its rows, and cannot commit.
    const run: RunSql = (use) =>
      kept((sql) =>
        insteadOfBegin(sql, (work) =>
          sql.begin(async (tx) => {
            const done = await work(tx);
            if (isDeletion(done) && ++batches === 2)
              await core.sql`
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'core-retention'`;
            return done;
          }),
        )(use),
      );
    const { id } = await retentionWorld(core.sql, core.data(), { run }).begun(['cot']);
    expect(await world.ended(id)).toMatchObject({ state: 'done', rows: { cot: 3_000 } });
    expect(batches).toBeGreaterThan(2);
    expect(await rows.uids()).toEqual([]);
  });

  it('does not fail when the database is away as it writes how many rows it expects', async () => {
    await rows.many(500);
    const unavailable: RunSql = (use) => use(withoutExpected(core.sql));
    const without = retentionWorld(core.sql, core.data(), { run: unavailable });
    expect(await without.whole(['cot'], 499)).toMatchObject({ state: 'failed', rows: { cot: 0 } });
    expect(await without.whole(['cot'])).toMatchObject({ state: 'done', rows: { cot: 500 }, expected: null });
    expect(without.log.events.map(({ event }) => event)).toContain('retention.expected_not_written');
  });

  it('counts once what was deleted by a batch whose answer was lost', async () => {
    await rows.many(2_500);
    let isLost = false;
    const losing = insteadOfBegin(core.sql, async (work) => {
      const done = await core.sql.begin(work);
      if (isLost || typeof done !== 'object' || done === null || !('deleted' in done)) return done;
      isLost = true;
      throw new AppError('unavailable', 'the answer was lost');
    });
    const run = await retentionWorld(core.sql, core.data(), { run: losing }).whole(['cot']);
    expect([isLost, run.state, run.rows, await rows.uids()]).toEqual([true, 'done', { cot: 2_500 }, []]);
  });

  it('begins though the row of a run is left that nobody carries on, and closes that', async () => {
    await core.sql`
      INSERT INTO retention_run (id, trigger, state, started_at, limits, rows, included, bytes)
      VALUES ('left', 'schedule', 'running', '2026-01-01', '{}', '{}', '{"cot": 0, "files": 0}', 0)`;
    await rows.event('old');
    expect(await world.whole(['cot'])).toMatchObject({ state: 'done', rows: { cot: 1 } });
    expect(await world.service.runs()).toMatchObject([{ state: 'done' }, { id: 'left', state: 'interrupted' }]);
  });

  it('is one at a time in the database, whoever begins it', async () => {
    const store = new RetentionRunStore((use) => use(core.sql));
    const begun = await Promise.all(['a', 'b', 'c'].map((id) => store.begin(id, 'order', { cot: LIMIT })));
    expect(begun.filter((run) => run !== undefined)).toHaveLength(1);
  });

  it('deletes in many transactions', async () => {
    await rows.many(6_000);
    const deleted: number[] = [];
    const counted = insteadOfBegin(core.sql, async (work) => {
      const before = (await rows.uids()).length;
      const done = await core.sql.begin(work);
      deleted.push(before - (await rows.uids()).length);
      return done;
    });
    await retentionWorld(core.sql, core.data(), { run: counted }).whole(['cot']);
    expect(await rows.uids()).toEqual([]);
    expect(deleted.reduce((sum, each) => sum + each, 0)).toBe(6_000);
    expect(Math.max(...deleted)).toBeLessThan(3_000);
  });

  it('is told in both logs, with limits, unit and counts', async () => {
    await rows.event('old');
    const { id } = await world.whole(['cot', 'geochat']);
    const layout = /^\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3} \[retention\] INFO {2}holdfast\.retention - retention run /;
    await expect.poll(() => world.messagesOf().trim().split('\n').length).toBe(2);
    const lines = world.messagesOf().trim().split('\n');
    for (const line of lines) expect(line).toMatch(layout);
    expect(lines[0]).toContain('unit days: cot before 2026-03-01T00:00:00.000Z (kept 1 days), geochat before');
    expect(lines[1]).toContain(`retention run ${id} done`);
    expect(lines[1]).toContain('rows deleted: cot 1, geochat 0');
    expect(world.log.events.map(({ event }) => event)).toEqual(['retention.started', 'retention.run']);
  });

  it('is remembered with the last 500', async () => {
    await core.sql`
      INSERT INTO retention_run (id, trigger, state, started_at, limits, rows, included)
      SELECT 'r' || n, 'order', 'done', '2026-01-01'::timestamptz + n * interval '1 hour', '{}', '{}', '{"cot": 0, "files": 0}'
      FROM generate_series(1, 600) n`;
    const { id } = await world.whole(['cot']);
    const [kept] =
      await core.sql`SELECT count(*)::int AS n, min(started_at) FILTER (WHERE id = 'r101') IS NULL AS gone FROM retention_run`;
    expect(kept).toEqual({ n: 500, gone: true });
    expect((await world.service.runs())[0]?.id).toBe(id);
  });
});
