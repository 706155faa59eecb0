import { beforeEach, describe, expect, it } from 'vitest';
import { run as pollHealth } from '../../jobs/poll-health.ts';
import { run as sampleHealth } from '../../jobs/sample-health.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import { visit, type Visitor, textOf as words } from '../pages/page-session.ts';
import { mount, table, type World, world } from './fake-monitored.ts';

const GB = 1e9;

let around: World;
let visitor: Visitor;
beforeEach(async () => {
  around = world();
  visitor = await visit({ around });
});

const measure = async (): Promise<void> => void (await pollHealth(visitor.deps, around.now));
const later = (ms: number): void => void (around.now = new Date(around.now.getTime() + ms));

describe('the page of a health module', () => {
  it.each(HEALTH_MODULES.map(({ name }) => name))('%s shows what was measured, and its thresholds', async (name) => {
    expect(words(await visitor.page(`/health/${name}`))).toContain('Not measured yet.');
    await measure();
    const html = await visitor.page(`/health/${name}`);
    expect(words(html)).toContain('Measured every');
    expect(html).toContain(`MON_${name.toUpperCase()}_INTERVAL`);
    expect(html).toContain(`href="/alerts?module=${name}"`);
    expect(html).not.toMatch(/\[object|undefined|NaN/);
  });

  it('answers why the database turned yellow', async () => {
    around.size.total_bytes = 26 * GB;
    await measure();
    const html = words(await visitor.page('/health/database'));
    expect(html).toContain('26 GB has reached the warning threshold of 25 GB (critical: 40 GB).');
    expect(html).toContain('Next steps');
    expect(html).toContain('Free disk space');
  });

  it('lists the tables with most dead rows first', async () => {
    around.tables = [table('cot_router', 10, 5000), table('cot_link', 900, 5000), table('mission', 50, 5000)];
    await measure();
    const html = await visitor.page('/health/autovacuum');
    const at = ['cot_link', 'mission', 'cot_router'].map((name) => html.lastIndexOf(`>${name}<`));
    expect(at.every((each, index) => each > (at[index - 1] ?? 0))).toBe(true);
  });

  it('shows every finding, worst first, with what to do about each', async () => {
    around.mounts = [mount('/', 85), mount('/srv', 95)];
    await measure();
    const html = words(await visitor.page('/health/disk'));
    expect(html.indexOf('/srv: 95 % full')).toBeGreaterThan(0);
    expect(html.indexOf('/srv: 95 % full')).toBeLessThan(html.indexOf('/: 85 % full'));
    expect(html).toContain('critical from 90 %');
    expect(html).toContain('sudo du -xh --max-depth=3 MOUNT');
  });

  it('says which variable has set a threshold', async () => {
    const own = await visit();
    own.deps.thresholds = { ...own.deps.thresholds, set_by: ['MON_DISK_WARNING'] };
    const html = words(await own.page('/health/disk'));
    expect(html).toContain('Warning from 80 % variable MON_DISK_WARNING');
    expect(html).toContain('Critical from 90 % monitor/config/thresholds.yml MON_DISK_CRITICAL');
  });

  it('draws two weeks, and only the last day while our own database is away', async () => {
    for (let hour = 0; hour < 100; hour++) {
      around.now = new Date(around.now.getTime() + 3_600_000);
      around.mounts = [mount('/', 20 + hour / 10)];
      await measure();
      await sampleHealth(visitor.deps, around.now);
    }
    // A session lasts 12 hours.
    visitor = await visit({ around, deps: visitor.deps });
    const long = await visitor.page('/health/disk');
    expect(long).toContain('aria-label="fullest disk over time: first 20 %, last 29.9 %, lowest 20 %, highest 29.9 %"');
    visitor.deps.healthTrend.unavailable = true;
    const short = await visitor.page('/health/disk');
    expect(words(short)).toContain(
      "Only the last day is shown. Couldn't read older samples: Our own database does not answer.",
    );
    expect(short).toContain('first 27.6 %, last 29.9 %');
  });

  it('measures now, and shows what was found on every page', async () => {
    await measure();
    later(2_000);
    around.mounts = [mount('/', 85)];
    const answer = await visitor.post('/health/disk');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/health/disk?done=measured']);
    const html = words(await visitor.page('/health/disk?done=measured'));
    expect(html).toContain('Measured just now.');
    expect(html).toContain('/: 85 % full');
    expect(words(await visitor.page('/'))).toContain('1 warning: Disks');
  });

  it('counts nothing twice when somebody measures: alerts hear of it from the poll, which is due then', async () => {
    await measure();
    around.tables = [table('cot_router', 4000, 5000)];
    for (let count = 0; count < 2; count += 1) {
      later(2_000);
      await visitor.post('/health/autovacuum');
    }
    const history = await visitor.deps.health.history('autovacuum');
    expect(history?.pollsInRow).toBe(0);
    expect(await visitor.deps.health.takeDue(around.now.getTime())).toEqual(['autovacuum']);
  });

  it('shows a measurement of less than 2 s ago instead of another', async () => {
    await measure();
    around.mounts = [mount('/', 85)];
    later(1_999);
    await visitor.post('/health/disk');
    expect(await visitor.deps.health.history('disk')).toMatchObject({ status: 'ok' });
    later(1);
    await visitor.post('/health/disk');
    expect(await visitor.deps.health.history('disk')).toMatchObject({ status: 'warning' });
  });

  it('keeps what the poll has counted while it was measured', async () => {
    const { deps } = visitor;
    await measure();
    later(2_000);
    const { disks } = deps.monitored;
    const use = async (): ReturnType<typeof disks.use> => {
      const measurement = (await deps.health.states()).find(({ module }) => module === 'disk')?.measurement;
      if (measurement) await deps.health.put({ ...measurement, failuresInRow: 1, pollsInRow: 3 });
      return disks.use();
    };
    deps.monitored = { ...deps.monitored, disks: { ...disks, use } };
    await visitor.post('/health/disk');
    expect(await deps.health.history('disk')).toMatchObject({ failuresInRow: 1, pollsInRow: 3 });
  });

  it('says what modules there are where one is asked for that is none', async () => {
    const html = words(await visitor.page('/health/nothing', 404));
    expect(html).toContain('No health module is named &quot;nothing&quot;. Modules: database,');
    expect((await visitor.post('/health/nothing')).status).toBe(404);
  });
});
