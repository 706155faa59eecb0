// Lists the files of a release and their ownership: programs are replaced, the operator's files are
// never overwritten.

import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';

/** `program`: replaced. `edited`: replaced unless it was edited. `operator`: written once. */
export type Ownership = 'program' | 'edited' | 'operator';

const OPERATORS =
  /^(?:(?:conf\/)?CoreConfig\.xml|TAKIgniteConfig\.xml|UserAuthenticationFile\.xml|(?:certs\/files|conf\/retention|mission-archive|logs|admin-grants)\/.*)$/;
const EDITED = /^certs\/(?:cert-metadata\.sh|config\.cfg)$/;

export function ownershipOf(path: string): Ownership {
  if (OPERATORS.test(path)) return 'operator';
  return EDITED.test(path) ? 'edited' : 'program';
}

export interface TreeFile {
  /** Below the root of the tree, with `/`. */
  path: string;
  size: number;
  /** Whole seconds, which every file system supports. */
  mtimeSeconds: number;
  mode: number;
}

export interface Tree {
  files: TreeFile[];
  directories: string[];
}

/** Sorted files and directories. Ignores everything else. */
export function readTree(root: string): Tree {
  const files: TreeFile[] = [];
  const directories: string[] = [];
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = relative(root, join(entry.parentPath, entry.name));
    if (entry.isDirectory()) directories.push(path);
    else if (entry.isFile()) files.push(fileAt(root, path));
  }
  return { files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)), directories: directories.toSorted() };
}

function fileAt(root: string, path: string): TreeFile {
  const { size, mtimeMs, mode } = statSync(join(root, path));
  return { path, size, mtimeSeconds: Math.floor(mtimeMs / 1000), mode: modeOf(path, mode) };
}

/** Makes *.sh executable: an archive that was unpacked elsewhere may have lost the mode. */
function modeOf(path: string, mode: number): number {
  return (mode & 0o111) !== 0 || path.endsWith('.sh') ? 0o750 : 0o640;
}

const CHUNK_BYTES = 1024 * 1024;

/** SHA-256 as hex; undefined if the file doesn't exist. */
export function hashOf(path: string): string | undefined {
  let file: number;
  try {
    if (!statSync(path).isFile()) return undefined;
    file = openSync(path, 'r');
  } catch {
    return undefined;
  }
  try {
    const hash = createHash('sha256');
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let length = readSync(file, chunk); length > 0; length = readSync(file, chunk))
      hash.update(chunk.subarray(0, length));
    return hash.digest('hex');
  } finally {
    closeSync(file);
  }
}
