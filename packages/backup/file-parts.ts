// Copies the files of a stack into an archive, while its programs go on writing them.

import type { Dirent } from 'node:fs';
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import type { ArchiveWriter } from './archive.ts';
import type { Manifest } from './manifest.ts';

/** Files of one kind, below `files/<part>/` in the archive. */
export interface FilePart {
  part: string;
  /** Copied with everything below it, except links, sockets and what `exclude` names. */
  directory?: string;
  /** `path` is relative to the directory. */
  exclude?: (path: string) => boolean;
  /** Single files; a missing one is left out. */
  files?: readonly { name: string; path: string }[];
}

/** Smaller files are read at once: replacing one changes nothing about what was opened. */
const WHOLE_BYTES = 8 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;

/** Bytes of all files, before they are copied. */
export async function sizeOfParts(parts: readonly FilePart[]): Promise<number> {
  let bytes = 0;
  for (const part of parts)
    for await (const { path, directory } of filesOf(part))
      if (!directory) bytes += (await stat(path).catch(() => undefined))?.size ?? 0;
  return bytes;
}

export async function copyPart(
  part: FilePart,
  writer: ArchiveWriter,
  progress: (bytes: number) => void,
): Promise<Manifest['files'][number]> {
  let [files, bytes] = [0, 0];
  for await (const { name, path, directory } of filesOf(part)) {
    const entry = `files/${part.part}/${name}`;
    if (directory) {
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined) await writer.addDirectory(entry, found.mode & 0o777);
      continue;
    }
    const copied = await copyFile(path, entry, writer);
    if (copied === undefined) continue;
    files++;
    bytes += copied;
    progress(copied);
  }
  return { part: part.part, files, bytes };
}

interface FoundFile {
  /** In the archive, below its part. */
  name: string;
  path: string;
  directory: boolean;
}

async function* filesOf({ directory, exclude = () => false, files = [] }: FilePart): AsyncGenerator<FoundFile> {
  for (const { name, path } of files) yield { name, path, directory: false };
  if (directory !== undefined) yield* below(directory, '', exclude);
}

async function* below(root: string, at: string, exclude: (path: string) => boolean): AsyncGenerator<FoundFile> {
  for (const entry of await entriesIn(join(root, at))) {
    const name = at === '' ? entry.name : `${at}/${entry.name}`;
    if (exclude(name)) continue;
    const path = join(root, name);
    if (entry.isFile()) yield { name, path, directory: false };
    if (!entry.isDirectory()) continue;
    yield { name, path, directory: true };
    yield* below(root, name, exclude);
  }
}

/** In a fixed order. Removed meanwhile: none. */
async function entriesIn(directory: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw explainFileError(error, directory);
  }
}

/** Resolves with its size; undefined if it is gone, or is not an ordinary file. */
async function copyFile(path: string, entry: string, writer: ArchiveWriter): Promise<number | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW).catch(
    (error: unknown) => {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ELOOP') return undefined;
      throw explainFileError(error, path);
    },
  );
  if (file === undefined) return undefined;
  try {
    const found = await file.stat();
    if (!found.isFile()) return undefined;
    const mode = found.mode & 0o777;
    if (found.size > WHOLE_BYTES) {
      await writer.addStream(entry, { bytes: found.size, mode, chunks: chunksOf(file, found.size, path) });
      return found.size;
    }
    const content = await file.readFile();
    await writer.add(entry, content, mode);
    return content.length;
  } finally {
    await file.close();
  }
}

/** So many bytes; what is appended meanwhile is not part of it. */
async function* chunksOf(file: FileHandle, bytes: number, path: string): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes;) {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, bytes - at));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) throw new StackError(`${path} became shorter while it was copied.`, 'run the backup again');
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
