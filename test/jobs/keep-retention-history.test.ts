import { beforeEach, describe, expect, it } from 'vitest';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import { run } from '../../jobs/keep-retention-history.ts';
import type { RetentionRun } from '../../shared/retention/port.ts';
import { standIn } from '../devices/fake-revocation-world.ts';
import { retentionWorld, type RetentionWorld } from '../retention/fake-retention-world.ts';

let world: RetentionWorld;
let written: RetentionRun[][];
beforeEach(async () => {
  world = await retentionWorld();
  written = [];
  standIn(world.deps.retentionHistory, 'keepRuns', (real) => async (runs) => {
    written.push([...runs]);
    await real(runs);
  });
});

const keep = () => run(world.deps, world.around.now);
const store = async () => (await world.deps.retentionHistory.runs(0, 99)).results;
const logged = () => world.deps.log.events.filter(({ event }) => event === 'retention.run');
const nightly = (change: Partial<CoreRetentionRun> = {}): CoreRetentionRun => ({
  id: 'nightly',
  trigger: 'schedule',
  state: 'running',
  startedAt: world.ago(0.1),
  finishedAt: null,
  limits: { cot: world.ago(30.1), geochat: world.ago(60.1) },
  rows: { cot: 3 },
  included: { cot: 0, files: 0 },
  expected: 12,
  bytes: null,
  error: null,
  ...change,
});

describe('keep-retention-history', () => {
  it('brings runs of the schedule into the book, and says once how each has ended', async () => {
    world.retention.runs = [nightly()];
    expect(await keep()).toEqual({ kept: 1, up_to_date: true });
    expect([await store(), logged()]).toMatchObject([[{ id: 'nightly', source: 'core', state: 'running' }], []]);
    world.retention.runs = [nightly({ state: 'done', finishedAt: world.ago(0), rows: { cot: 12 }, bytes: 9 })];
    await keep();
    await keep();
    expect(await store()).toMatchObject([{ state: 'done', rows: { cot: 12 }, bytes: 9 }]);
    expect(logged()).toMatchObject([{ level: 'info', fields: { id: 'nightly', state: 'done', rows: { cot: 12 } } }]);
  });

  it('warns of one that has not come to its end', async () => {
    world.retention.runs = [nightly({ state: 'interrupted', error: 'killed' })];
    await keep();
    expect(logged()).toMatchObject([{ level: 'warn', fields: { state: 'interrupted', error: 'killed' } }]);
  });

  it('leaves runs on demand to their job in the log', async () => {
    world.retention.runs = [nightly({ trigger: 'order', state: 'done' })];
    expect(await keep()).toMatchObject({ kept: 1 });
    expect(logged()).toEqual([]);
  });

  it('writes nothing while nothing changes, in whatever order the database gives members back', async () => {
    world.retention.runs = [nightly(), nightly({ id: 'before', state: 'done', startedAt: world.ago(1) })];
    await keep();
    standIn(world.deps.retentionHistory, 'runs', (real) => async (...given) => {
      const page = await real(...given);
      const reversed = <T extends object>(of: T): T => Object.fromEntries(Object.entries(of).toReversed()) as T;
      return { ...page, results: page.results.map((each) => reversed({ ...each, limits: reversed(each.limits) })) };
    });
    expect(await keep()).toEqual({ kept: 0, up_to_date: true });
    expect(written).toHaveLength(1);
  });

  it('writes only what has changed', async () => {
    world.retention.runs = [nightly(), nightly({ id: 'before', state: 'done', startedAt: world.ago(1) })];
    await keep();
    world.retention.runs[0] = nightly({ rows: { cot: 4 } });
    expect(await keep()).toMatchObject({ kept: 1 });
    expect(written.at(-1)).toMatchObject([{ id: 'nightly', rows: { cot: 4 } }]);
  });

  it('does not bring back to life what has ended while the core was asked', async () => {
    await world.deps.retentionHistory.keepRuns([{ ...nightly({ state: 'done' }), source: 'core' }]);
    world.retention.runs = [nightly()];
    expect(await keep()).toMatchObject({ kept: 0 });
    expect(await store()).toMatchObject([{ state: 'done' }]);
  });

  it('keeps what it has while the core is away, or of a release without a log', async () => {
    world.retention.runs = [nightly()];
    await keep();
    world.retention.mood = 'down';
    expect(await keep()).toEqual({ kept: 0, up_to_date: false });
    Object.assign(world.retention, { mood: 'up', tellsRuns: false });
    expect(await keep()).toEqual({ kept: 0, up_to_date: false });
    expect(await store()).toHaveLength(1);
  });

  it('reads runs of a release from its log, in the time zone of the core', async () => {
    world.deps.timeZone = 'America/New_York';
    world.retention.tellsRuns = false;
    const start = '2026-03-03-23:00:00.012 [x] INFO t.s.r.s.ScheduledRetentionService -  Reaper Service Running ';
    world.retention.log = [start];
    expect(await keep()).toEqual({ kept: 1, up_to_date: true });
    world.retention.log.push(
      '2026-03-03-23:00:09.012 [x] ERROR t.s.r.s.ScheduledRetentionService - Error accessing retention query service x',
    );
    await keep();
    await keep();
    expect(await store()).toMatchObject([
      {
        id: 'log-2026-03-04T04:00:00.012Z',
        source: 'log',
        trigger: 'schedule',
        state: 'failed',
        finishedAt: '2026-03-04T04:00:09.012Z',
        limits: {},
        rows: {},
      },
    ]);
    expect(logged().map(({ level, fields }) => [level, fields['state']])).toEqual([
      ['info', 'done'],
      ['warn', 'failed'],
    ]);
  });

  it('remembers since when a policy and a schedule are in force, as the core says and not as its files do', async () => {
    const seen: unknown[] = [];
    standIn(world.deps.retentionHistory, 'seenInForce', (real) => async (...given) => {
      seen.push(given);
      return real(...given);
    });
    world.retention.schedule = '0 0 3 * * ?';
    await keep();
    const policy = { cot: 30, geochat: 60, files: null, missionpackages: null, missions: null };
    expect(seen).toEqual([[world.around.now.toISOString(), { policy, schedule: '0 0 3 * * ?' }]]);
    world.retention.mood = 'down';
    await keep();
    expect(seen).toHaveLength(1);
  });

  it('does not know what is in force without the unit of the core', async () => {
    world = await retentionWorld({});
    let calls = 0;
    world.deps.retentionHistory.seenInForce = async (now) => {
      calls += 1;
      return now;
    };
    await keep();
    expect(calls).toBe(0);
  });
});
