// The tables of the embedded core in the empty database of a real stack, for the tests of one file.

import postgres from 'postgres';
import { afterAll, beforeAll } from 'vitest';
import { migrate } from '@holdfast/kit/migrate';
import { type EmptyDatabase, emptyDatabase } from '../../../test/e2e/embedded/empty-database.ts';
import { type CuttingProxy, cuttingProxy } from '../../../test/support/cutting-proxy.ts';
import { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from '../store/migrations/index.ts';

export interface CoreTables extends EmptyDatabase {
  /** From the first test on. */
  readonly sql: postgres.Sql;
}

export interface CoreTablesBehindProxy extends CoreTables {
  /** In front of the database; `sql` does not go through it. */
  readonly proxy: CuttingProxy;
}

export function coreTables(): CoreTables {
  const database = emptyDatabase();
  let sql: postgres.Sql | undefined;
  beforeAll(async () => {
    sql = postgres(database.url(), { max: 5, fetch_types: false, onnotice: () => undefined });
    await migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED);
  });
  afterAll(() => sql?.end());
  return {
    ...database,
    get sql() {
      return started(sql);
    },
  };
}

export function coreTablesBehindProxy(): CoreTablesBehindProxy {
  const tables = coreTables();
  let proxy: CuttingProxy | undefined;
  beforeAll(async () => {
    proxy = await cuttingProxy(tables.url());
  });
  afterAll(() => proxy?.close());
  return {
    url: tables.url,
    stateUrl: tables.stateUrl,
    readerUrl: tables.readerUrl,
    crash: tables.crash,
    data: tables.data,
    inDatabase: tables.inDatabase,
    get sql() {
      return tables.sql;
    },
    get proxy() {
      return started(proxy);
    },
  };
}

function started<T>(what: T | undefined): T {
  if (what === undefined) throw new Error('not before the first test');
  return what;
}
