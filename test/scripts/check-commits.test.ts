// Holds the check of commit subjects against made-up histories.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';

const SCRIPT = resolve(import.meta.dirname, '../../scripts/check-commits.sh');
const IDENTITY = {
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@example.org',
};

function checked(
  subjects: readonly string[],
  since?: string,
): { status: number | null; stderr: string; stdout: string } {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-commits-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const env = { ...process.env, ...IDENTITY };
  const git = (...args: string[]): string =>
    spawnSync('git', ['-c', 'commit.gpgsign=false', ...args], { cwd: directory, env, encoding: 'utf8' }).stdout.trim();
  git('init', '--quiet');
  git('commit', '--quiet', '--allow-empty', '-m', 'Old subjects may be anything.');
  const first = git('rev-parse', 'HEAD');
  for (const subject of subjects) git('commit', '--quiet', '--allow-empty', '-m', subject);
  const { status, stderr, stdout } = spawnSync(SCRIPT, {
    env: { ...env, HOLDFAST_COMMITS_OF: directory, HOLDFAST_COMMITS_SINCE: since ?? first },
    encoding: 'utf8',
  });
  return { status, stderr, stdout };
}

describe('the check of commit subjects', () => {
  it('accepts conventional subjects of at most 72 characters', () => {
    const longest = `fix(enrollment): ${'x'.repeat(72 - 'fix(enrollment): '.length)}`;
    expect(checked(['feat: add backups', 'refactor(kit)!: drop the queue', longest])).toMatchObject({
      status: 0,
      stderr: '',
    });
  });

  it.each([
    'add backups',
    'Feat: add backups',
    'feat: Add backups',
    'feat(A B): add',
    'wip: add',
    'feat: add backups.',
  ])('names the subject "%s"', (subject) => {
    const { status, stderr } = checked(['feat: add backups', subject]);
    expect([status, stderr.split('\n')[1]]).toEqual([
      1,
      expect.stringMatching(new RegExp(` ${subject.replace(/[()]/g, '\\$&')}$`)),
    ]);
  });

  it('names a subject of 73 characters', () => {
    const { status, stderr } = checked([`fix: ${'x'.repeat(68)}`]);
    expect([status, stderr]).toEqual([1, expect.stringContaining('more than 72 characters')]);
  });

  it('says that it checked nothing where the first commit is missing', () => {
    const { status, stdout } = checked(['nonsense'], 'f'.repeat(40));
    expect([status, stdout]).toEqual([0, expect.stringContaining('not checked')]);
  });
});
