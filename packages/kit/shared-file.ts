// Replaces a file of the core as a whole and only when it is still as it was read; it keeps its
// owner and its mode.

import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { AppError, codeOf } from './app-error.ts';
import { FileProblem } from './files.ts';

export interface KeptFile {
  path: string;
  /** Its text when it was read; undefined when it was missing. */
  before: string | undefined;
  text: string;
  /** Of a new one; it gets the owner of the directory. */
  mode: number;
  directory: string;
}

/** Throws a FileProblem, and nothing changed, when it is not as it was read. */
export async function replaceKeptFile({ path, before, text, mode, directory }: KeptFile): Promise<void> {
  const temporary = temporaryOf(path, randomUUID());
  const like = before === undefined ? { ...(await ownerOf(directory)), mode } : await found(path);
  try {
    await using file = await open(temporary, 'wx', 0o600);
    await keepOwner(file, like);
    await file.chmod(like.mode & 0o777);
    await file.writeFile(text);
    await file.sync();
    if ((await currentText(path)) !== before) throw new FileProblem('was changed meanwhile');
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  await using folder = await open(directory, constants.O_RDONLY);
  await folder.sync();
}

/** Beside the file, hidden. */
export function temporaryOf(path: string, id: string): string {
  return join(dirname(path), `.new-${basename(path)}-${id}`);
}

async function found(path: string) {
  return lstat(path).catch((error: unknown) => {
    throw codeOf(error) === 'ENOENT' ? new FileProblem('was removed meanwhile') : error;
  });
}

async function ownerOf(directory: string): Promise<{ uid: number; gid: number }> {
  const { uid, gid } = await stat(directory);
  return { uid, gid };
}

/** Who may not give files away keeps them. */
async function keepOwner(file: FileHandle, { uid, gid }: { uid: number; gid: number }): Promise<void> {
  await file.chown(uid, gid).catch((error: unknown) => {
    if (codeOf(error) !== 'EPERM') throw error;
  });
}

async function currentText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, {
      encoding: 'utf8',
      flag: constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    });
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Longer than work under it takes: whoever has made it was killed, or has lost it. */
const STALE_MS = 10_000;
const LOOK_AGAIN_MS = 25;
const GIVE_UP_MS = 20_000;
const ID_LENGTH = 36;

/**
 * One writer at a time in a directory, by a file that only one can make. It works between
 * containers, where process ids say nothing. `unavailable` when others hold it all the time.
 */
export async function fileLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const until = performance.now() + GIVE_UP_MS;
  const id = randomUUID();
  while (!(await isMade(path, id))) {
    await removeStale(path);
    if (performance.now() > until)
      throw new AppError(
        'unavailable',
        `${path} is held by another process. Remedy: remove it when nothing else runs.`,
      );
    await pause(LOOK_AGAIN_MS);
  }
  try {
    return await work();
  } finally {
    await removeOf(path, id);
  }
}

async function isMade(path: string, id: string): Promise<boolean> {
  try {
    await writeFile(path, id, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return false;
  }
}

async function removeStale(path: string): Promise<void> {
  const id = await idIn(path);
  if (id !== undefined && (await isStale(path))) await removeOf(path, id);
}

/**
 * Removes it only while it is still that one: whoever does has said so in a file of its own, so no
 * two do, and none another's.
 */
async function removeOf(path: string, id: string): Promise<void> {
  const mark = `${path}.${encodeURIComponent(id)}`;
  if (!(await isMade(mark, ''))) {
    if (await isStale(mark)) await rm(mark, { force: true });
    return;
  }
  try {
    if ((await idIn(path)) === id) await rm(path, { force: true });
  } finally {
    await rm(mark, { force: true });
  }
}

async function idIn(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').then(
    (text) => text.slice(0, ID_LENGTH),
    () => undefined,
  );
}

async function isStale(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && Math.abs(Date.now() - found.mtimeMs) > STALE_MS;
}
