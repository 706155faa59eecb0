// The table of alerts in the database of a real stack, for the tests of one file.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { type AlertTable, alertTable } from '../../shared/adapters/alert-table.ts';
import { keptDatabase } from '../../shared/adapters/kept-database.ts';
import { Secret } from '../../shared/domain/secret.ts';
import { eventually, newStack, query, stop, type TestStack } from './embedded.ts';

export interface AlertDatabase {
  /** A directory for journals. */
  place: string;
  /** The table, over connections of its own. */
  table: () => AlertTable;
  /** Of our own database. */
  stateUrl: () => string;
  inDatabase: <T extends object>(text: string) => Promise<T[]>;
}

/** Starts a stack before the tests of the file and stops it afterwards. */
export function alertDatabase(): AlertDatabase {
  let stack: TestStack;
  const place = mkdtempSync(join(tmpdir(), 'holdfast-alerts-'));
  const options = { name: 'alerts-test', called: 'our own database', variable: 'DATABASE_URL' };
  beforeAll(async () => {
    stack = await newStack();
    expect((await stack.start()).code).toBe(0);
  });
  afterAll(async () => {
    await stop(stack.data);
    rmSync(place, { recursive: true, force: true });
  });
  return {
    place,
    table: () => alertTable(keptDatabase(new Secret(stack.file().state_database), options)),
    stateUrl: () => stack.file().state_database,
    inDatabase: <T extends object>(text: string) => query<T>(stack.file().state_database, text),
  };
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
