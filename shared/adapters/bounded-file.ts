// Reads small files that others write: never more than a file of that kind may hold, and never anything but an ordinary file.

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { codeOf } from '../domain/thrown.ts';

/** The certificates of a PEM file, in their order. */
export const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
export const LARGEST_CERTIFICATE_BYTES = 256 * 1024;

/** Does not wait for a writer where a pipe lies in place of a file. `ownOnly`: no symbolic link either. */
export async function readBounded(
  path: string,
  mostBytes: number,
  { ownOnly = false }: { ownOnly?: boolean } = {},
): Promise<Buffer<ArrayBuffer>> {
  const follow = ownOnly ? constants.O_NOFOLLOW : 0;
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | follow);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new FileProblem('is no file');
    if (found.size > mostBytes) throw new FileProblem(`is larger than ${mostBytes} bytes`);
    const buffer = Buffer.alloc(Math.min(found.size, mostBytes));
    let filled = 0;
    while (filled < buffer.length) {
      const { bytesRead } = await file.read(buffer, filled, buffer.length - filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  } finally {
    await file.close();
  }
}

/** Its message is a predicate whose subject is the file: `is no file`. */
export class FileProblem extends Error {}

/** A predicate whose subject is the file: `is missing`. */
export function fileProblemOf(error: unknown): string {
  if (error instanceof FileProblem) return error.message;
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'is missing';
  if (code !== undefined && /^E[A-Z]+$/.test(code)) return `cannot be read (${code})`;
  return 'cannot be understood: it is cut off, or not what its name says';
}
