import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { JOBS } from '../../jobs/index.ts';
import { run as pollHealth } from '../../jobs/poll-health.ts';
import { run as pruneJobRuns } from '../../jobs/prune-job-runs.ts';
import { run as pruneSignIns } from '../../jobs/prune-sign-ins.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { cronSeconds, intervalSeconds, minuteCron, startCrons } from '../../shared/jobs/crons.ts';
import type { Job } from '../../shared/jobs/port.ts';
import { JobRunner, runJob } from '../../shared/jobs/run.ts';
import { fakeJobRuns, NOW, table, world } from '../health/fake-monitored.ts';
import { fakeDeps } from '../http/fake-deps.ts';
import { secondsPass } from './seconds-pass.ts';

const root = resolve(import.meta.dirname, '../..');
const at = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1000);

const job = (more: Partial<Job<Deps>>): Job<Deps> => ({
  name: 'sweep',
  cron: '* * * * *',
  claim: 'row',
  limitSeconds: 60,
  run: async () => ({}),
  ...more,
});

describe('the table of jobs', () => {
  it('has exactly the crons of wrangler.toml', () => {
    const text = readFileSync(join(root, 'wrangler.toml'), 'utf8');
    const listed = /^crons = (\[[^\]]*\])$/m.exec(text)?.[1] ?? '[]';
    const minutes = new Set(JOBS.map(({ cron }) => minuteCron(cron)));
    expect((JSON.parse(listed) as string[]).toSorted()).toEqual([...minutes].toSorted());
  });

  it('has crons that mean the same on every host, but for the seconds', () => {
    const { thresholds } = fakeDeps();
    const intervals = JOBS.map((each) => [
      each.name,
      [intervalSeconds(each, thresholds), cronSeconds(minuteCron(each.cron))],
    ]);
    expect(Object.fromEntries(intervals)).toEqual({
      'poll-health': [1, 60],
      'dispatch-alerts': [1, 60],
      heartbeat: [60, 60],
      'expire-users': [60, 60],
      'finish-intents': [60, 60],
      'prove-revocations': [5, 60],
      'find-revocations': [60, 60],
      'run-retention': [2, 60],
      'run-vacuum': [2, 60],
      'run-simulation': [2, 60],
      'back-up': [5, 60],
      'keep-retention-history': [60, 60],
      'keep-service-certificates': [300, 300],
      'place-ungrouped': [300, 300],
      'disconnect-unlisted': [60, 60],
      'sync-retention': [60, 60],
      'sample-growth': [60, 60],
      'sample-health': [60, 60],
      'prune-alerts': [3600, 3600],
      'prune-job-runs': [3600, 3600],
      'prune-sign-ins': [3600, 3600],
      'count-retention-days': [3600, 3600],
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

describe('jobs of a process that knows seconds', () => {
  it('run once in their slot when they are claimed, whichever process runs them', async () => {
    const around = world();
    const deps = fakeDeps({}, around);
    let runs = 0;
    const counting = job({ run: async () => ({ runs: ++runs }) });
    const runners = ['a', 'b'].map((runner) => new JobRunner([counting], deps, runner));
    for (const runner of runners) runner.runAll(NOW);
    for (let second = 1; second < 180; second++) {
      around.now = at(second);
      secondsPass(runners, around.now);
      await delay(0);
    }
    expect(runs).toBe(4);
  });

  it('run to the second as often as a setting says, also where no cron could', async () => {
    const around = world();
    const deps = fakeDeps({}, around);
    const starts: number[] = [];
    const timed = job({
      cron: '* * * * * *',
      everySeconds: () => 7,
      run: async (_, now) => ({ starts: starts.push(now.getTime() / 1000) }),
    });
    const runner = new JobRunner([timed], deps, 'a');
    for (let second = 0; second < 60; second++) {
      around.now = at(second);
      secondsPass([runner], around.now);
      await delay(0);
    }
    const steps = starts.slice(2).map((each, index) => each - (starts[index + 1] ?? 0));
    expect(new Set(steps)).toEqual(new Set([7]));
    expect(starts.length).toBeGreaterThanOrEqual(9);
  });

  it('are tried again after a pause when the database did not answer', async () => {
    const around = world();
    const deps = fakeDeps({}, around);
    let runs = 0;
    const working = deps.jobRuns;
    deps.jobRuns = fakeJobRuns();
    deps.jobRuns.claim = async () => {
      throw new Error('no database');
    };
    const hourly = job({ cron: '7 * * * *', run: async () => ({ runs: ++runs }) });
    const runner = new JobRunner([hourly], deps, 'a');
    runner.runAll(NOW);
    await delay(0);
    expect(deps.log.events.map(({ event }) => event)).toEqual(['job.not_run']);
    deps.jobRuns = working;
    secondsPass([runner], at(1));
    await delay(0);
    expect(runs).toBe(0);
    for (let second = 2; second <= 16; second++) secondsPass([runner], at(second));
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
      cron: '* * * * * *',
      run: async () => ({ quick: ++quick }),
    });
    const runner = new JobRunner([hanging, other], deps, 'a');
    for (let second = 0; second < 5; second++) secondsPass([runner], at(second));
    await delay(0);
    expect(quick).toBe(5);
  });

  it('are over for a host that stops when the last run has ended', async () => {
    const deps = fakeDeps();
    const { promise: work, resolve: end } = Promise.withResolvers<Record<string, unknown>>();
    const runner = new JobRunner([job({ claim: 'none', run: () => work })], deps, 'a');
    runner.runAll(NOW);
    let over = false;
    const waiting = runner.idle().then(() => (over = true));
    await delay(5);
    expect(over).toBe(false);
    end({});
    await waiting;
  });
});

describe('crons', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('fire at their times in UTC and not before, until they are stopped, and go on when the clock is set back', async () => {
    vi.useFakeTimers({ now: Date.parse('2026-01-31T14:04:57.300Z') });
    const fired: string[] = [];
    const stopping = new AbortController();
    const note = (cron: string, now: Date): void => void fired.push(`${cron} at ${now.toISOString().slice(11, 19)}`);
    startCrons(['*/2 * * * * *', '5 14 * * *'], note, stopping.signal);
    await vi.advanceTimersByTimeAsync(4_800);
    expect(new Set(fired)).toEqual(
      new Set([
        '*/2 * * * * * at 14:04:58',
        '*/2 * * * * * at 14:05:00',
        '5 14 * * * at 14:05:00',
        '*/2 * * * * * at 14:05:02',
      ]),
    );
    vi.setSystemTime(Date.parse('2026-01-31T13:00:00.100Z'));
    await vi.advanceTimersByTimeAsync(6_000);
    // The one that the clock was set back before may be left out.
    expect(fired.slice(4).filter((each) => !each.endsWith('02'))).toEqual([
      '*/2 * * * * * at 13:00:04',
      '*/2 * * * * * at 13:00:06',
    ]);
    stopping.abort();
    const { length } = fired;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(fired).toHaveLength(length);
  });

  it('run every job soon after a start', async () => {
    vi.useFakeTimers({ now: NOW });
    const deps = fakeDeps();
    let runs = 0;
    const stopping = new AbortController();
    new JobRunner([job({ cron: '7 * * * *', claim: 'none', run: async () => ({ runs: ++runs }) })], deps, 'a').start(
      stopping.signal,
    );
    await vi.advanceTimersByTimeAsync(24);
    expect(runs).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs).toBe(1);
    stopping.abort();
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
