import { describe, expect, it } from 'vitest';
import { PACE, runClaimed } from '../../shared/jobs/run.ts';
import { fakeJobRuns } from '../health/fake-monitored.ts';
import { memoryLog } from '../http/fake-deps.ts';

const { leaseSeconds: LEASE_SECONDS } = PACE;
const DUE = new Date('2026-01-02T03:00:00Z');

describe('a claimed run', () => {
  it('is done once, whoever tries', async () => {
    const deps = { jobRuns: fakeJobRuns(), log: memoryLog() };
    const run = { name: 'sweep', dueAt: DUE, limitSeconds: 60, work: async () => ({ swept: 3 }) };
    expect(await runClaimed(deps, { ...run, runner: 'a' })).toBe('done');
    expect(await runClaimed(deps, { ...run, runner: 'b' })).toBe('elsewhere');
    expect(deps.log.events).toEqual([
      { level: 'info', event: 'job.done', fields: { job: 'sweep', due_at: DUE.toISOString(), swept: 3 } },
    ]);
  });

  it('of a job that runs every few seconds writes a line when it fails, and none when it is done', async () => {
    const deps = { jobRuns: fakeJobRuns(), log: memoryLog() };
    const run = { name: 'sweep', dueAt: DUE, limitSeconds: 60, runner: 'a', isQuiet: true, work: async () => ({}) };
    expect(await runClaimed(deps, run)).toBe('done');
    expect(deps.log.events).toEqual([]);
    const work = (): Promise<never> => Promise.reject(new Error('no broom'));
    expect(await runClaimed(deps, { ...run, dueAt: new Date(DUE.getTime() + 5000), work })).toBe('failed');
    expect(deps.log.events.map(({ event }) => event)).toEqual(['job.failed']);
  });

  it('that fails is recorded and not tried again in its slot', async () => {
    const deps = { jobRuns: fakeJobRuns(), log: memoryLog() };
    const run = {
      name: 'sweep',
      dueAt: DUE,
      limitSeconds: 60,
      runner: 'a',
      work: async () => {
        throw new Error('no broom');
      },
    };
    expect(await runClaimed(deps, run)).toBe('failed');
    expect(deps.log.events.map(({ event, fields }) => [event, fields['error']])).toEqual([['job.failed', 'no broom']]);
    expect(await runClaimed(deps, run)).toBe('elsewhere');
  });

  it('of a process that died is taken over when its lease has ended, and given up after three', async () => {
    let nowMs = 0;
    const jobRuns = fakeJobRuns(() => nowMs);
    const log = memoryLog();
    let worked = 0;
    const run = { name: 'sweep', dueAt: DUE, limitSeconds: 60, work: async () => ({ worked: ++worked }) };
    await jobRuns.claim('sweep', DUE, 'dead', LEASE_SECONDS);
    expect(await runClaimed({ jobRuns, log }, { ...run, runner: 'b' })).toBe('elsewhere');
    for (const runner of ['dead too', 'dead as well']) {
      nowMs += LEASE_SECONDS * 1000 + 1;
      await jobRuns.claim('sweep', DUE, runner, LEASE_SECONDS);
    }
    nowMs += LEASE_SECONDS * 1000 + 1;
    expect(await runClaimed({ jobRuns, log }, { ...run, runner: 'b' })).toBe('failed');
    expect(worked).toBe(0);
    expect(log.events.map(({ event }) => event)).toEqual(['job.taken_over', 'job.failed']);
  });

  it('that lost its lease meanwhile does not overwrite its successor', async () => {
    let nowMs = 0;
    const jobRuns = fakeJobRuns(() => nowMs);
    const log = memoryLog();
    const work = async (): Promise<Record<string, unknown>> => {
      nowMs += LEASE_SECONDS * 1000 + 1;
      await jobRuns.claim('sweep', DUE, 'successor', LEASE_SECONDS);
      return {};
    };
    const run = { name: 'sweep', dueAt: DUE, limitSeconds: 60, runner: 'slow', work };
    expect(await runClaimed({ jobRuns, log }, run)).toBe('failed');
    expect(log.events.map(({ event }) => event)).toEqual(['job.lost']);
  });

  const quick = { leaseSeconds: 30, renewEveryMs: 10, finishAgainMs: 5 };

  it('is renewed while it works, and told to stop when it was taken away', async () => {
    const jobRuns = fakeJobRuns();
    const log = memoryLog();
    let renewals = 0;
    jobRuns.renew = async () => ++renewals < 3;
    const run = {
      name: 'sweep',
      dueAt: DUE,
      runner: 'a',
      limitSeconds: 60,
      work: (signal: AbortSignal) =>
        new Promise<Record<string, unknown>>((resolve) =>
          signal.addEventListener('abort', () => resolve({ late: true })),
        ),
    };
    await runClaimed({ jobRuns, log }, run, quick);
    expect(renewals).toBe(3);
    expect(log.events.map(({ fields }) => fields['error'])).toEqual(['another process has taken over']);
  });

  it('that never ends has failed at its limit, so that the next one can run', async () => {
    const deps = { jobRuns: fakeJobRuns(), log: memoryLog() };
    const hanging = {
      name: 'sweep',
      dueAt: DUE,
      runner: 'a',
      limitSeconds: 0.05,
      work: () => new Promise<never>(() => undefined),
    };
    await runClaimed(deps, hanging, quick);
    expect(deps.log.events.map(({ fields }) => fields['error'])).toEqual(['not done within 0.05 s']);
    const later = { ...hanging, dueAt: new Date(DUE.getTime() + 60_000), work: async () => ({ done: true }) };
    expect(await runClaimed(deps, later, quick)).toBe('done');
  });

  it('is not worked again when its end could not be written down at once', async () => {
    const jobRuns = fakeJobRuns();
    const log = memoryLog();
    const { finish } = { finish: jobRuns.finish.bind(jobRuns) };
    let tries = 0;
    jobRuns.finish = async (claim, outcome) => {
      if (++tries < 4) throw new Error('no database');
      return finish(claim, outcome);
    };
    let worked = 0;
    const run = { name: 'sweep', dueAt: DUE, limitSeconds: 60, work: async () => ({ worked: ++worked }) };
    await runClaimed({ jobRuns, log }, { ...run, runner: 'a' }, quick);
    await runClaimed({ jobRuns, log }, { ...run, runner: 'b' }, quick);
    expect([worked, log.events.map(({ event }) => event)]).toEqual([1, ['job.done']]);
  });
});
