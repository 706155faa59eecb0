// Long work in the table: the contract, and what it says while the database is away.

import { beforeAll, describe, expect, it } from 'vitest';
import { keptDatabase, type RunSql } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { opsJobTable } from '../../shared/jobs/tables.ts';
import { MIGRATIONS } from '../../shared/runtime/migrations/index.ts';
import { emptyDatabase } from '../e2e/embedded/empty-database.ts';
import { opsJobsContract } from './ops-jobs-contract.ts';

const OPTIONS = { name: 'ops-jobs-test', called: 'our own database', variable: 'DATABASE_URL', withinMs: 20_000 };

const { url, inDatabase } = emptyDatabase();
let run: RunSql;
beforeAll(async () => {
  for (const { number, sql } of MIGRATIONS) if (number === 8 || number === 9) await inDatabase(sql);
  run = keptDatabase(new Secret(url()), OPTIONS);
});

opsJobsContract('in the database', async () => {
  await inDatabase('TRUNCATE ops_job');
  return opsJobTable(run);
});

describe('long work in the database', () => {
  it('says so while the database is away', async () => {
    const nowhere = keptDatabase(new Secret('postgres://nobody:nothing@127.0.0.1:1/nowhere'), OPTIONS);
    await expect(opsJobTable(nowhere).open()).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('Our own database does not answer'),
    });
  });
});
