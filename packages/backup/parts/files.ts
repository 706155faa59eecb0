// Brings files of an archive back into the table `resource` of a running core. Files that are there
// stay as they are.

import type { AnySql, TransactionSql } from '@holdfast/kit/postgres';
import { formatBytes } from '@holdfast/kit/format';
import { takeGroups } from './groups.ts';
import { type Databases, freeId, insertRow, type PartChange, readRows } from './rows.ts';

export interface ArchivedFile {
  id: string;
  name: string;
  hash: string;
  bytes: number;
  submitter: string;
  submitted_at: Date | null;
}

/** As the core assembles an upload. */
const PIECE_BYTES = 1024 * 1024;

/** The newest of each hash, by name. */
export async function listFiles(from: AnySql): Promise<ArchivedFile[]> {
  return from<ArchivedFile[]>`
    SELECT r.id::text, coalesce(r.name, r.filename, '') AS name, r.hash, coalesce(octet_length(r.data), 0) AS bytes,
      coalesce(r.submitter, '') AS submitter, r.submissiontime AS submitted_at
    FROM resource r WHERE r.id IN (SELECT max(id) FROM resource WHERE hash IS NOT NULL GROUP BY hash)
    ORDER BY 2, r.id`;
}

/** `copyBytes`: false for a preview, which is rolled back. In the caller's transaction. */
export async function restoreFiles(
  databases: Databases,
  files: readonly ArchivedFile[],
  copyBytes: boolean,
): Promise<PartChange[]> {
  const changes: PartChange[] = [];
  for (const file of files) {
    const { isNew } = await restoreFile(databases, file, copyBytes);
    const target = `${file.name} (${file.hash.slice(0, 12)})`;
    changes.push(
      isNew
        ? { target, effect: 'new', detail: `${formatBytes(file.bytes)}, of ${file.submitter}` }
        : { target, effect: 'kept', detail: 'a file with the same content is there' },
    );
  }
  return changes;
}

/** Resolves with the id of the file in the running core. */
export async function restoreFile(
  databases: Databases,
  { id, hash, bytes }: Pick<ArchivedFile, 'id' | 'hash' | 'bytes'>,
  copyBytes: boolean,
): Promise<{ id: string; isNew: boolean }> {
  const { from, to } = databases;
  // Held until the end: nobody deletes the file meanwhile.
  const [there] = await to<{ id: string }[]>`
    SELECT id::text FROM resource WHERE hash = ${hash} ORDER BY id DESC LIMIT 1 FOR KEY SHARE`;
  if (there !== undefined) return { id: there.id, isNew: false };
  await takeGroups(databases, 'SELECT groups FROM resource WHERE id = $1::text::int', id);
  const [row] = await readRows(from, 'resource', 't.id = $1::text::int', id, ['data']);
  if (row === undefined) throw new Error(`file ${id} is gone from the scratch database`);
  const at = { table: 'resource', column: 'id', sequence: 'resource_id_seq' };
  const newId = await freeId(to, at, id);
  await insertRow(to, 'resource', row, { id: Number(newId) });
  if (copyBytes) await copyData({ from, to }, { id, bytes }, newId);
  return { id: newId, isNew: true };
}

async function copyData(
  { from, to }: { from: AnySql; to: TransactionSql },
  { id, bytes }: Pick<ArchivedFile, 'id' | 'bytes'>,
  newId: string,
): Promise<void> {
  await to`CREATE TEMPORARY TABLE IF NOT EXISTS part_piece (n int, data bytea) ON COMMIT DROP`;
  await to`TRUNCATE part_piece`;
  for (let at = 0; at < bytes; at += PIECE_BYTES) {
    const [piece] = await from<{ text: string }[]>`
      SELECT encode(substring(data FROM ${at + 1} FOR ${PIECE_BYTES}), 'base64') AS text
      FROM resource WHERE id = ${id}::text::int`;
    await to`INSERT INTO part_piece VALUES (${at}, decode(${piece?.text ?? ''}, 'base64'))`;
  }
  await to`
    UPDATE resource SET data = coalesce((SELECT string_agg(data, ''::bytea ORDER BY n) FROM part_piece), '')
    WHERE id = ${newId}::text::int`;
}
