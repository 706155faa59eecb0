import { describe, expect, it } from 'vitest';
import { LEASE_SECONDS, runClaimed } from '../../shared/verbs/run-claimed.ts';
import { memoryLog } from '../fakes/deps.ts';
import { fakeJobRuns } from '../fakes/monitored.ts';

const DUE = new Date('2026-01-02T03:00:00Z');

describe('a claimed run', () => {
  it('is done once, whoever tries', async () => {
    const deps = { jobRuns: fakeJobRuns(), log: memoryLog() };
    const run = { name: 'sweep', dueAt: DUE, work: async () => ({ swept: 3 }) };
    expect(await runClaimed(deps, { ...run, runner: 'a' })).toBe('ran');
    expect(await runClaimed(deps, { ...run, runner: 'b' })).toBe('elsewhere');
    expect(deps.log.events).toEqual([
      { level: 'info', event: 'job.done', fields: { job: 'sweep', due_at: DUE.toISOString(), swept: 3 } },
    ]);
  });

  it('that fails is recorded and not tried again in its slot', async () => {
    const deps = { jobRuns: fakeJobRuns(), log: memoryLog() };
    const run = {
      name: 'sweep',
      dueAt: DUE,
      runner: 'a',
      work: async () => {
        throw new Error('no broom');
      },
    };
    expect(await runClaimed(deps, run)).toBe('ran');
    expect(deps.log.events.map(({ event, fields }) => [event, fields['error']])).toEqual([['job.failed', 'no broom']]);
    expect(await runClaimed(deps, run)).toBe('elsewhere');
  });

  it('of a process that died is taken over when its lease has ended, and given up after three', async () => {
    let nowMs = 0;
    const jobRuns = fakeJobRuns(() => nowMs);
    const log = memoryLog();
    let worked = 0;
    const run = { name: 'sweep', dueAt: DUE, work: async () => ({ worked: ++worked }) };
    await jobRuns.claim('sweep', DUE, 'dead', LEASE_SECONDS);
    expect(await runClaimed({ jobRuns, log }, { ...run, runner: 'b' })).toBe('elsewhere');
    for (const runner of ['dead too', 'dead as well']) {
      nowMs += LEASE_SECONDS * 1000 + 1;
      await jobRuns.claim('sweep', DUE, runner, LEASE_SECONDS);
    }
    nowMs += LEASE_SECONDS * 1000 + 1;
    expect(await runClaimed({ jobRuns, log }, { ...run, runner: 'b' })).toBe('ran');
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
    await runClaimed({ jobRuns, log }, { name: 'sweep', dueAt: DUE, runner: 'slow', work });
    expect(log.events.map(({ event }) => event)).toEqual(['job.lost']);
  });
});
