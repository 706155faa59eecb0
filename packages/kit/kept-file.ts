// Replaces a file of the core as a whole and only when it is still as it was read; it keeps its owner and its mode.

import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf } from '@holdfast/kit/app-error';
import { FileProblem } from '@holdfast/kit/files';

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
