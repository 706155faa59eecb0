// The table of alerts in a real database, for the tests of one file.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { migrate } from '@holdfast/kit/migrate';
import { Secret } from '@holdfast/kit/secret';
import { type AlertTable, PostgresAlertTable } from '../../../shared/alerts/table.ts';
import { MIGRATIONS } from '../../../shared/runtime/migrations/index.ts';
import { eventually, query } from './embedded.ts';
import { emptyDatabase } from './empty-database.ts';

export interface AlertDatabase {
  /** A directory for journals. */
  place: string;
  /** The table, over connections of its own. */
  table: () => AlertTable;
  /** Of our own database. */
  stateUrl: () => string;
  inDatabase: <T extends object>(text: string) => Promise<T[]>;
}

/** Starts the database before the tests of the file and ends it afterwards. */
export function alertDatabase(): AlertDatabase {
  const { stateUrl } = emptyDatabase();
  const place = mkdtempSync(join(tmpdir(), 'holdfast-alerts-'));
  const options = { name: 'alerts-test', called: 'our own database', variable: 'DATABASE_URL' };
  beforeAll(async () => {
    await keptDatabase(new Secret(stateUrl()), options)((sql) => migrate(sql, MIGRATIONS));
  });
  afterAll(() => rmSync(place, { recursive: true, force: true }));
  return {
    place,
    table: () => methodsOf(new PostgresAlertTable(keptDatabase(new Secret(stateUrl()), options))),
    stateUrl,
    inDatabase: (text) => query(stateUrl(), text),
  };
}

/** Bound, so that a test can put others in the place of some. */
function methodsOf(table: AlertTable): AlertTable {
  const names = Object.getOwnPropertyNames(PostgresAlertTable.prototype) as (keyof AlertTable | 'constructor')[];
  return Object.fromEntries(
    names.filter((name) => name !== 'constructor').map((name) => [name, table[name].bind(table)]),
  ) as unknown as AlertTable;
}

/** Right after the start of the server, processes leave each other's alerts alone. */
export async function serverIsOld({ inDatabase }: AlertDatabase): Promise<void> {
  await eventually(
    'a new server is no longer spared',
    async () => {
      const [row] = await inDatabase<{ old: boolean }>(
        "SELECT pg_postmaster_start_time() < now() - interval '16 s' AS old",
      );
      return row?.old === true;
    },
    20_000,
  );
}
