// Files that are replaced as a whole: a reader, and a start after a crash, finds the old content or the new one.

import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from '../domain/thrown.ts';

/** Writes to `beside` and renames; readable by the owner only. The directory is made when it is missing. */
export async function replaceFile(file: string, text: string, beside = `${file}.new`): Promise<void> {
  await makeDirectory(dirname(file));
  try {
    await writeNew(beside, text);
    await rename(beside, file);
  } catch (error) {
    await rm(beside, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** What lies there goes first: a link would lead elsewhere, and another's file would keep its mode. */
async function writeNew(file: string, text: string): Promise<void> {
  await rm(file, { force: true });
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Only the last one: a recursive mkdir never returns where nothing can be made (below /proc). */
async function makeDirectory(path: string): Promise<void> {
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
}
