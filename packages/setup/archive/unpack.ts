// Unpacks a release into a staging directory, completely or not at all.

import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { codeOf } from '@holdfast/kit/app-error';
import type { ArchiveEntry, ReleaseArchive } from './archive.ts';

/**
 * Record of an unpacked release: prevents unpacking it twice, and building from an incomplete one.
 */
export const RECORD = '.holdfast-archive.json';

const recordSchema = z.strictObject({
  archive: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  version: z.string(),
  variant: z.enum(['docker', 'hardened']),
  coreDockerfile: z.string(),
  databaseDockerfile: z.string(),
  files: z.number().int(),
  bytes: z.number().int(),
});
export type ReleaseRecord = z.infer<typeof recordSchema>;

/**
 * The record of a release whose files are all present; undefined if any is missing or has another
 * size.
 */
export function completeRelease(directory: string): ReleaseRecord | undefined {
  try {
    const record = recordSchema.parse(JSON.parse(readFileSync(join(directory, RECORD), 'utf8')));
    const { files, bytes } = measure(directory);
    return files === record.files && bytes === record.bytes ? record : undefined;
  } catch (error) {
    if (error instanceof z.ZodError || error instanceof SyntaxError || codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function measure(directory: string): { files: number; bytes: number } {
  const sizes = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name !== RECORD)
    .map((name) => lstatSync(join(directory, name)))
    .filter((status) => !status.isDirectory())
    .map(({ size }) => size);
  return { files: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

/** Prefix of staging directories. Leftovers of an interrupted setup are removed by the next one. */
export const STAGING = '.new-';
/** Readable for every container user. */
const READABLE = 0o644;
const RUNNABLE = 0o755;

/**
 * Resolves with the path of the new directory. `onProgress` gets the number of bytes written so
 * far.
 */
export async function unpackRelease(
  archive: ReleaseArchive,
  top: string,
  record: Omit<ReleaseRecord, 'files' | 'bytes'>,
  releases: string,
  onProgress: (bytes: number) => void,
): Promise<string> {
  await mkdir(releases, { recursive: true });
  const staging = await mkdtemp(join(resolve(releases), STAGING));
  try {
    await chmod(staging, RUNNABLE);
    const directories = new Set([staging]);
    let bytes = 0;
    for (const entry of archive.entries) {
      const path = resolve(staging, entry.name.slice(top.length + 1));
      await makeDirectories(entry.isDirectory ? path : dirname(path), directories);
      if (entry.isDirectory) continue;
      await writeEntry(archive, entry, path, (chunk) => {
        bytes += chunk;
        onProgress(bytes);
      });
    }
    const files = archive.entries.filter(({ isDirectory }) => !isDirectory).length;
    const whole: ReleaseRecord = { ...record, files, bytes };
    // Last: a record means that everything is there.
    await writeFile(join(staging, RECORD), `${JSON.stringify(whole, undefined, 2)}\n`, { flush: true, flag: 'wx' });
    for (const directory of directories) await flush(directory);
    return staging;
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    throw error;
  }
}

async function makeDirectories(path: string, known: Set<string>): Promise<void> {
  if (known.has(path)) return;
  await makeDirectories(dirname(path), known);
  await mkdir(path);
  // Whatever the umask is.
  await chmod(path, RUNNABLE);
  known.add(path);
}

async function writeEntry(
  archive: ReleaseArchive,
  entry: ArchiveEntry,
  path: string,
  onChunk: (bytes: number) => void,
): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.chmod(entry.isExecutable ? RUNNABLE : READABLE);
    const counted = async function* (): AsyncGenerator<Buffer> {
      for await (const chunk of archive.contents(entry)) {
        yield chunk;
        onChunk(chunk.length);
      }
    };
    await pipeline(Readable.from(counted(), { objectMode: false }), file.createWriteStream({ flush: true }));
  } finally {
    await file.close();
  }
}

async function flush(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
