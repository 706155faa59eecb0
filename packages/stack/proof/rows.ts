// Counts the rows of a restored database, and finds its newest event.

import type { VerifiedArchive } from '@holdfast/backup/manifest';
import { type DatabasePlace, isLeftOut } from '@holdfast/backup/tables';
import { grouped } from '@holdfast/kit/format';
import { withDatabase } from '@holdfast/kit/postgres';
import { HOUR_MS } from '@holdfast/kit/time';
import type { KnownEvent } from './serve.ts';

const COUNT_WITHIN_MS = HOUR_MS;

/** The archive failed a check: what it reached before counts. */
export class Failed extends Error {}

/** Counted by the database itself, after everything was loaded. */
export async function countRows(databases: readonly DatabasePlace[], { manifest }: VerifiedArchive): Promise<void> {
  for (const { key, url } of databases) {
    const archived = manifest.databases.find((each) => each.key === key);
    for (const { name, rows, omitted } of archived?.tables ?? []) {
      if (omitted || isLeftOut(key, name, true)) continue;
      const [row] = await withDatabase(
        url,
        'holdfast-proof',
        COUNT_WITHIN_MS,
        (sql) => sql<{ rows: number }[]>`SELECT count(*)::float8 AS rows FROM ${sql(name)}`,
      );
      if (row?.rows !== rows)
        throw new Failed(`The table ${name} has ${grouped(row?.rows ?? 0)} rows, and the archive ${grouped(rows)}.`);
    }
  }
}

export async function newestEvent(databases: readonly DatabasePlace[]): Promise<KnownEvent | undefined> {
  const core = databases.find(({ key }) => key === 'core');
  if (core === undefined) return undefined;
  return withDatabase(core.url, 'holdfast-proof', COUNT_WITHIN_MS, async (sql) => {
    const [newest] = await sql<KnownEvent[]>`SELECT id::text, uid FROM cot_router ORDER BY id DESC LIMIT 1`;
    return newest;
  });
}
