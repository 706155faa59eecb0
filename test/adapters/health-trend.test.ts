// The trend of health in a table that no job works on: the contract, the zone of the database, and the database away.

import { beforeAll, describe, expect, it } from 'vitest';
import { healthTrendTable } from '../../shared/adapters/health-trend-table.ts';
import { keptDatabase, type RunSql } from '../../shared/adapters/kept-database.ts';
import { MIGRATIONS } from '../../shared/adapters/migrations/index.ts';
import { Secret } from '../../shared/domain/secret.ts';
import { healthSample, healthTrendContract } from '../contract/health-trend.ts';
import { emptyDatabase } from '../stack/empty-database.ts';

const OPTIONS = { name: 'trend-test', called: 'our own database', variable: 'DATABASE_URL', withinMs: 20_000 };

const { url, inDatabase } = emptyDatabase();
let run: RunSql;
beforeAll(async () => {
  await inDatabase(MIGRATIONS.find(({ name }) => name === 'health-trend')?.sql ?? '');
  run = keptDatabase(new Secret(url()), OPTIONS);
});

healthTrendContract('in the database', async () => {
  await inDatabase('TRUNCATE health_sample');
  return healthTrendTable(run);
});

describe('the trend of health in the database', () => {
  it('says so while the database is away', async () => {
    const nowhere = healthTrendTable(keptDatabase(new Secret('postgres://nobody:nothing@127.0.0.1:1/x'), OPTIONS));
    const refusal = { code: 'unavailable', message: expect.stringContaining('Our own database does not answer') };
    await expect(nowhere.keep(healthSample('2026-06-15T12:34:00.000Z'))).rejects.toMatchObject(refusal);
    await expect(nowhere.read('2026-06-15T12:34:00.000Z')).rejects.toMatchObject(refusal);
  });
});
