// Writes a whole file or nothing: a crash leaves the old content or the new one, never a part.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { explainFileError } from './stack-error.ts';

/** Replaces the file at `path`; readable by its owner only unless `mode` says otherwise. */
export function writeFileAtomically(path: string, text: string | Uint8Array, mode = 0o600): void {
  const temporary = `${path}.new`;
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
