// A vacuum whose database, connection or management goes away in the middle: what is true is found out from the table itself.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { run as finishIntents } from '../../jobs/finish-intents.ts';
import { run as runVacuum } from '../../jobs/run-vacuum.ts';
import { startVacuum } from '../../shared/database/vacuum/start.ts';
import { vacuumWorld, type VacuumWorld } from '../database/fake-vacuum-world.ts';
import { standIn } from '../devices/fake-revocation-world.ts';
import { ACTOR, dyingAt, OF_VACUUM } from '../people/fake-people.ts';

const never = new AbortController().signal;
let world: VacuumWorld;
beforeEach(async () => {
  world = await vacuumWorld();
});

const outcomes = () =>
  world.deps.audit.records.filter(({ action, phase }) => action === 'database.vacuum' && phase === 'outcome');
const finish = () => finishIntents(world.deps, world.around.now, never);
const BOTH = { mode: 'full', tables: ['resource', 'cot_router'] };
const unavailable = () => Promise.reject(new AppError('unavailable', 'no answer'));
const statesOf = async (id: string) =>
  ((await world.job(id)).result as { tables: { state: string }[] }).tables.map(({ state }) => state);

describe('a vacuum whose database dies', () => {
  it('is interrupted, and nothing was changed', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    world.vacuum.die();
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({
      state: 'interrupted',
      error: expect.stringMatching(/the database or the connection was interrupted.*nothing was changed/),
    });
    expect(await statesOf(id)).toEqual(['interrupted', 'not_begun']);
    expect(outcomes()).toMatchObject([{ result: 'failed' }]);
  });

  it('is interrupted when the server ends its connection', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    world.vacuum.end(id, '57P01', 'terminating connection due to administrator command');
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({
      state: 'interrupted',
      error: expect.stringContaining('administrator command'),
    });
  });

  it('is interrupted when somebody cancels its statement, and no other table is begun', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    world.vacuum.end(id, '57014', 'canceling statement due to user request');
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({
      state: 'interrupted',
      error: expect.stringMatching(/its statement was canceled.*nothing was changed.*user request/),
    });
    expect(await statesOf(id)).toEqual(['interrupted', 'not_begun']);
    expect(world.vacuum.begun).toHaveLength(1);
  });

  it('has done what the table shows as done, though nobody has seen the end', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    world.vacuum.end(id);
    world.vacuum.die();
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
    expect(world.vacuum.begun).toHaveLength(2);
  });

  it('waits while it is away, says so once, and goes on with what it finds', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    const putBack = standIn(world.deps.vacuumFacts, 'statement', () => unavailable);
    for (let time = 0; time < 50; time++) expect(await world.step()).toBe('waits');
    expect((await world.job(id)).phase).toBe('waiting for the database');
    putBack();
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
    const lines = (await world.reportedIn(id)).filter((line) => line.startsWith('The core’s database'));
    expect(lines).toEqual(['The core’s database is unavailable: no answer', 'The core’s database is available again.']);
  });

  it.each(['tables', 'holders', 'marks', 'server'] as const)('says it once too when only %s is away', async (name) => {
    const id = await world.ordered(BOTH);
    const putBack = standIn(world.deps.vacuumFacts, name, () => unavailable);
    for (let time = 0; time < 5; time++) expect(await world.step()).toBe('waits');
    expect(await world.reportedIn(id)).toEqual(['The core’s database is unavailable: no answer']);
    putBack();
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
  });

  it('is given up after an hour, and says that nobody knows what became of it', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    world.deps.vacuumFacts.statement = unavailable;
    let steps = 0;
    while ((await world.step()) === 'waits') steps += 1;
    expect([steps > 1795, steps < 1805]).toEqual([true, true]);
    expect(await world.job(id)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/^Given up: .*an hour.*its result is unknown/),
    });
    expect(await statesOf(id)).toEqual(['interrupted', 'not_begun']);
  });

  it('is begun again when nobody knew whether it had been, and it had not', async () => {
    const id = await world.ordered(BOTH);
    const putBack = standIn(world.deps.coreVacuum, 'begin', () => unavailable);
    for (let time = 0; time < 5; time++) expect(await world.step()).toBe('waits');
    putBack();
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
    expect(world.vacuum.begun).toHaveLength(2);
    expect(world.vacuum.notices).toHaveLength(2);
    expect((await world.reportedIn(id)).filter((line) => line.includes('is unavailable'))).toHaveLength(1);
  });

  it('is followed when nobody knew whether it had been begun, and it had', async () => {
    const id = await world.ordered(BOTH);
    const putBack = standIn(world.deps.coreVacuum, 'begin', (real) => async (order) => {
      await real(order);
      return unavailable();
    });
    expect(await world.step()).toBe('waits');
    putBack();
    expect(await world.step()).toBe('running');
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
    expect(world.vacuum.begun).toHaveLength(2);
  });
});

describe('a statement whose end is not simple', () => {
  it('has failed by the error that was written down, though its words cannot be asked for any more', async () => {
    const id = await world.ordered({ mode: 'full', tables: ['resource'] });
    await world.begun(id);
    world.vacuum.end(id, '42501', 'permission denied');
    const putBack = standIn(world.deps.coreVacuum, 'settle', () => unavailable);
    expect(await world.step()).toBe('waits');
    world.vacuum.die();
    putBack();
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({ state: 'failed', error: expect.stringContaining('SQLSTATE 42501') });
    expect(await statesOf(id)).toEqual(['failed']);
  });

  it('says nothing of a table that was made anew in the middle of it', async () => {
    const id = await world.ordered({ mode: 'full', tables: ['resource'] });
    await world.begun(id);
    Object.assign(world.table('resource'), { oid: 99_999, filenode: 99_999 });
    world.vacuum.die();
    expect(await world.step()).toBe('ended');
    expect(await statesOf(id)).toEqual(['skipped']);
    expect((await world.job(id)).error).toContain('the table was recreated meanwhile.');
  });

  it('is interrupted, and not begun again, once it was seen, whatever nobody knew of its beginning', async () => {
    const id = await world.ordered(BOTH);
    const putBack = standIn(world.deps.coreVacuum, 'begin', (real) => async (order) => {
      await real(order);
      return unavailable();
    });
    expect(await world.step()).toBe('waits');
    putBack();
    expect(await world.step()).toBe('running');
    world.vacuum.die();
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({ state: 'interrupted' });
    expect(world.vacuum.begun).toHaveLength(1);
  });

  it('keeps the next one waiting, though nobody has written it down', async () => {
    const id = await world.ordered({ mode: 'full', tables: ['resource'] });
    const { schema, table, oid } = world.table('resource');
    await world.deps.coreVacuum.begin({ job: id, mode: 'full', schema, table, oid });
    expect([await world.step(), await world.step()]).toEqual(['running', 'running']);
    expect(world.vacuum.begun).toHaveLength(1);
    world.vacuum.end(id);
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
  });
});

describe('a job that somebody else has ended in the middle of a step', () => {
  const closed = (id: string) =>
    world.deps.opsJobs.change(id, { state: 'failed', finishedAt: world.around.now.toISOString(), error: 'by hand' });

  it('has no statement begun any more', async () => {
    const id = await world.ordered({ mode: 'full', tables: ['resource'] });
    standIn(world.deps.vacuumFacts, 'marks', (real) => async (schema, table) => {
      await closed(id);
      return real(schema, table);
    });
    expect(await world.step()).toBe('ended');
    expect([world.vacuum.begun, world.vacuum.notices]).toEqual([[], []]);
  });

  it('is not answered for in the audit log', async () => {
    const id = await world.ordered({ mode: 'standard', tables: ['resource'] });
    await world.begun(id);
    world.vacuum.end(id);
    standIn(world.deps.health, 'forget', (real) => async (module) => {
      await closed(id);
      return real(module);
    });
    expect(await world.step()).toBe('ended');
    expect([outcomes(), (await world.job(id)).error]).toEqual([[], 'by hand']);
  });
});

describe('a management that was away', () => {
  it('finds the statement again and follows it to its end, and begins no further table', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    world.later(300);
    expect(await world.step()).toBe('running');
    expect(await world.reportedIn(id)).toContain('resource: found again after 302 s.');
    expect(await world.throughout(id)).toMatchObject({
      state: 'interrupted',
      error: expect.stringMatching(/^Holdfast was not running.*Not vacuumed: 1 of 2 tables\. Not started: 1 table\.$/),
    });
    expect(await statesOf(id)).toEqual(['done', 'not_begun']);
    expect(world.vacuum.begun).toHaveLength(1);
    expect(world.vacuum.notices).toHaveLength(2);
  });

  it('has succeeded when that was the last one', async () => {
    const id = await world.ordered({ mode: 'full', tables: ['resource'] });
    await world.begun(id);
    world.later(300);
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
  });

  it('has failed when that one has', async () => {
    const id = await world.ordered({ mode: 'full', tables: ['resource'] });
    await world.begun(id);
    world.later(300);
    world.vacuum.end(id, '42501', 'permission denied');
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/^Not vacuumed: 1 of 1/),
    });
  });

  it('does not begin now what it was not known to have begun then', async () => {
    const id = await world.ordered(BOTH);
    const putBack = standIn(world.deps.coreVacuum, 'begin', () => unavailable);
    expect(await world.step()).toBe('waits');
    putBack();
    world.later(300);
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({
      state: 'interrupted',
      error: expect.stringMatching(/^Holdfast was not running/),
    });
    expect(world.vacuum.begun).toEqual([]);
  });

  it('begins nothing of what was ordered before', async () => {
    const id = await world.ordered();
    world.later(100);
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({ state: 'interrupted', startedAt: expect.any(String) });
    expect([world.vacuum.begun, world.vacuum.notices]).toEqual([[], []]);
  });

  it('begins nothing when the clock was set back: its next try would be at any hour', async () => {
    const id = await world.ordered(BOTH);
    world.table('resource').holders = [{ pid: 77, user: 'martiuser', application: 'report', since: '2020-01-01' }];
    expect(await world.step()).toBe('waits');
    world.later(-86_400);
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({ state: 'interrupted' });
    expect((await world.reportedIn(id)).join(' ')).toMatch(
      /clock was set back by 86398 s. No further table is started/,
    );
    expect(world.vacuum.begun).toEqual([]);
  });

  it('goes on after a minute, as a host does that looks once a minute', async () => {
    const id = await world.ordered(BOTH);
    for (let time = 0; time < 9 && (await world.job(id)).state !== 'succeeded'; time++) {
      world.later(58.5);
      await world.step();
      if (world.vacuum.statements.get(id)?.shown.state === 'running') world.vacuum.end(id);
    }
    expect(await world.job(id)).toMatchObject({ state: 'succeeded' });
  });

  it('begins nothing when its step was taken over meanwhile', async () => {
    const id = await world.ordered();
    const taken = new AbortController();
    standIn(world.deps.coreNotices, 'announce', () => async () => {
      taken.abort(new Error('taken over'));
      return 0;
    });
    await expect(runVacuum(world.deps, world.around.now, taken.signal)).rejects.toThrow('taken over');
    expect([world.vacuum.begun, (await world.job(id)).state]).toEqual([[], 'running']);
  });

  it('begins nothing when it slept in the middle of its step', async () => {
    await world.ordered();
    standIn(world.deps.coreNotices, 'announce', () => async () => {
      world.later(600);
      return 0;
    });
    await expect(world.step()).rejects.toThrow('stopped during a step');
    expect(world.vacuum.begun).toEqual([]);
    expect(await world.step()).toBe('ended');
  });

  it('changes nothing while our own database is away, and goes on', async () => {
    const id = await world.ordered(BOTH);
    const putBack = standIn(world.deps.opsJobs, 'open', () => unavailable);
    await expect(world.step()).rejects.toMatchObject({ code: 'unavailable' });
    putBack();
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
  });
});

describe('a management process that is killed', () => {
  it.each(['before', 'after'] as const)('%s any call leaves a job that the next one ends, truly', async (when) => {
    let died = 0;
    for (let nth = 1; ; nth += 1) {
      world = await vacuumWorld();
      const dying = dyingAt(world.deps, nth, when, OF_VACUUM);
      const input = { mode: 'full', names: ['resource', 'cot_router'], mayVacuum: true } as const;
      await startVacuum({ deps: dying, actor: ACTOR }, input).catch(() => undefined);
      const [job] = (await world.deps.opsJobs.list({}, 0, 9)).results;
      const endWhatRuns = (): void => {
        if (job !== undefined && world.vacuum.statements.get(job.id)?.shown.state === 'running')
          world.vacuum.end(job.id);
      };
      for (let step = 0; step < 8; step++) {
        world.later(2);
        await runVacuum(dying, world.around.now).catch(() => undefined);
        if (step % 2 === 1) endWhatRuns();
      }
      if (dying.calls() < nth) break;
      died += 1;
      const ended = job && (await world.throughout(job.id).catch(() => world.job(job.id)));
      world.later(300);
      await finish();
      expect([nth, await world.deps.opsJobs.open()]).toEqual([nth, []]);
      expect([nth, await world.deps.audit.unfinished(world.around.now.toISOString(), 9)]).toEqual([nth, []]);
      if (ended === undefined) continue;
      const { tables } = ended.result as { tables: { table: string; state: string }[] };
      for (const { table, state } of tables)
        expect([nth, table, state === 'done']).toEqual([nth, table, world.table(table).filenode > 1]);
      expect([nth, ['succeeded', 'interrupted'].includes(ended.state)]).toEqual([nth, true]);
      expect([nth, (world.vacuum.notices?.length ?? 0) <= 2]).toEqual([nth, true]);
    }
    expect(died).toBeGreaterThan(20);
  });

  it('before the job was added leaves an intent that is answered: nothing was begun', async () => {
    world.deps.opsJobs.add = unavailable;
    expect((await world.order()).status).toBe(503);
    world.later(180);
    expect(await finish()).toMatchObject({ failed: 1 });
    expect(outcomes()).toMatchObject([{ result: 'failed' }]);
    expect(world.vacuum.begun).toEqual([]);
  });

  it('in the middle of the job leaves its intent open until the job ends, and nothing is done again', async () => {
    const id = await world.ordered(BOTH);
    await world.begun(id);
    world.later(3600);
    expect(await finish()).toEqual({ ok: 0, failed: 0, unknown: 0, open: 1 });
    expect(world.vacuum.begun).toHaveLength(1);
    await world.throughout(id);
    expect(outcomes()).toHaveLength(1);
  });
});
