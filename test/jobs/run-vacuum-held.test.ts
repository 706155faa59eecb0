// A vacuum of tables that others hold: it waits without keeping anybody out, says who it is, and gives up after a while.

import { beforeEach, describe, expect, it } from 'vitest';
import type { LockHolder } from '../../shared/database/port.ts';
import { vacuumWorld, type VacuumWorld } from '../database/fake-vacuum-world.ts';
import { standIn } from '../devices/fake-revocation-world.ts';

let world: VacuumWorld;
beforeEach(async () => {
  world = await vacuumWorld();
});

const holder = (secondsAgo: number, pid = 77): LockHolder => ({
  pid,
  user: 'martiuser',
  application: 'report',
  since: new Date(world.around.now.getTime() - secondsAgo * 1000).toISOString(),
});
const BOTH = { mode: 'full', tables: ['resource', 'cot_router'] };
const ONE = { mode: 'full', tables: ['cot_router'] };
const tablesOf = async (id: string) => ((await world.job(id)).result as { tables: Record<string, unknown>[] }).tables;

describe('a table that others hold', () => {
  it('is not even asked for while one has held it for long: longer and longer pauses, said once', async () => {
    const id = await world.ordered(ONE);
    world.table('cot_router').holders = [holder(30)];
    const began = world.around.now.getTime();
    const requests: number[] = [];
    standIn(world.deps.vacuumFacts, 'holders', (real) => async (...given) => {
      requests.push((world.around.now.getTime() - began) / 1000);
      return real(...given);
    });
    while (requests.length < 7) expect(await world.step()).toBe('waits');
    expect(requests).toEqual([2, 4, 8, 16, 32, 62, 92]);
    expect(await world.job(id)).toMatchObject({ state: 'running', phase: 'cot_router: waiting for a lock' });
    expect(await world.reportedIn(id)).toEqual([
      expect.stringContaining('held by PID 77 (martiuser, report) since 2026'),
    ]);
    expect([world.vacuum.begun, world.vacuum.notices]).toEqual([[], []]);
    world.table('cot_router').holders = [];
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
  });

  it('is not asked for while a prepared transaction holds it, which no process ends', async () => {
    const id = await world.ordered(ONE);
    world.table('cot_router').holders = [{ ...holder(30), pid: 0, application: "'it''s mine'" }];
    expect(await world.step()).toBe('waits');
    expect((await world.reportedIn(id)).join(' ')).toMatch(
      /held by the prepared transaction 'it''s mine' \(martiuser\) since .* ROLLBACK PREPARED 'it''s mine'/,
    );
  });

  it('is asked for while others hold it for moments', async () => {
    const id = await world.ordered(ONE);
    world.table('cot_router').holders = [holder(2), { ...holder(0), since: null }];
    await world.step();
    expect(world.vacuum.begun).toHaveLength(1);
    await world.throughout(id);
  });

  it('is tried again when the lock did not come, without a second word to the clients', async () => {
    const id = await world.ordered(ONE);
    for (let time = 1; time <= 3; time++) {
      await world.begun(id);
      world.vacuum.end(id, '55P03', 'canceling statement due to lock timeout');
      expect(await world.step()).toBe('waits');
    }
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
    expect(world.vacuum.begun).toHaveLength(4);
    expect(world.vacuum.notices).toHaveLength(2);
    expect((await world.reportedIn(id)).filter((line) => line.includes('waiting for a lock'))).toHaveLength(1);
  });

  it('has no time by which it will be done while it waits', async () => {
    const id = await world.ordered(BOTH);
    world.table('resource').holders = [holder(30)];
    expect(await world.step()).toBe('waits');
    expect(await world.job(id)).toMatchObject({ phase: 'resource: waiting for a lock', eta: null });
  });

  it('is skipped after ten minutes with who holds it and how to end that; then the next one comes', async () => {
    const id = await world.ordered(BOTH);
    world.table('resource').holders = [holder(30)];
    const began = world.around.now.getTime();
    while ((await world.job(id)).phase !== 'cot_router: VACUUM FULL') await world.step();
    const minutes = (world.around.now.getTime() - began) / 60_000;
    expect([minutes > 9.9, minutes < 11]).toEqual([true, true]);
    expect(await world.throughout(id)).toMatchObject({ state: 'failed' });
    expect(await tablesOf(id)).toMatchObject([
      {
        state: 'skipped',
        error: expect.stringMatching(
          /^no lock within 10 minutes: held by PID 77 \(martiuser, report\) since .*SELECT pg_terminate_backend\(77\)\.$/,
        ),
      },
      { state: 'done' },
    ]);
  });
});

describe('one who holds all tables for hours, as a dump does', () => {
  it('is waited for ten minutes in all, so that nothing is begun when it ends at an hour nobody expects', async () => {
    const id = await world.ordered(BOTH);
    for (const name of ['resource', 'cot_router']) world.table(name).holders = [holder(30)];
    const began = world.around.now.getTime();
    while ((await world.job(id)).state !== 'failed') await world.step();
    expect((world.around.now.getTime() - began) / 60_000).toBeLessThan(11);
    expect(await tablesOf(id)).toMatchObject([
      { state: 'skipped', error: expect.stringMatching(/^no lock within 10 minutes: held by PID 77/) },
      {
        state: 'skipped',
        error: expect.stringMatching(/^no lock, after 10 minutes of waiting for others: held by PID 77/),
      },
    ]);
    expect(world.vacuum.begun).toEqual([]);
  });

  it('is waited for anew after a table that was done', async () => {
    const id = await world.ordered();
    world.table('cot_router_chat').holders = [holder(30)];
    world.table('cot_router').holders = [holder(30)];
    while ((await world.job(id)).phase !== 'resource: VACUUM FULL') await world.step();
    world.vacuum.end(id);
    const began = world.around.now.getTime();
    while ((await world.job(id)).state !== 'failed') await world.step();
    expect((world.around.now.getTime() - began) / 60_000).toBeGreaterThan(9.9);
  });
});
