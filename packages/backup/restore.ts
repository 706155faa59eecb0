// Restores a verified archive: its files into directories, its rows into empty databases.

import { createHash } from 'node:crypto';
import { chmod, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { explainFileError } from '@holdfast/kit/app-error';
import { connect, type Sql } from '@holdfast/kit/postgres';
import { leaveRestoredNote } from '../../shared/backups/restored-note.ts';
import { entriesOf, type ReadArchive, type ReadEntry } from './archive.ts';
import { EntryCursor, loadDatabase } from './copy-in.ts';
import { damaged, type DatabaseKey, type Manifest, rowsOf, type VerifiedArchive } from './manifest.ts';
import type { DatabasePlace } from './tables.ts';
import { archiveName } from './target.ts';

export interface RestorePlace {
  /** Where the files of a part go; undefined leaves them out. Without it, only rows. */
  directoryOf?: (part: string) => string | undefined;
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
  /** False leaves the tables of history empty. Default: true. */
  history?: boolean | undefined;
  /** Of the archive's file, for the audit log. Default: as it was called when it was made. */
  name?: string | undefined;
  progress?: (phase: string) => void;
}

export type FilesOptions = Pick<RestoreOptions, 'archive' | 'verified' | 'name'> & {
  place: Pick<RestorePlace, 'directoryOf'>;
};

const FIXED = 'interrupted: the stack was restored from a backup';

/**
 * What the machine of the backup was doing must not go on here: its jobs may have been done since,
 * and its alerts sent.
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
  ],
};

/** Resolves with what was left out. The directories and databases must be new or empty. */
export async function restoreArchive(options: RestoreOptions): Promise<string[]> {
  const { archive, verified, place, history = true, progress = () => undefined } = options;
  const cursor = new EntryCursor(comparedEntries(archive, verified.manifest));
  const warnings: string[] = [];
  try {
    if (place.directoryOf !== undefined) progress('Restoring files');
    await copyFiles(cursor, place);
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
        warnings.push(...(await loadDatabase(sql, database, { archived, entries, cursor, progress, history })));
        await place.migrate(archived.key, sql);
        await sql.begin(async (tx) => {
          for (const statement of RESETS[archived.key]) await tx.unsafe(statement);
        });
      } finally {
        await sql.end({ timeout: 1 });
      }
    }
    for (let entry = await cursor.any(); entry !== undefined; entry = await cursor.any()) await drain(entry);
    await leaveNote(options);
  } finally {
    await cursor.close();
  }
  return warnings;
}

/** Only the files, which come first in an archive. */
export async function restoreFiles(options: FilesOptions): Promise<void> {
  const { archive, verified, place } = options;
  const cursor = new EntryCursor(comparedEntries(archive, verified.manifest));
  try {
    await copyFiles(cursor, place);
    await leaveNote(options);
  } finally {
    await cursor.close();
  }
}

async function copyFiles(cursor: EntryCursor, place: Pick<RestorePlace, 'directoryOf'>): Promise<void> {
  for (;;) {
    if (await cursor.isNextBelow('databases')) return;
    const entry = await cursor.any();
    if (entry === undefined) return;
    if (entry.name.startsWith('files/')) await restoreFile(entry, place);
    else await drain(entry);
  }
}

async function leaveNote({ verified: { header, manifest }, place, name }: FilesOptions): Promise<void> {
  const directory = place.directoryOf?.('management');
  if (directory === undefined) return;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await leaveRestoredNote(directory, {
    archive: name ?? archiveName(new Date(header.created_at)),
    made_at: header.created_at,
    release: header.release,
    history: header.history,
    rows: rowsOf(manifest),
    restored_at: new Date().toISOString(),
  });
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

async function restoreFile(entry: ReadEntry, { directoryOf }: FilesOptions['place']): Promise<void> {
  const [, part = '', path = ''] = /^files\/([^/]+)\/(.+)$/.exec(entry.name) ?? [];
  const directory = path === '' ? undefined : directoryOf?.(part);
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
