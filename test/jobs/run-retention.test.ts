// A run of retention on demand from its order to its end, one step at a time, and what a process leaves behind that dies anywhere.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { run as finishIntents } from '../../jobs/finish-intents.ts';
import { isWanted, run as runRetention } from '../../jobs/run-retention.ts';
import { startRetentionRun } from '../../shared/retention/start-run.ts';
import { standIn } from '../devices/fake-revocation-world.ts';
import { ACTOR, dyingAt, OF_RETENTION } from '../people/fake-people.ts';
import { retentionWorld, type RetentionWorld } from '../retention/fake-retention-world.ts';

const never = new AbortController().signal;
const DAY = 86_400;
let world: RetentionWorld;
beforeEach(async () => {
  world = await retentionWorld();
});

const reportedIn = async (id: string): Promise<string[]> => (await world.job(id)).log.map((line) => line.slice(25));
const outcomes = () =>
  world.deps.audit.records.filter(({ action, phase }) => action === 'retention.run' && phase === 'outcome');
const finish = () => finishIntents(world.deps, world.around.now, never);
const kept = async () => (await world.deps.retentionHistory.runs(0, 99)).results;

describe('run-retention', () => {
  it('is wanted while a run is ordered', async () => {
    expect(await isWanted(world.deps)).toBe(false);
    expect(await world.step()).toBe('none');
    await world.ordered();
    expect(await isWanted(world.deps)).toBe(true);
    await world.step();
    world.retention.finishRun();
    await world.step();
    expect(await isWanted(world.deps)).toBe(false);
  });

  it('begins the run at the core with what was ordered, under the id of the job', async () => {
    const id = await world.ordered({ confirm_rows: 90 });
    const limits = { cot: world.ago(30), geochat: world.ago(60) };
    expect(await world.step()).toBe('running');
    expect(world.coreRun(id)).toMatchObject({ state: 'running', trigger: 'order', limits, expected: 90 });
    expect(await world.job(id)).toMatchObject({ state: 'running', startedAt: world.around.now.toISOString() });
    expect(await reportedIn(id)).toEqual(['The core started the run of 90 rows.']);
  });

  it('tells how far it is and when it will be done, with a line after each ten per cent', async () => {
    const id = await world.ordered();
    await world.step();
    const run = world.coreRun(id);
    world.later(16);
    run.rows = { cot: 15, geochat: 0 };
    run.included = { cot: 2, files: 1 };
    await world.step();
    expect(await world.job(id)).toMatchObject({
      progress: 0.2,
      eta: new Date(Date.parse(run.startedAt) + 90_000).toISOString(),
    });
    await world.step();
    run.rows = { cot: 62, geochat: 0 };
    await world.step();
    expect((await world.job(id)).progress).toBe(0.722);
    expect(await reportedIn(id)).toEqual([
      'The core started the run of 90 rows.',
      '20 %: 18 of 90 rows deleted.',
      '72 %: 65 of 90 rows deleted.',
    ]);
  });

  it('ends with what the core says of the run, which is in the book before', async () => {
    const id = await world.ordered();
    await world.step();
    world.later(10);
    world.retention.finishRun();
    let inStore: unknown;
    standIn(world.deps.opsJobs, 'change', (real) => async (...given) => {
      inStore = await kept();
      return real(...given);
    });
    expect(await world.step()).toBe('ended');
    expect(inStore).toMatchObject([{ id, source: 'core', state: 'done', rows: { cot: 60, geochat: 30 } }]);
    const { startedAt, finishedAt, limits } = world.coreRun(id);
    expect(await world.job(id)).toMatchObject({
      state: 'succeeded',
      progress: 1,
      eta: null,
      error: null,
      finishedAt: world.around.now.toISOString(),
      result: {
        started_at: startedAt,
        finished_at: finishedAt,
        rows: { cot: 60, geochat: 30 },
        included: { cot: 0, files: 0 },
        bytes: 0,
        limits,
        seconds: 10,
      },
    });
    expect(outcomes()).toMatchObject([{ actor: 'webadmin', target: id, result: 'ok', intent: 1 }]);
    expect(JSON.parse(outcomes()[0]?.detail ?? '')).toMatchObject({ rows: { cot: 60, geochat: 30 } });
    expect(world.retention.rows.cot).toHaveLength(30);
  });

  it('ends once, and is answered once in the audit log, when two processes see its end', async () => {
    await world.ordered();
    await world.step();
    world.retention.finishRun();
    expect(await Promise.all([world.step(), world.step()])).toEqual(['ended', 'ended']);
    expect(outcomes()).toHaveLength(1);
  });

  it('has health look again when it ends', async () => {
    const forgotten: string[] = [];
    world.deps.health.forget = (module) => void forgotten.push(module);
    await world.ordered();
    await world.step();
    expect(forgotten).toEqual([]);
    world.retention.finishRun();
    await world.step();
    expect(forgotten).toEqual(['retention']);
  });

  it('is interrupted when the core was: the next run deletes the rest', async () => {
    const id = await world.ordered();
    await world.step();
    world.coreRun(id).rows = { cot: 7, geochat: 0 };
    world.retention.interruptRun();
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({
      state: 'interrupted',
      error: expect.stringMatching(
        /stay deleted\. Core: The core stopped, or another core replaced it\. The next run deletes the rest\.$/,
      ),
      result: { rows: { cot: 7 } },
    });
    expect(outcomes()).toMatchObject([{ result: 'failed' }]);
    expect((await world.order()).status).toBe(202);
  });

  it('fails when the core would delete more than is confirmed, with its words', async () => {
    const id = await world.ordered({ confirm_rows: 90 });
    world.retention.rows.cot.push(world.ago(50));
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({ state: 'failed', error: expect.stringContaining('more than 90 rows') });
    expect(await kept()).toMatchObject([{ id, state: 'failed' }]);
  });

  it('fails when the core refuses it, such as after a change of the policy', async () => {
    const id = await world.ordered();
    world.retention.policy.cot = 60;
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({ state: 'failed', error: expect.stringContaining('rejected') });
    expect(world.retention.rows.cot).toHaveLength(90);
    expect(outcomes()).toMatchObject([{ result: 'failed' }]);
  });

  it('waits while the core is away, says so once, and goes on', async () => {
    const id = await world.ordered();
    world.retention.mood = 'down';
    expect([await world.step(), await world.step()]).toEqual(['waits', 'waits']);
    expect((await world.job(id)).state).toBe('queued');
    world.retention.mood = 'up';
    await world.step();
    world.retention.mood = 'down';
    expect([await world.step(), await world.step()]).toEqual(['waits', 'waits']);
    expect((await world.job(id)).state).toBe('running');
    world.retention.mood = 'up';
    await world.step();
    expect(await reportedIn(id)).toEqual([
      'The core does not answer: The core does not answer',
      'The core started the run of 90 rows.',
      'The core does not answer: The core does not answer',
      'The core answers again.',
    ]);
    world.retention.finishRun();
    expect(await world.step()).toBe('ended');
  });

  it('waits for a run of the schedule that came first', async () => {
    const id = await world.ordered();
    await world.deps.coreRetention.begin({ id: 'nightly', limits: { cot: world.ago(30) }, maxRows: null });
    expect([await world.step(), await world.step()]).toEqual(['waits', 'waits']);
    expect(await reportedIn(id)).toEqual([expect.stringContaining('Another run is in progress')]);
    world.retention.finishRun();
    expect(await world.step()).toBe('running');
  });

  it('begins again when the core knows nothing of the run any more', async () => {
    const id = await world.ordered();
    await world.step();
    world.retention.runs = [];
    expect(await world.step()).toBe('running');
    expect(world.coreRun(id).state).toBe('running');
  });

  it('gives up after a day without a good answer of the core, however long it has run before', async () => {
    const id = await world.ordered();
    await world.step();
    world.later(DAY + 1);
    expect(await world.step()).toBe('running');
    for (let time = 0; time < 2; time++) {
      world.retention.mood = 'down';
      expect(await world.step()).toBe('waits');
      world.later(DAY - 60);
      expect(await world.step()).toBe('waits');
      world.retention.mood = 'up';
      expect(await world.step()).toBe('running');
    }
    world.retention.mood = 'down';
    expect(await world.step()).toBe('waits');
    world.later(DAY + 1);
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({ state: 'failed', error: expect.stringContaining('after 24 hours') });
    expect(outcomes()).toMatchObject([{ result: 'unknown' }]);
  });

  it('gives up after a day of a core that is away or has another run in turn', async () => {
    const id = await world.ordered();
    world.retention.mood = 'down';
    expect(await world.step()).toBe('waits');
    world.retention.mood = 'up';
    await world.deps.coreRetention.begin({ id: 'nightly', limits: { cot: world.ago(30) }, maxRows: null });
    world.later(DAY / 2);
    expect(await world.step()).toBe('waits');
    world.retention.mood = 'down';
    world.later(DAY / 2 - 60);
    expect(await world.step()).toBe('waits');
    world.later(120);
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({ state: 'failed', error: expect.stringContaining('after 24 hours') });
  });

  it('fails when the core has become one that tells of no runs', async () => {
    const id = await world.ordered();
    await world.step();
    world.retention.tellsRuns = false;
    expect(await world.step()).toBe('ended');
    expect(await world.job(id)).toMatchObject({ state: 'failed', error: expect.stringContaining('are unknown') });
  });

  it('ends a job that it cannot read, and leaves those of other kinds alone', async () => {
    const now = world.around.now.toISOString();
    const add = (kind: string, id: string) => world.deps.opsJobs.add({ id, kind, actor: 'ada', input: 5, now });
    await add('vacuum', '00000000-0000-4000-8000-000000000001');
    expect(await world.step()).toBe('none');
    await add('retention', '00000000-0000-4000-8000-000000000002');
    expect(await world.step()).toBe('ended');
    expect((await world.job('00000000-0000-4000-8000-000000000002')).state).toBe('failed');
    expect((await world.job('00000000-0000-4000-8000-000000000001')).state).toBe('queued');
  });

  it('changes nothing while our own database is away, and goes on', async () => {
    const id = await world.ordered();
    const unavailable = new AppError('unavailable', 'Our own database does not answer');
    const putBack = standIn(world.deps.opsJobs, 'open', () => () => Promise.reject(unavailable));
    await expect(runRetention(world.deps)).rejects.toMatchObject({ code: 'unavailable' });
    putBack();
    expect(await world.step()).toBe('running');
    expect((await world.job(id)).state).toBe('running');
  });
});

describe('a management process that is killed', () => {
  it.each(['before', 'after'] as const)('%s any call of a run leaves a job that the next one ends', async (when) => {
    let died = 0;
    for (let nth = 1; ; nth += 1) {
      world = await retentionWorld();
      const dying = dyingAt(world.deps, nth, when, OF_RETENTION);
      const ordering = startRetentionRun({ deps: dying, actor: ACTOR }, 'days', { confirmRows: 90, cutoff: undefined });
      await ordering.catch(() => undefined);
      for (let step = 0; step < 3; step++) {
        await runRetention(dying).catch(() => undefined);
        if (step === 1 && world.retention.runs.some(({ state }) => state === 'running')) world.retention.finishRun();
      }
      if (dying.calls() < nth) break;
      died += 1;
      const [job] = (await world.deps.opsJobs.list({}, 0, 9)).results;
      for (let step = 0; step < 4; step++) {
        await world.step();
        if (world.retention.runs.some(({ state }) => state === 'running')) world.retention.finishRun();
      }
      world.later(300);
      await finish();
      expect([nth, await world.deps.opsJobs.open()]).toEqual([nth, []]);
      expect([nth, await world.deps.audit.unfinished(world.around.now.toISOString(), 9)]).toEqual([nth, []]);
      const intents = world.deps.audit.records.filter(({ phase }) => phase === 'intent');
      expect([nth, outcomes().length]).toEqual([nth, intents.length]);
      if (job === undefined) expect(world.retention.rows.cot).toHaveLength(90);
      else {
        expect(await world.job(job.id)).toMatchObject({
          state: 'succeeded',
          result: { rows: { cot: 60, geochat: 30 } },
        });
        expect(await kept()).toMatchObject([{ id: job.id, state: 'done' }]);
        expect([world.retention.rows.cot.length, world.retention.rows.geochat.length]).toEqual([30, 60]);
      }
    }
    expect(died).toBeGreaterThan(10);
  });

  it('before the job was added leaves an intent that is answered: nothing was begun', async () => {
    world.deps.opsJobs.add = () => Promise.reject(new AppError('unavailable', 'Our own database does not answer'));
    expect((await world.order()).status).toBe(503);
    expect(outcomes()).toEqual([]);
    world.later(180);
    expect(await finish()).toMatchObject({ failed: 1 });
    expect(outcomes()).toMatchObject([{ result: 'failed', intent: 1 }]);
  });

  it('in the middle of the job leaves its intent open until the job ends, without a word each minute', async () => {
    await world.ordered();
    await world.step();
    world.later(3600);
    expect(await finish()).toEqual({ ok: 0, failed: 0, unknown: 0, open: 1 });
    expect(world.deps.log.events.filter(({ event }) => event.startsWith('audit.intent'))).toEqual([]);
    world.retention.finishRun();
    await world.step();
    expect(await finish()).toMatchObject({ ok: 0, open: 0 });
    expect(outcomes()).toHaveLength(1);
  });
});
