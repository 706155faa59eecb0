// Copies the files of a release to the volume of the core. Writes new files to a staging directory,
// then renames them, the manifest last. A full disk leaves the old release unchanged; the next run
// repairs a crash.

import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { codeOf, StackError } from '@holdfast/kit/app-error';
import { syncDirectory, writeFileAtomically } from '@holdfast/kit/files';
import { compareReleases } from '../archive/version.ts';
import { hashOf, ownershipOf, readTree, type Tree, type TreeFile } from './tree.ts';

/** In the root of the volume. */
export const RELEASE_MANIFEST = '.holdfast-release.json';
/** Beside the tree in the image, as unpack.ts wrote it. */
const ARCHIVE_RECORD = 'archive.json';
/** Exists during the copy, and after a crash until the next run. */
const STAGING = '.holdfast-release.new';
const MANIFEST_MODE = 0o640;
const DIRECTORY_MODE = 0o750;
/** Free space that is kept for logs and growth. */
const SPARE_BYTES = 256 * 1024 ** 2;

const archiveSchema = z.object({ archive: z.string(), sha256: z.string() });
const manifestSchema = z.object({
  release: z.string(),
  /** The downloaded archive, if that is known. */
  archive: archiveSchema.optional(),
  files: z.record(z.string(), z.string()),
});
/** `files`: SHA-256 by path, of the release's original files. */
export type ReleaseManifest = z.infer<typeof manifestSchema>;

export interface ReleaseSource {
  /** The tree of the release (`tak/`). */
  from: string;
  /** The volume. */
  to: string;
  /** `5.7-RELEASE-8` */
  release: string;
  /** The release may be older than that of the volume: its database has gone back, too. */
  goesBack?: boolean | undefined;
}

export interface Brought {
  /** Undefined if there was none. */
  before: string | undefined;
  written: string[];
  removed: string[];
  /** Edited files, under their new names. */
  keptAside: string[];
}

/**
 * Throws a StackError if the volume has a newer release or too little space. Nothing is changed
 * then.
 */
export function bringReleaseFiles(source: ReleaseSource): Brought {
  try {
    return bring(source);
  } catch (error) {
    throw explained(error, source.to);
  }
}

function bring({ from, to, release, goesBack = false }: ReleaseSource): Brought {
  const known = readManifest(to);
  if (!goesBack && known !== undefined && compareReleases(release, known.release) < 0)
    throw olderThanVolume(to, release, known);
  const staging = join(to, STAGING);
  const isTrusted = known?.release === release && !existsSync(staging);
  rmSync(staging, { recursive: true, force: true });
  const tree = readTree(from);
  const plan = planOf(tree, { from, to, known, isTrusted });
  const archive = archiveOf(join(dirname(from), ARCHIVE_RECORD));
  const manifest: ReleaseManifest = { release, ...(archive === undefined ? {} : { archive }), files: plan.files };
  const isSame = JSON.stringify(known) === JSON.stringify(manifest);
  const directories = tree.directories.filter((path) => !existsSync(join(to, path)));
  const brought: Brought = { before: known?.release, written: plan.write.map(({ path }) => path), ...NOTHING() };
  if (isSame && plan.write.length + plan.remove.length + directories.length === 0) return brought;
  mustHaveRoom(to, plan.write);
  mkdirSync(staging, { mode: DIRECTORY_MODE });
  stage(plan.write, from, staging);
  for (const path of directories) mkdirSync(join(to, path), { recursive: true, mode: DIRECTORY_MODE });
  brought.keptAside = putInPlace(plan, { to, staging, release });
  brought.removed = removeOld(plan.remove, to);
  if (!isSame) writeFileAtomically(join(to, RELEASE_MANIFEST), `${JSON.stringify(manifest, null, 1)}\n`, MANIFEST_MODE);
  rmSync(staging, { recursive: true, force: true });
  return brought;
}

const NOTHING = (): Pick<Brought, 'removed' | 'keptAside'> => ({ removed: [], keptAside: [] });

interface Plan {
  write: TreeFile[];
  /** Edited files among those to write; kept under another name. */
  aside: Set<string>;
  remove: string[];
  files: Record<string, string>;
}

interface Known {
  from: string;
  to: string;
  known: ReleaseManifest | undefined;
  /** The last run completed for the same release: size and time are enough to compare files. */
  isTrusted: boolean;
}

function planOf(tree: Tree, { from, to, known, isTrusted }: Known): Plan {
  const plan: Plan = { write: [], aside: new Set(), remove: [], files: {} };
  for (const file of tree.files) {
    const ownership = ownershipOf(file.path);
    const target = join(to, file.path);
    if (ownership === 'operator') {
      if (!existsSync(target)) plan.write.push(file);
      continue;
    }
    const before = known?.files[file.path];
    if (isTrusted && before !== undefined && looksLike(target, file)) {
      plan.files[file.path] = before;
      continue;
    }
    const wanted = hashOf(join(from, file.path)) ?? '';
    plan.files[file.path] = wanted;
    const found = hashOf(target);
    if (found === wanted) continue;
    const isEdited = found !== undefined && found !== before;
    if (isEdited && ownership === 'edited') continue;
    plan.write.push(file);
    if (isEdited) plan.aside.add(file.path);
  }
  plan.remove = Object.entries(known?.files ?? {})
    .filter(([path, hash]) => plan.files[path] === undefined && hashOf(join(to, path)) === hash)
    .map(([path]) => path);
  return plan;
}

function looksLike(target: string, file: TreeFile): boolean {
  const found = statSync(target, { throwIfNoEntry: false });
  return found?.isFile() === true && found.size === file.size && found.mtimeMs === file.mtimeSeconds * 1000;
}

/** Writes all files completely to disk before the first one is put in place. */
function stage(files: readonly TreeFile[], from: string, staging: string): void {
  for (const [at, file] of files.entries()) {
    const staged = join(staging, String(at));
    copyFileSync(join(from, file.path), staged);
    chmodSync(staged, 0o600);
    const handle = openSync(staged, 'r+');
    try {
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    chmodSync(staged, file.mode);
    utimesSync(staged, file.mtimeSeconds, file.mtimeSeconds);
  }
  syncDirectory(staging);
}

function putInPlace(
  { write, aside }: Plan,
  { to, staging, release }: { to: string; staging: string; release: string },
): string[] {
  const kept: string[] = [];
  const directories = new Set<string>();
  for (const [at, { path }] of write.entries()) {
    const target = join(to, path);
    mkdirSync(dirname(target), { recursive: true, mode: DIRECTORY_MODE });
    if (aside.has(path)) kept.push(keepAside(to, path, release));
    renameSync(join(staging, String(at)), target);
    directories.add(dirname(target));
  }
  for (const directory of directories) syncDirectory(directory);
  return kept;
}

/**
 * Adds a second name, so that the file is never missing. Reuses a name with the same content from a
 * crash.
 */
function keepAside(to: string, path: string, release: string): string {
  const source = join(to, path);
  const hash = hashOf(source);
  for (let number = 1; ; number++) {
    const name = `${path}.before-${release}${number === 1 ? '' : `.${number}`}`;
    const found = hashOf(join(to, name));
    if (found === hash) return name;
    if (existsSync(join(to, name))) continue;
    linkSync(source, join(to, name));
    return name;
  }
}

function removeOld(paths: readonly string[], to: string): string[] {
  for (const path of paths) {
    rmSync(join(to, path), { force: true });
    removeWhenEmpty(to, dirname(path));
  }
  return [...paths];
}

function removeWhenEmpty(to: string, directory: string): void {
  if (directory === '.') return;
  try {
    rmdirSync(join(to, directory));
  } catch (error) {
    if (codeOf(error) === 'ENOTEMPTY' || codeOf(error) === 'ENOENT') return;
    throw error;
  }
  removeWhenEmpty(to, dirname(directory));
}

/** The manifest of the volume; undefined if it is empty. Throws a StackError if it is damaged. */
export function readManifest(to: string): ReleaseManifest | undefined {
  const path = join(to, RELEASE_MANIFEST);
  if (!existsSync(path)) return undefined;
  try {
    return manifestSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    throw new StackError(
      `${path} is damaged, so the release on the volume is unknown.`,
      'delete that file: the release is then copied again, and edited files are kept under another name',
      error,
    );
  }
}

/** Undefined in images of older releases of Holdfast. */
function archiveOf(record: string): ReleaseManifest['archive'] {
  return existsSync(record) ? archiveSchema.parse(JSON.parse(readFileSync(record, 'utf8'))) : undefined;
}

function mustHaveRoom(to: string, files: readonly TreeFile[]): void {
  const needed = files.reduce((sum, { size }) => sum + size, 0);
  if (needed === 0) return;
  const { bavail, bsize } = statfsSync(to);
  const free = bavail * bsize;
  if (free < needed + SPARE_BYTES)
    throw noRoom(to, `${megabytes(needed + SPARE_BYTES)} needed, ${megabytes(free)} free`);
}

function explained(error: unknown, to: string): unknown {
  const code = codeOf(error) ?? '';
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    rmSync(join(to, STAGING), { recursive: true, force: true });
    return noRoom(to, 'it filled up during the copy', error);
  }
  if (!['EACCES', 'EPERM', 'EROFS'].includes(code) || error instanceof StackError) return error;
  const account = `${process.getuid?.()}:${process.getgid?.()}`;
  return new StackError(
    `${account} couldn't write to ${to}: ${String(error)}.`,
    `mount the volume writable, and make that user the owner of everything in it: chown -R ${account}`,
    error,
  );
}

function noRoom(to: string, how: string, cause?: unknown): StackError {
  return new StackError(
    `The disk of ${to} is too small for the release: ${how}. The old release is unchanged.`,
    'free some space (docker system df), then start again',
    cause,
  );
}

function olderThanVolume(to: string, release: string, known: ReleaseManifest): StackError {
  return new StackError(
    `${to} contains the newer release ${known.release}. The older ${release} may not be able to read its database.`,
    `set CORE_RELEASE=${known.release} again. To go back, run ./scripts/upgrade-database.sh --back ${release}, or restore a backup of the volumes from before the upgrade`,
  );
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 ** 2)} MiB`;
}
