// The release before this one, for the tests of upgrades: its files, and how to build its programs.

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { home } from './embedded.ts';

/** Stands for the release before as long as there is no tag: the first commit whose upgrade.sh knows every stack. */
const FIRST_THAT_UPGRADES = 'd5306187833bf6b5bf434e4bfba9c21e1bc2904d';
const AS_TEST = ['-c', 'user.name=test', '-c', 'user.email=test@example.org'];

/** The newest release before this commit, or what stands for it; undefined if this clone holds neither. */
export function releaseBefore(): string | undefined {
  const output = (...args: string[]): string | undefined => {
    const { status, stdout } = spawnSync('git', args, { cwd: home, encoding: 'utf8' });
    return status === 0 ? stdout.trim() : undefined;
  };
  return (
    output('describe', '--tags', '--abbrev=0', '--match=v*', 'HEAD^') ??
    output('rev-parse', '--verify', '--quiet', `${FIRST_THAT_UPGRADES}^{commit}`)
  );
}

/** Puts the files of a commit into a new directory, or those of this checkout as it is. */
export function unpack(directory: string, commit: string | undefined): void {
  mkdirSync(directory);
  const list = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: home });
  const input =
    commit === undefined
      ? execFileSync('tar', ['-c', '-T', '-'], { cwd: home, input: list, maxBuffer: 1e9 })
      : execFileSync('git', ['archive', commit], { cwd: home, maxBuffer: 1e9 });
  execFileSync('tar', ['-x'], { cwd: directory, input });
}

/** The packages of today as those of the lock file: an upgrade concerns data and programs. */
export function takePackages(directory: string): void {
  execFileSync('cp', ['-al', join(home, 'node_modules'), directory]);
  rmSync(join(directory, 'node_modules/.holdfast-lock'), { force: true });
  cpSync(join(directory, 'package-lock.json'), join(directory, 'node_modules/.holdfast-lock'));
}

/** Runs git as somebody. */
export const git = (directory: string, ...args: string[]): string =>
  execFileSync('git', [...AS_TEST, ...args], { cwd: directory, encoding: 'utf8' });

/** Makes a repository of a directory, with everything in one commit. */
export function commitAll(directory: string, message: string): void {
  git(directory, 'init', '--quiet', '--initial-branch', 'main');
  git(directory, 'add', '--all');
  git(directory, 'commit', '--quiet', '-m', message);
}
