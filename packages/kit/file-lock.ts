// One writer at a time in a directory, by a file that only one can make. It works between containers, where process ids say nothing.

import { randomUUID } from 'node:crypto';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { AppError, codeOf } from './app-error.ts';

/** Longer than work under it takes: whoever has made it was killed, or has lost it. */
const STALE_MS = 10_000;
const LOOK_AGAIN_MS = 25;
const GIVE_UP_MS = 20_000;
const ID_LENGTH = 36;

/** `unavailable` when others hold it all the time. */
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

/** Removes it only while it is still that one: whoever does has said so in a file of its own, so no two do, and none another's. */
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
