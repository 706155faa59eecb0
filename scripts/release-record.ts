// What is kept of an unpacked release: which archive it came from, and how much of it there is, so that it is not unpacked twice
// and never built from when a part is gone.

import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { codeOf } from '../shared/domain/thrown.ts';

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

/** The record of a release that is there with every file of its size; undefined when anything is missing or damaged. */
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
