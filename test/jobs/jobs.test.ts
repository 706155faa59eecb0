import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { cronSeconds } from '@holdfast/kit/time';
import { JOBS } from '../../jobs/index.ts';
import { run as pollHealth } from '../../jobs/poll-health.ts';
import { run as pruneJobRuns } from '../../jobs/prune-job-runs.ts';
import { run as pruneSignIns } from '../../jobs/prune-sign-ins.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { Job } from '../../shared/jobs/port.ts';
import { runJob, ticker } from '../../shared/jobs/run.ts';
import { fakeJobRuns, NOW, table, world } from '../health/fake-monitored.ts';
import { fakeDeps } from '../http/fake-deps.ts';

const root = resolve(import.meta.dirname, '../..');
const at = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1000);

const job = (more: Partial<Job<Deps>>): Job<Deps> => ({
  name: 'sweep',
  cron: '* * * * *',
  claim: 'row',
  intervalSeconds: () => 60,
  limitSeconds: 60,
  run: async () => ({}),
  ...more,
});

describe('the table of jobs', () => {
  it('has exactly the crons of wrangler.toml', () => {
    const text = readFileSync(join(root, 'wrangler.toml'), 'utf8');
    const listed = /^crons = (\[[^\]]*\])$/m.exec(text)?.[1] ?? '[]';
    expect((JSON.parse(listed) as string[]).toSorted()).toEqual([...new Set(JOBS.map(({ cron }) => cron))].toSorted());
  });

  it('looks every five minutes whether a certificate of our own must be replaced, with crons once an hour', () => {
    const found = JOBS.find(({ name }) => name === 'keep-service-certificates');
    expect([found?.intervalSeconds(fakeDeps()), cronSeconds(found?.cron ?? '')]).toEqual([300, 3600]);
  });

  it('has crons that fire each minute or once an hour', () => {
    expect(Object.fromEntries(JOBS.map(({ cron }) => [cron, cronSeconds(cron)]))).toEqual({
      '* * * * *': 60,
      '7 * * * *': 3600,
    });
  });

  it('names each job once, after its file', () => {
    const names = JOBS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names)
      expect(readFileSync(join(root, 'jobs', `${name}.ts`), 'utf8')).toContain('export async function run');
  });
});

describe('poll-health', () => {
  it('measures every module once, then each when its interval has passed', async () => {
    const around = world();
    const deps = fakeDeps({}, around);
    expect((await pollHealth(deps, NOW)).measured).toEqual(HEALTH_MODULES.map(({ name }) => name));
    expect((await pollHealth(deps, at(1))).measured).toEqual([]);
    around.now = at(60);
    expect((await pollHealth(deps, at(60))).measured).toHaveLength(HEALTH_MODULES.length);
  });

  it('keeps the other modules going while one hangs, and does not start that one twice', async () => {
    const around = world();
    const deps = fakeDeps({}, around);
    const { promise: stuck, resolve: release } = Promise.withResolvers<never[]>();
    deps.monitored.disks.use = () => stuck;
    const first = pollHealth(deps, at(50));
    await delay(5);
    around.now = at(61);
    const second = await pollHealth(deps, at(61));
    expect(second.measured).not.toContain('disk');
    expect(second.measured).toContain('database');
    const modules = (
      JSON.parse((await deps.health.current('full')).body) as { modules: Record<string, { message: string }> }
    ).modules;
    expect(modules['disk']?.message).toBe('Not measured yet.');
    release([]);
    await first;
  });

  it('logs a change of status, also back to ok, and nothing else', async () => {
    const around = world();
    const deps = fakeDeps({}, around);
    const poll = async (seconds: number): Promise<void> => {
      around.now = at(seconds);
      await pollHealth(deps, around.now);
    };
    await poll(0);
    around.tables = [table('cot_router', 1000, 1000)];
    await poll(60);
    await poll(120);
    around.tables = [];
    await poll(180);
    const changes = deps.log.events.filter(({ event }) => event === 'health.changed');
    expect(changes.map(({ fields: { module, from, to } }) => [module, from, to])).toEqual([
      ['autovacuum', 'ok', 'critical'],
      ['autovacuum', 'critical', 'ok'],
    ]);
  });
});

describe('prune-job-runs', () => {
  it('removes records of finished runs after a month', async () => {
    const around = world();
    const deps = fakeDeps({}, around);
    await runJob(job({}), deps, 'me', NOW);
    around.now = at(29 * 86_400);
    expect(await pruneJobRuns(deps, around.now)).toMatchObject({ removed: 0 });
    around.now = at(31 * 86_400);
    expect(await pruneJobRuns(deps, around.now)).toMatchObject({ removed: 1 });
  });

  it('removes long work that ended three months ago, and never what is open', async () => {
    const deps = fakeDeps();
    const jobs = [randomUUID(), randomUUID()] as const;
    const [ended, open] = jobs;
    await deps.opsJobs.add({ id: ended, kind: 'vacuum', actor: 'ada', input: {}, now: at(0).toISOString() });
    await deps.opsJobs.change(ended, { state: 'failed', finishedAt: at(60).toISOString() });
    await deps.opsJobs.add({ id: open, kind: 'vacuum', actor: 'ada', input: {}, now: at(0).toISOString() });
    expect(await pruneJobRuns(deps, at(90 * 86_400))).toMatchObject({ ops_jobs_removed: 0 });
    expect(await pruneJobRuns(deps, at(91 * 86_400))).toMatchObject({ ops_jobs_removed: 1 });
    expect(await Promise.all(jobs.map((id) => deps.opsJobs.get(id)))).toEqual([undefined, expect.anything()]);
  });
});

describe('ticks', () => {
  it('run a claimed job once in its slot, whichever process ticks', async () => {
    const around = world();
    const deps = fakeDeps({}, around);
    let runs = 0;
    const counting = job({ run: async () => ({ runs: ++runs }) });
    const ticks = ['a', 'b'].map((runner) => ticker([counting], deps, runner).tick);
    for (let second = 0; second < 180; second++) {
      around.now = at(second);
      for (const tick of ticks) tick(around.now);
      await delay(0);
    }
    expect(runs).toBe(4);
  });

  it('try again after a pause when the database did not answer', async () => {
    const around = world();
    const deps = fakeDeps({}, around);
    let runs = 0;
    const working = deps.jobRuns;
    deps.jobRuns = fakeJobRuns();
    deps.jobRuns.claim = async () => {
      throw new Error('no database');
    };
    const { tick } = ticker([job({ intervalSeconds: () => 3600, run: async () => ({ runs: ++runs }) })], deps, 'a');
    tick(NOW);
    await delay(0);
    expect(deps.log.events.map(({ event }) => event)).toEqual(['job.not_run']);
    deps.jobRuns = working;
    tick(at(1));
    await delay(0);
    expect(runs).toBe(0);
    tick(at(16));
    await delay(0);
    expect(runs).toBe(1);
  });

  it('do not wait for a run that hangs', async () => {
    const deps = fakeDeps();
    let quick = 0;
    const hanging = job({ name: 'hanging', run: () => new Promise(() => undefined) });
    const other = job({
      name: 'other',
      claim: 'none',
      intervalSeconds: () => 1,
      run: async () => ({ quick: ++quick }),
    });
    const { tick } = ticker([hanging, other], deps, 'a');
    for (let second = 0; second < 5; second++) tick(at(second));
    await delay(0);
    expect(quick).toBe(5);
  });

  it('are over for a host that stops when the last run has ended', async () => {
    const deps = fakeDeps();
    const { promise: work, resolve: end } = Promise.withResolvers<Record<string, unknown>>();
    const { tick, idle } = ticker([job({ claim: 'none', run: () => work })], deps, 'a');
    tick(NOW);
    let over = false;
    const waiting = idle().then(() => (over = true));
    await delay(5);
    expect(over).toBe(false);
    end({});
    await waiting;
  });
});

describe('prune-sign-ins', () => {
  it('removes sessions and tokens that have ended, and no others', async () => {
    const around = world();
    const { signIns, ...deps } = fakeDeps({}, around);
    const session = { username: 'vera', address: '', userAgent: '' };
    const token = { name: 'backup', scope: 'read', owner: 'vera' } as const;
    await signIns.openSession({ ...session, expiresAt: at(60).toISOString() });
    await signIns.createToken({ ...token, expiresAt: at(60).toISOString() });
    const kept = await signIns.createToken({ ...token, expiresAt: at(120).toISOString() });
    expect(await pruneSignIns({ ...deps, signIns }, at(59))).toEqual({ removed: 0 });
    around.now = at(61);
    expect(await pruneSignIns({ ...deps, signIns }, at(61))).toEqual({ removed: 2 });
    expect((await signIns.tokens({ page: 1, pageSize: 9 })).results.map(({ id }) => id)).toEqual([kept.id]);
  });
});
