// Writes a whole file or nothing: a crash leaves the old content or the new one, never a part.

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf, explainFileError, StackError } from './app-error.ts';

/**
 * Replaces the file at `path`; readable by its owner only unless `mode` says otherwise. Where
 * several processes write the same file, each needs a temporary of its own.
 */
export function writeFileAtomically(
  path: string,
  text: string | Uint8Array,
  mode = 0o600,
  temporary = `${path}.new`,
): void {
  try {
    rmSync(temporary, { force: true });
    const file = openSync(temporary, 'wx', mode);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    syncDirectory(dirname(path));
  } catch (error) {
    throw explainFileError(error, path);
  }
}

/** True when it was written: a file with this very text stays as it is. */
export function writeUnlessThere(path: string, text: string, mode: number): boolean {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return false;
  writeFileAtomically(path, text, mode);
  return true;
}

/** Makes a rename inside `directory` survive a power cut. */
export function syncDirectory(directory: string): void {
  const handle = openSync(directory, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * Files that are replaced as a whole: a reader, and a start after a crash, finds the old content or
 * the new one. Writes to `beside` and renames; readable by the owner only. The directory is made
 * when it is missing.
 */
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

/**
 * What lies there goes first: a link would lead elsewhere, and another's file would keep its mode.
 */
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

/**
 * Reads small files that others write: never more than a file of that kind may hold, and never
 * anything but an ordinary file. The certificates of a PEM file, in their order.
 */
export const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
export const LARGEST_CERTIFICATE_BYTES = 256 * 1024;

/**
 * Does not wait for a writer where a pipe lies in place of a file. `ownOnly`: no symbolic link
 * either.
 */
export async function readBounded(
  path: string,
  maxBytes: number,
  { ownOnly = false }: { ownOnly?: boolean } = {},
): Promise<Buffer<ArrayBuffer>> {
  const follow = ownOnly ? constants.O_NOFOLLOW : 0;
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | follow);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new FileProblem('is not a file');
    if (found.size > maxBytes) throw new FileProblem(`is larger than ${maxBytes} bytes`);
    const buffer = Buffer.alloc(Math.min(found.size, maxBytes));
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

/** Its message is a predicate whose subject is the file: `is missing`. */
export class FileProblem extends Error {}

/** A predicate whose subject is the file: `is missing`. */
export function fileProblemOf(error: unknown): string {
  if (error instanceof FileProblem) return error.message;
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'is missing';
  if (code !== undefined && /^E[A-Z]+$/.test(code)) return `cannot be read (${code})`;
  return 'cannot be understood: it is cut off, or not what its name says';
}

/**
 * The mounts of a Linux machine, of the text of /proc/self/mountinfo, and on which of them a path
 * lies.
 */
export interface Mount {
  point: string;
  /** The kernel's word for the file system: ext4, overlay. */
  type: string;
}

/** In the kernel's order: of two at one point the later one is seen. */
export function mountsIn(mountinfo: string): Mount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const point = line.split(' ')[4];
    const type = / - (\S+) /.exec(line)?.[1] ?? '';
    return point === undefined ? [] : [{ point: unescapeOctal(point), type }];
  });
}

/** The deepest mount point above an absolute, resolved path; undefined when none is known. */
export function mountPointOf(path: string, mounts: readonly Mount[]): string | undefined {
  return mounts
    .map(({ point }) => point)
    .filter((point) => path === point || path.startsWith(point === '/' ? point : `${point}/`))
    .toSorted((one, other) => other.length - one.length)[0];
}

/** The kernel writes a space in a mount point as `\040`. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** A file of random hex digits: made once, kept for good. */
export interface RandomFile {
  path: string;
  bytes: number;
  /** What to do when it holds something else. */
  remedy: string;
}

/**
 * The hex digits, lower case; the file is made when it is missing, for its owner alone. Throws a
 * StackError that names it.
 */
export function readOrMakeRandom({ path, bytes, remedy }: RandomFile): string {
  const kept = readIfThere(path)?.trim();
  if (kept === undefined) {
    const made = randomBytes(bytes).toString('hex');
    writeFileAtomically(path, `${made}\n`);
    return made;
  }
  if (kept.length === 2 * bytes && /^[0-9a-f]+$/.test(kept)) return kept;
  throw new StackError(`${path} does not hold ${2 * bytes} hex digits.`, remedy);
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw explainFileError(error, path);
  }
}
