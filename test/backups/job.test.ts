import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { isWanted, run } from '../../jobs/back-up.ts';
import { readResult } from '../../shared/backups/jobs.ts';
import { dueTime } from '../../shared/backups/rules.ts';
import { cronSchedules } from '@holdfast/kit/cron';
import { runJob } from '../../shared/jobs/run.ts';
import { JOBS } from '../../jobs/index.ts';
import type { OpsJob } from '../../shared/jobs/port.ts';
import { type World, world } from '../health/fake-monitored.ts';
import { type FakeDeps, fakeDeps } from '../http/fake-deps.ts';
import { proofOf } from './fake-backups.ts';

const SETTINGS = { BACKUP_TARGET: '/mnt/backups', BACKUP_PASSPHRASE: 'correct horse battery staple' };
let around: World;
let deps: FakeDeps;
beforeEach(() => {
  around = world();
  around.backups.the.backups = [];
  around.backups.the.proof = 'off';
  deps = fakeDeps(SETTINGS, around);
});

/** The job as a host runs it, once. */
async function tick(time?: string, runner = 'a'): Promise<void> {
  if (time !== undefined) around.now = new Date(time);
  const job = JOBS.find(({ name }) => name === 'back-up');
  if (job === undefined) throw new Error('there is no such job');
  await runJob(job, deps, runner, around.now);
}
const jobs = async (): Promise<OpsJob[]> => (await deps.opsJobs.list({ kind: 'backup' }, 0, 99)).results;
const newest = async (): Promise<OpsJob> => {
  const [job] = await jobs();
  if (job === undefined) throw new Error('there is no job');
  return job;
};
const starts = (): number => around.backups.calls.filter((each) => each === 'start').length;
const throughout = async (from: string, seconds: number, stepSeconds = 5): Promise<void> => {
  for (let after = 0; after <= seconds; after += stepSeconds)
    await tick(new Date(Date.parse(from) + after * 1000).toISOString());
};

describe('back-up', () => {
  it('is not wanted without a target, whatever the time', async () => {
    deps = fakeDeps({}, around);
    around.now = new Date('2026-03-05T02:30:01Z');
    expect(await isWanted(deps)).toBe(false);
    expect(await run(deps, around.now)).toEqual({ step: 'none' });
    expect(around.backups.calls).toEqual([]);
  });

  it('makes one backup at its time, whoever ticks, and shows its end in the history of jobs', async () => {
    await tick('2026-03-04T12:00:00Z');
    expect([await jobs(), await isWanted(deps)]).toEqual([[], false]);
    await tick('2026-03-05T02:29:58Z');
    expect(starts()).toBe(0);
    around.now = new Date('2026-03-05T02:30:01Z');
    await Promise.all([tick(undefined, 'a'), tick(undefined, 'b')]);
    await tick('2026-03-05T02:30:06Z', 'b');
    expect([starts(), (await jobs()).length, (await newest()).state]).toEqual([1, 1, 'running']);
    around.backups.end();
    await throughout('2026-03-05T02:31:00Z', 60);
    const job = await newest();
    expect(job).toMatchObject({ state: 'succeeded', actor: 'schedule', progress: 1, error: null });
    expect(readResult(job)).toMatchObject({ what: 'backup', bytes: 68e6, level: null });
    await throughout('2026-03-05T03:00:00Z', 120);
    expect(starts()).toBe(1);
    await tick('2026-03-06T02:30:00Z');
    expect(starts()).toBe(2);
    expect(deps.audit.records).toMatchObject([
      { action: 'backup.run', actor: 'schedule', phase: 'intent' },
      { action: 'backup.run', phase: 'outcome', result: 'ok' },
      { action: 'backup.run', phase: 'intent' },
    ]);
  });

  it('makes up once what was missed while the machine was down, however often', async () => {
    await tick('2026-03-04T12:00:00Z');
    await tick('2026-03-09T08:00:00Z');
    around.backups.end();
    await throughout('2026-03-09T08:00:05Z', 300);
    expect([starts(), (await jobs()).length]).toEqual([1, 1]);
  });

  it('follows the proof to its end: a backup that does not prove is a failed job', async () => {
    around.backups.the.proof = 'always';
    await tick('2026-03-04T12:00:00Z');
    await tick('2026-03-05T02:30:00Z');
    around.backups.end();
    await tick('2026-03-05T02:31:00Z');
    expect((await newest()).state).toBe('running');
    const name = around.backups.the.backups[0]?.name ?? '';
    await around.backups.prove(name, { requestedBy: 'schedule' });
    Object.assign(around.backups.the.running ?? {}, { phase: 'Loading cot_router', percent: 50, seconds_left: 30 });
    await tick('2026-03-05T02:31:05Z');
    expect(await newest()).toMatchObject({
      phase: 'Loading cot_router',
      progress: 0.75,
      eta: '2026-03-05T02:31:35.000Z',
    });
    around.backups.end({ level: 'decrypts' });
    await tick('2026-03-05T02:32:00Z');
    const job = await newest();
    expect([job.state, job.error]).toEqual([
      'failed',
      `${name} is kept, but its proof reached only the level "Decrypts": The next level after decrypts failed.`,
    ]);
    expect(deps.audit.records.at(-1)).toMatchObject({ phase: 'outcome', result: 'failed' });
  });

  it('ends with the reason when the backup fails, and tries again at the next time only', async () => {
    await tick('2026-03-04T12:00:00Z');
    await tick('2026-03-05T02:30:00Z');
    around.now = new Date('2026-03-05T02:31:00Z');
    around.backups.end({ error: 'No space left on /mnt/backups.' });
    await throughout('2026-03-05T02:31:05Z', 60);
    expect([await newest(), starts()]).toMatchObject([{ state: 'failed', error: 'No space left on /mnt/backups.' }, 1]);
    await tick('2026-03-06T02:30:00Z');
    expect(starts()).toBe(2);
  });

  it('waits for a service that is down, says so once, and gives up after an hour', async () => {
    await tick('2026-03-04T12:00:00Z');
    around.backups.error = new AppError('unavailable', 'The backup service refused the connection.');
    await throughout('2026-03-05T02:30:00Z', 1800, 60);
    expect((await newest()).log).toHaveLength(1);
    around.backups.error = undefined;
    await tick('2026-03-05T03:00:30Z');
    expect([starts(), (await newest()).state]).toEqual([1, 'running']);
    around.backups.error = new AppError('unavailable', 'The backup service refused the connection.');
    await throughout('2026-03-05T03:01:00Z', 4000, 60);
    expect(await newest()).toMatchObject({ state: 'failed', error: expect.stringContaining('Given up after an hour') });
  });

  it('waits while a backup by the script runs, then makes its own', async () => {
    await tick('2026-03-04T12:00:00Z');
    around.now = new Date('2026-03-05T02:20:00Z');
    await around.backups.start({ requestedBy: 'script' });
    await tick('2026-03-05T02:30:00Z');
    expect([starts(), (await newest()).state]).toEqual([1, 'queued']);
    around.backups.end({ by: 'script' });
    await tick('2026-03-05T02:40:00Z');
    expect([starts(), (await newest()).state]).toEqual([2, 'running']);
  });

  it('adopts the run that it started before its process died, also when that has ended', async () => {
    await tick('2026-03-04T12:00:00Z');
    around.now = new Date('2026-03-05T02:30:00.400Z');
    const working = deps.opsJobs;
    const change = () => Promise.reject(new AppError('unavailable', 'the database is away'));
    deps.opsJobs = { ...working, change };
    await expect(run(deps, around.now)).rejects.toThrow('the database is away');
    deps.opsJobs = working;
    expect([starts(), (await newest()).state]).toEqual([1, 'queued']);
    around.backups.end();
    await throughout('2026-03-05T02:30:05Z', 30);
    expect([starts(), (await newest()).state]).toEqual([1, 'succeeded']);
  });

  it('is interrupted when the service stopped in the middle', async () => {
    await tick('2026-03-04T12:00:00Z');
    await tick('2026-03-05T02:30:00Z');
    around.backups.the.running = null;
    await tick('2026-03-05T02:30:05Z');
    expect((await newest()).state).toBe('running');
    await throughout('2026-03-05T02:30:10Z', 30);
    expect(await newest()).toMatchObject({ state: 'interrupted', error: expect.stringContaining('Run it again.') });
  });

  it('takes the verdict of a proof that somebody requested', async () => {
    const { name } = around.backups.add({ created_at: '2026-03-04T02:30:00.000Z' });
    around.now = new Date('2026-03-04T12:00:00Z');
    const input = { what: 'proof', name, history: null, schedule: null, intent: 1 };
    await deps.opsJobs.add({
      id: crypto.randomUUID(),
      kind: 'backup',
      actor: 'ada',
      input,
      now: around.now.toISOString(),
    });
    await tick();
    expect(around.backups.the.running).toMatchObject({ kind: 'proof', name });
    around.now = new Date('2026-03-04T12:01:00Z');
    around.backups.end();
    await tick();
    expect(readResult(await newest())).toMatchObject({ what: 'proof', name, level: 'serves' });
  });

  it('ends a proof whose archive is gone', async () => {
    const { name } = around.backups.add({ proof: proofOf('2026-03-04T03:00:00.000Z') });
    around.now = new Date('2026-03-04T12:00:00Z');
    const input = { what: 'proof', name, history: null, schedule: null, intent: 1 };
    await deps.opsJobs.add({
      id: crypto.randomUUID(),
      kind: 'backup',
      actor: 'ada',
      input,
      now: around.now.toISOString(),
    });
    around.backups.the.backups = [];
    await tick();
    expect(await newest()).toMatchObject({ state: 'failed', error: expect.stringContaining('There is no backup') });
  });
});

describe('the time of a backup', () => {
  const due = (cron: string, through: string, now: string, more: { zone?: string; before?: string } = {}) =>
    dueTime(
      { schedules: cronSchedules, timeZone: more.zone ?? 'UTC', startedAt: new Date('2026-03-01T00:00:00Z') },
      cron,
      { cron: more.before ?? cron, through },
      new Date(now),
    )?.toISOString();
  const NIGHTLY = '0 30 2 * * ?';

  it('comes once in the night in which it does not exist, and once in the night in which it comes twice', () => {
    const zone = 'Europe/Berlin';
    const spring: string[] = [];
    let through = '2026-03-28T12:00:00Z';
    for (let ms = Date.parse(through); ms < Date.parse('2026-03-30T12:00:00Z'); ms += 60_000) {
      const now = new Date(ms).toISOString();
      if (due(NIGHTLY, through, now, { zone }) !== undefined) spring.push((through = now));
    }
    expect(spring).toHaveLength(2);
    const autumn: string[] = [];
    through = '2026-10-24T12:00:00Z';
    for (let ms = Date.parse(through); ms < Date.parse('2026-10-25T12:00:00Z'); ms += 60_000) {
      const now = new Date(ms).toISOString();
      if (due(NIGHTLY, through, now, { zone }) !== undefined) autumn.push((through = now));
    }
    expect(autumn).toHaveLength(1);
  });

  it('is not made up for a schedule that was set since', () => {
    const changed = { before: '0 30 2 * * ?' };
    expect(due('0 0 1 * * ?', '2026-02-20T02:30:00Z', '2026-03-01T00:30:00Z', changed)).toBeUndefined();
    expect(due('0 0 1 * * ?', '2026-02-20T02:30:00Z', '2026-03-01T01:00:00Z', changed)).toBe(
      '2026-03-01T01:00:00.000Z',
    );
  });

  it('still comes after a clock that was a year ahead was set back', () => {
    expect(due(NIGHTLY, '2027-03-05T02:30:00Z', '2026-03-05T02:29:00Z')).toBeUndefined();
    expect(due(NIGHTLY, '2027-03-05T02:30:00Z', '2026-03-05T02:30:30Z')).toBe('2026-03-05T02:30:00.000Z');
  });
});
