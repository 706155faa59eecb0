// The *.log files of one directory. A name is looked up in the listing and never used as a path.

import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../domain/app-error.ts';
import type { LogFiles } from '../ports/log-files.ts';

const CHUNK = 64 * 1024;
const MAX_TAIL_BYTES = 4 * 1024 * 1024;

const NO_DIRECTORY =
  'Logs are not shown here: LOG_DIR is not set. In containers the engine keeps them: docker compose logs --tail 100 NAME, and docker compose ps shows the names.';

/** Log files below `directory`; without a directory each question is refused with `not_supported`. */
export function logDirectory(directory: string | undefined): LogFiles {
  async function names(): Promise<string[]> {
    if (directory === undefined) throw new AppError('not_supported', NO_DIRECTORY);
    const entries = await readdir(directory, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && entry.name.endsWith('.log'))
      .map((entry) => entry.name.slice(0, -'.log'.length))
      .toSorted();
  }

  async function tail(name: string, lines: number): Promise<string[] | undefined> {
    const known = await names();
    if (directory === undefined || !known.includes(name)) return undefined;
    return lastLines(join(directory, `${name}.log`), lines);
  }

  return { names, tail };
}

async function lastLines(path: string, lines: number): Promise<string[]> {
  await using file = await open(path, 'r');
  let position = (await file.stat()).size;
  const chunks: Buffer[] = [];
  let breaks = 0;
  let bytes = 0;
  while (position > 0 && breaks <= lines && bytes < MAX_TAIL_BYTES) {
    const length = Math.min(CHUNK, position);
    position -= length;
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
    const chunk = buffer.subarray(0, bytesRead);
    chunks.unshift(chunk);
    bytes += bytesRead;
    for (const byte of chunk) if (byte === 0x0a) breaks++;
  }
  const all = Buffer.concat(chunks).toString('utf8').split('\n');
  if (all.at(-1) === '') all.pop();
  return all.slice(-lines);
}
