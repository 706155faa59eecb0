// Finds versions of Holdfast: the current one, the newest of a source, and those in .upgrade/.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { StackError } from '@holdfast/kit/app-error';
import { compareVersions } from '@holdfast/kit/release';
import { UPGRADES, versionDirectory } from './journal.ts';

export interface Target {
  version: string;
  /** The oldest version that it upgrades from. */
  upgradesFrom: string;
  /** A directory, or a commit that the installation has. */
  source: string;
}

export interface TargetQuery {
  home: string;
  /** The version of --to; undefined: the newest. */
  to: string | undefined;
  /** The directory of --from; undefined: the tags of origin. */
  from: string | undefined;
}

const packageSchema = z.object({
  name: z.literal('holdfast'),
  version: z.string().regex(/^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/),
  holdfast: z.object({ upgradesFrom: z.string() }).optional(),
});
/** Every directory with numbered migrations. */
const MIGRATIONS = [
  'shared/runtime/migrations',
  'packages/core/store/migrations',
  'packages/identity/store/migrations',
] as const;
/** The operator's file, which every version keeps. */
const THRESHOLDS = 'monitor/config/thresholds.yml';
const GIT_WITHIN_MS = 120_000;

export function currentVersion(home: string): string {
  return parsePackage(readFileSync(join(home, 'package.json'), 'utf8'), home).version;
}

function parsePackage(text: string, place: string): Pick<Target, 'version' | 'upgradesFrom'> {
  try {
    const { version, holdfast } = packageSchema.parse(JSON.parse(text));
    return { version, upgradesFrom: holdfast?.upgradesFrom ?? version };
  } catch (error) {
    throw new StackError(
      `${place} is not a version of Holdfast: its package.json names none.`,
      'give the directory of a clone with --from DIRECTORY',
      error,
    );
  }
}

/** The version to upgrade to; undefined if the source has none. */
export function findTarget({ home, to, from }: TargetQuery): Target | undefined {
  if (from !== undefined && existsSync(join(from, 'package.json'))) {
    const found = { ...parsePackage(readFileSync(join(from, 'package.json'), 'utf8'), from), source: from };
    if (to === undefined || to === found.version) return found;
    throw new StackError(
      `${from} is version ${found.version}, not ${to}.`,
      'leave --to out, or give another directory',
    );
  }
  return taggedTarget({ home, to, from });
}

function taggedTarget({ home, to, from = 'origin' }: TargetQuery): Target | undefined {
  if (!existsSync(join(home, '.git')))
    throw new StackError(
      `${home} is not a git clone, so it can't be asked for newer versions.`,
      'give a directory with the newer version: --from DIRECTORY',
    );
  const versions = git(home, 'ls-remote', '--tags', '--refs', from, 'v*')
    .split('\n')
    .map((line) => /refs\/tags\/v(\S+)$/.exec(line)?.[1] ?? '')
    .filter((version) => compareVersions(version, '0') !== undefined)
    .toSorted((a, b) => compareVersions(a, b) ?? 0);
  const version = to ?? versions.findLast((each) => !each.includes('-'));
  if (version === undefined) return undefined;
  if (!versions.includes(version))
    throw new StackError(`${from} has no version ${version}.`, `choose one of: ${versions.join(', ') || '(none)'}`);
  git(home, 'fetch', '--quiet', '--no-tags', from, `+refs/tags/v${version}:refs/tags/v${version}`);
  const source = git(home, 'rev-parse', `refs/tags/v${version}^{commit}`).trim();
  const found = parsePackage(git(home, 'show', `${source}:package.json`), `tag v${version}`);
  if (found.version === version) return { ...found, source };
  throw new StackError(`Tag v${version} holds version ${found.version}.`, 'report it; the tag is wrong');
}

/** The output of git. Never asks for a password. */
export function git(home: string, ...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync('git', args, {
    cwd: home,
    encoding: 'utf8',
    timeout: GIT_WITHIN_MS,
    maxBuffer: 64 * 1024 ** 2,
    env: { ...process.env, GIT_TERMINAL_PROMPT: '0', GIT_SSH_COMMAND: 'ssh -o BatchMode=yes', LC_ALL: 'C' },
  });
  if (status === 0) return stdout;
  const complaint = stderr?.trim().split('\n').at(-1) || error?.message || 'no answer in time';
  throw new StackError(
    `git ${args[0]} failed: ${complaint}`,
    'check the network and the address of origin, or give a directory with the newer version: --from DIRECTORY',
  );
}

/** True once `fetch` has prepared it completely. */
export function isFetched(home: string, version: string): boolean {
  return existsSync(join(versionDirectory(home, version), '.entries'));
}

/** A fingerprint of all migrations: the same if both versions work on the same data. */
export function schemaOf(directory: string): string {
  const hash = createHash('sha256');
  for (const place of MIGRATIONS) {
    const path = join(directory, place);
    const files = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith('.sql')) : [];
    for (const name of files.toSorted()) hash.update(`${place}/${name}\0`).update(readFileSync(join(path, name)));
  }
  return hash.digest('hex');
}

/** Names in the new version that this directory has, but not as a part of the current version. */
export function conflictingNames(home: string, version: string): string[] {
  if (!existsSync(join(home, '.git'))) return [];
  const tracked = new Set(
    git(home, 'ls-files')
      .split('\n')
      .map((path) => path.split('/')[0]),
  );
  const entries = readFileSync(join(versionDirectory(home, version), '.entries'), 'utf8')
    .trim()
    .split('\n');
  return entries.filter(
    (name) => !tracked.has(name) && !['node_modules', 'dist'].includes(name) && existsSync(join(home, name)),
  );
}

/** Changed files of the current version. A version that came without git can't be compared. */
export function changedFiles(home: string, version: string): string[] {
  if (!existsSync(join(home, '.git'))) return [];
  const committed = parsePackage(git(home, 'show', 'HEAD:package.json'), home).version;
  if (committed !== version) return [];
  return git(home, 'status', '--porcelain', '--untracked-files=no', '--', '.', `:!${THRESHOLDS}`)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.slice(3));
}

/** Deletes all prepared versions but these. */
export function discardVersions(home: string, except: readonly string[]): void {
  for (const entry of readdirSync(join(home, UPGRADES), { withFileTypes: true })) {
    const name = entry.name.replace(/\.partial$/, '');
    if (!entry.isDirectory() || name === 'updater' || except.includes(name)) continue;
    rmSync(join(home, UPGRADES, entry.name), { recursive: true, force: true });
  }
}
