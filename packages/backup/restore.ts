// Restores a verified archive: its files into directories, its rows into empty databases.

import { createHash } from 'node:crypto';
import { chmod, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { explainFileError } from '@holdfast/kit/app-error';
import { connect, type Sql } from '@holdfast/kit/postgres';
import { entriesOf, type ReadArchive, type ReadEntry } from './archive.ts';
import { EntryCursor, loadDatabase } from './copy-in.ts';
import { damaged, type DatabaseKey, type Manifest, type VerifiedArchive } from './manifest.ts';
import type { DatabasePlace } from './tables.ts';

export interface RestorePlace {
  /** Where the files of a part go; undefined leaves them out. */
  directoryOf: (part: string) => string | undefined;
  databases: readonly DatabasePlace[];
  /**
   * Brings the schema of an empty database to the migration of that number; without a number to
   * the last one.
   */
  migrate: (key: DatabaseKey, sql: Sql, number?: number) => Promise<void>;
}

export interface RestoreOptions {
  archive: ReadArchive;
  /** Of this very archive (verifyArchive). Entries are compared with it again. */
  verified: VerifiedArchive;
  place: RestorePlace;
  progress?: (phase: string) => void;
}

const FIXED = 'interrupted: the stack was restored from a backup';

/**
 * What the machine of the backup was doing must not go on here: its jobs may have been done since,
 * its alerts sent, its sessions ended.
 */
const RESETS: Readonly<Record<DatabaseKey, readonly string[]>> = {
  core: [],
  identity: [],
  state: [
    `UPDATE job_run SET finished_at = now(), error = '${FIXED}' WHERE finished_at IS NULL`,
    `UPDATE ops_job SET state = 'interrupted', finished_at = now(), error = '${FIXED}' WHERE state IN ('queued', 'running')`,
    `UPDATE retention_run SET state = 'interrupted', finished_at = now(), error = '${FIXED}' WHERE state = 'running'`,
    `UPDATE alert SET state = 'suppressed', reason = 'the stack was restored from a backup', runner = NULL, lease_until = NULL,
      next_attempt_at = NULL WHERE state = 'pending'`,
    'DELETE FROM session',
  ],
};

/** Resolves with what was left out. The directories and databases must be new or empty. */
export async function restoreArchive(options: RestoreOptions): Promise<string[]> {
  const { archive, verified, place, progress = () => undefined } = options;
  const cursor = new EntryCursor(comparedEntries(archive, verified.manifest));
  const warnings: string[] = [];
  try {
    progress('Restoring files');
    for (;;) {
      if (await cursor.isNextBelow('databases')) break;
      const entry = await cursor.any();
      if (entry === undefined) break;
      if (entry.name.startsWith('files/')) await restoreFile(entry, place);
      else await drain(entry);
    }
    for (const archived of verified.manifest.databases) {
      const database = place.databases.find(({ key }) => key === archived.key);
      if (database === undefined) {
        for (let entry = await cursor.below(`databases/${archived.key}`); entry !== undefined;) {
          await drain(entry);
          entry = await cursor.below(`databases/${archived.key}`);
        }
        warnings.push(`The database ${archived.key} was not restored: this stack has none`);
        continue;
      }
      const sql = connect(database.url, { name: 'holdfast-restore', max: 1, lasting: true });
      try {
        await place.migrate(archived.key, sql, verified.header.schemas[archived.key] ?? undefined);
        const { entries } = verified.manifest;
        warnings.push(...(await loadDatabase(sql, database, { archived, entries, cursor, progress })));
        await place.migrate(archived.key, sql);
        await sql.begin(async (tx) => {
          for (const statement of RESETS[archived.key]) await tx.unsafe(statement);
        });
      } finally {
        await sql.end({ timeout: 1 });
      }
    }
    for (let entry = await cursor.any(); entry !== undefined; entry = await cursor.any()) await drain(entry);
  } finally {
    await cursor.close();
  }
  return warnings;
}

/** The file may have changed since it was verified, or the disk reads it differently. */
async function* comparedEntries(archive: ReadArchive, { entries }: Manifest): AsyncGenerator<ReadEntry> {
  const expected = new Map(entries.map((entry) => [entry.name, entry]));
  for await (const entry of entriesOf(archive)) {
    const known = expected.get(entry.name);
    yield known === undefined ? entry : { ...entry, content: compared(entry, known.sha256) };
  }
}

async function* compared({ name, content }: ReadEntry, sha256: string): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  for await (const chunk of content) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest('hex') !== sha256) throw damaged(`${name} is not as it was written`);
}

async function restoreFile(entry: ReadEntry, { directoryOf }: RestorePlace): Promise<void> {
  const [, part = '', path = ''] = /^files\/([^/]+)\/(.+)$/.exec(entry.name) ?? [];
  const directory = path === '' ? undefined : directoryOf(part);
  if (directory === undefined) return drain(entry);
  const to = join(directory, path);
  try {
    if (entry.directory) {
      await mkdir(to, { recursive: true, mode: 0o700 });
      await chmod(to, entry.mode);
      return;
    }
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await using file = await open(to, 'wx', 0o600);
    for await (const chunk of entry.content) await file.writeFile(chunk);
    await file.chmod(entry.mode);
    await file.sync();
  } catch (error) {
    throw explainFileError(error, to);
  }
}

async function drain({ content }: ReadEntry): Promise<void> {
  for await (const chunk of content) void chunk;
}
