// What Holdfast remembers of growth, and of health, in tables that no job works on: the contracts, and many processes at once.

import { beforeAll, describe, expect, it } from 'vitest';
import { keptDatabase, type RunSql } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { growthHistoryTable } from '../../shared/database/growth/records.ts';
import { type HealthResultOptions, HealthResultTable } from '../../shared/health/results.ts';
import { healthTrendTable } from '../../shared/health/trend-table.ts';
import { MIGRATIONS } from '../../shared/runtime/migrations/index.ts';
import { emptyDatabase } from '../e2e/embedded/empty-database.ts';
import { healthResultsContract, resultOf } from '../health/health-results-contract.ts';
import { healthSample, healthTrendContract } from '../health/health-trend-contract.ts';
import { growthHistoryContract, sampleAt } from './growth-history-contract.ts';

const OPTIONS = { name: 'growth-test', called: 'our own database', variable: 'DATABASE_URL', withinMs: 20_000 };

const { url, inDatabase } = emptyDatabase();
let run: RunSql;
beforeAll(async () => {
  for (const name of ['retention', 'database-care', 'health-trend', 'replicas']) await migrated(name);
  run = keptDatabase(new Secret(url()), OPTIONS);
});

const migrated = async (name: string) => inDatabase(MIGRATIONS.find((each) => each.name === name)?.sql ?? '');

const emptied = async () => {
  await inDatabase('TRUNCATE growth_sample, growth_table');
  return growthHistoryTable(run);
};

growthHistoryContract('in the database', emptied);

/** A process; its clock can be set. */
function resultsOf(runner: string, over: Partial<HealthResultOptions> = {}): HealthResultTable {
  const process = { id: runner, name: runner.toUpperCase() };
  return new HealthResultTable({ run, process, steadyMs: () => performance.now(), ...over });
}

describe('shared measurements of the release before', () => {
  it('are dropped by its upgrade, after which each process keeps its own', async () => {
    await inDatabase("INSERT INTO health_result VALUES ('disk', 'old', now(), '{}'), ('core', 'old', now(), '{}')");
    await migrated('health-of-each-process');
    const [one, two, three] = ['one', 'two', 'three'].map((each) => resultsOf(each));
    expect(await three?.ofOthers()).toEqual([]);
    for (const each of [one, two, one]) await each?.publish(resultOf('disk'));
    expect(await three?.ofOthers()).toMatchObject([
      { process: { id: 'two', name: 'TWO' }, measurement: { module: 'disk' } },
      { process: { id: 'one', name: 'ONE' }, measurement: { module: 'disk' } },
    ]);
    await inDatabase('TRUNCATE health_result');
  });
});

healthResultsContract('in the database', resultsOf);

describe('shared measurements in the database', () => {
  it('are read for a day back at first, then since the last time, and removed after a day', async () => {
    await inDatabase('TRUNCATE health_result');
    let steadyMs = 0;
    const [one, gone, reader] = [
      resultsOf('one'),
      resultsOf('gone'),
      resultsOf('reader', { steadyMs: () => steadyMs }),
    ];
    const modulesRead = async (): Promise<string[]> =>
      (await reader.ofOthers()).map(({ process, measurement }) => `${process.id} ${measurement.module}`);
    const age = async (module: string, hours: number): Promise<unknown> =>
      inDatabase(
        `UPDATE health_result SET published_at = now() - interval '${hours} hours' WHERE module = '${module}'`,
      );
    for (const module of ['disk', 'tls', 'time']) await gone.publish(resultOf(module));
    await age('disk', 25);
    await age('tls', 23);
    expect(await modulesRead()).toEqual(['gone tls', 'gone time']);
    await gone.publish(resultOf('dns'));
    await gone.publish(resultOf('config'));
    await age('dns', 1);
    steadyMs = 1_000;
    expect(await modulesRead()).toEqual(['gone config']);
    await gone.publish(resultOf('dns', { message: 'again' }));
    await age('dns', 0.9);
    steadyMs += 3_600_000;
    expect(await modulesRead()).toEqual(['gone dns']);
    await one.publish(resultOf('disk'));
    expect(await inDatabase("SELECT measured_by FROM health_result WHERE module = 'disk'")).toEqual([
      { measured_by: 'one' },
    ]);
  });

  it('wait for a database that does not answer, and are published then, the newest of each module', async () => {
    await inDatabase('TRUNCATE health_result');
    let steadyMs = 0;
    let isDown = true;
    let calls = 0;
    const patchy: RunSql = (use) => {
      calls++;
      return isDown ? new Promise(() => undefined) : run(use);
    };
    const [one, two] = [resultsOf('one', { run: patchy, steadyMs: () => steadyMs }), resultsOf('two')];
    await one.publish(resultOf('disk', { message: 'first' }));
    await one.publish(resultOf('disk', { message: 'second' }));
    await one.publish(resultOf('core'));
    expect([await one.ofOthers(), calls]).toEqual([[], 1]);
    isDown = false;
    steadyMs = 3_001;
    expect(await one.ofOthers()).toEqual([]);
    expect(await two.ofOthers()).toMatchObject([
      { measurement: { module: 'disk', message: 'second' } },
      { measurement: { module: 'core' } },
    ]);
    expect(await one.ofOthers()).toEqual([]);
    expect(await two.ofOthers()).toEqual([]);
  });
});

healthTrendContract('in the database', async () => {
  await inDatabase('TRUNCATE health_sample');
  return healthTrendTable(run);
});

describe('the book of growth in the database', () => {
  it('keeps one sample of a moment and one set of tables, though many processes tell of them at once', async () => {
    const store = await emptied();
    const at = '2026-06-15T12:34:00.000Z';
    const tables = [
      { schema: 'public', table: 'a', bytes: 1, rows: 1 },
      { schema: 'public', table: 'b', bytes: 2, rows: 2 },
    ];
    await Promise.all(
      Array.from({ length: 8 }, () => [store.keepSample(sampleAt(at)), store.keepTables('2026-06-15', tables)]).flat(),
    );
    expect(await store.samples(at)).toEqual([sampleAt(at)]);
    expect(await store.tables('2026-06-15')).toEqual(tables.map((each) => ({ ...each, day: '2026-06-15' })));
  });

  it('thins in UTC, whatever the time zone of the database', async () => {
    const history = await emptied();
    await inDatabase("ALTER DATABASE cot SET timezone = 'Asia/Kathmandu'");
    const fresh = growthHistoryTable(keptDatabase(new Secret(url()), { ...OPTIONS, name: 'growth-elsewhere' }));
    const times = ['2026-05-01T05:00:00.000Z', '2026-05-01T05:59:00.000Z', '2026-05-01T06:00:00.000Z'];
    for (const at of times) await fresh.keepSample(sampleAt(at));
    await fresh.keepTables('2026-05-01', [{ schema: 'public', table: 'a', bytes: 1, rows: 1 }]);
    expect(await fresh.thin('2026-05-31T23:30:00.000Z')).toBe(1);
    expect((await history.samples('2026-01-01T00:00:00.000Z')).map(({ at }) => at)).toEqual([times[0], times[2]]);
    expect((await fresh.tables('2026-05-01')).map(({ day }) => day)).toEqual(['2026-05-01']);
    await inDatabase('ALTER DATABASE cot RESET timezone');
  });

  it('says so while the database is away', async () => {
    const unavailable = keptDatabase(new Secret('postgres://nobody:nothing@127.0.0.1:1/x'), OPTIONS);
    const nowhere = growthHistoryTable(unavailable);
    const refusal = { code: 'unavailable', message: expect.stringContaining('Our own database does not answer') };
    await expect(nowhere.keepSample(sampleAt('2026-06-15T12:34:00.000Z'))).rejects.toMatchObject(refusal);
    await expect(nowhere.thin('2026-06-15T12:34:00.000Z')).rejects.toMatchObject(refusal);
    await expect(healthTrendTable(unavailable).keep(healthSample('2026-06-15T12:34:00.000Z'))).rejects.toMatchObject(
      refusal,
    );
  });
});
