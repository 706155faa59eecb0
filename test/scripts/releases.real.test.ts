// Which commits make which release, by the real semantic-release and in repositories made for it.

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const TOOLS = 'releasing';
const isInstalled = existsSync(join(root, TOOLS, 'node_modules/.holdfast-lock'));
const obstacle = isInstalled ? '' : 'the release tools are not installed: ./releasing/release.sh install';

interface Context {
  cwd: string;
  commits: { hash: string; message: string }[];
  lastRelease: { version?: string; gitHead?: string; gitTag?: string };
  nextRelease?: { version: string; gitTag: string };
  options: { repositoryUrl: string };
  logger: { log(): void };
}
interface Plugin {
  analyzeCommits(options: object, context: Context): Promise<string | null>;
  generateNotes(options: object, context: Context): Promise<string>;
}

const place = mkdtempSync(join(tmpdir(), 'holdfast-releases-'));
afterAll(() => rmSync(place, { recursive: true, force: true }));
const clone = join(place, 'clone');
const remote = join(place, 'remote.git');
const env = {
  PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
  HOME: place,
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@example.org',
};
const git = (...args: string[]): string => execFileSync('git', args, { cwd: clone, env, encoding: 'utf8' }).trim();

let commits = 0;
function commit(message: string, files: readonly string[]): void {
  for (const file of files) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    writeFileSync(join(clone, file), String(++commits));
  }
  git('add', '--all');
  git('commit', '--quiet', '--allow-empty', '--message', message);
}

/** Branches from the last release, written at once and never checked out. */
function branches(made: Record<string, Made[]>): void {
  const data = (text: string): string => `data ${Buffer.byteLength(text)}\n${text}\n`;
  const input = Object.entries(made).flatMap(([name, list]) =>
    list.map(([message, ...files], index) => {
      const from = index === 0 ? 'from refs/tags/v0.1.0^0\n' : '';
      const changes = files.map((file) => `M 100644 inline ${file}\n${data(String(++commits))}`);
      return `commit refs/heads/${name}\ncommitter a <a@example.org> 0 +0000\n${data(message)}${from}${changes.join('')}\n`;
    }),
  );
  execFileSync('git', ['fast-import', '--quiet'], { cwd: clone, env, input: input.join('') });
}
const stand = (branch: string): string => git('symbolic-ref', 'HEAD', `refs/heads/${branch}`);

/** What semantic-release hands to a plugin on the branch that is checked out. */
function context(): Context {
  const gitHead = git('rev-parse', 'v0.1.0');
  const listed = git('log', '--format=%H%x00%B%x00%x00', `${gitHead}..HEAD`);
  const found = listed
    .split('\0\0')
    .map((each) => each.trim().split('\0'))
    .filter(([hash]) => hash !== '');
  return {
    cwd: clone,
    commits: found.map(([hash = '', message = '']) => ({ hash, message: message.trim() })),
    lastRelease: { version: '0.1.0', gitHead, gitTag: 'v0.1.0' },
    options: { repositoryUrl: 'https://git.example.org/holdfast.git' },
    logger: { log: () => undefined },
  };
}

type Made = [message: string, ...files: string[]];
const SOURCE = 'shared/people/verbs.ts';
const BREAKING = 'feat(api): drop the old tokens\n\nBREAKING CHANGE: make new tokens';
const CASES: [release: string | null, commits: Made[]][] = [
  ['minor', [['feat(people): add groups', SOURCE]]],
  ['patch', [['fix(people): keep groups', SOURCE]]],
  ['patch', [['perf(people): load groups once', SOURCE]]],
  ['major', [['feat(people)!: rename groups', SOURCE]]],
  ['major', [[BREAKING, SOURCE]]],
  ['major', [['refactor(people)!: rename groups', SOURCE]]],
  [null, [['refactor(people): move groups', SOURCE]]],
  [null, [['chore: update libraries', 'package-lock.json']]],
  [null, [['docs(people): explain groups', 'docs/users.md', SOURCE]]],
  [null, [['feat(people): test groups', 'test/people/a.test.ts']]],
  [null, [['fix(docs): mend a link', 'docs/users.md', 'bench/run.ts', '.github/workflows/ci.yml']]],
  [null, [['fix(kit): mend a test', 'packages/kit/test/queue.test.ts']]],
  [null, [['feat(docs)!: rename a page', 'docs/users.md']]],
  // A file of the product beside them decides.
  ['patch', [['fix(people): keep groups', 'test/people/a.test.ts', SOURCE]]],
  ['minor', [['feat(testing): add a fake', 'packages/kit/testing.ts']]],
  // Every unreleased commit decides, whatever its place.
  [
    'minor',
    [
      ['feat(people): add groups', SOURCE],
      ['fix(people): keep groups', SOURCE],
      ['docs: wrap', 'docs/users.md'],
    ],
  ],
  [
    'patch',
    [
      ['feat(people): test groups', 'test/people/a.test.ts'],
      ['fix(people): keep groups', SOURCE],
    ],
  ],
  [
    'major',
    [
      ['fix(api)!: refuse old tokens', SOURCE],
      ['feat(people): add groups', SOURCE],
    ],
  ],
  // Without any file it asks for a release.
  ['patch', [['fix: release again']]],
];

const CHANGES: Made[] = [
  ['fix(people): keep groups', SOURCE],
  [BREAKING, SOURCE],
  ['feat(people): add groups', SOURCE],
  ['perf: start faster', SOURCE],
  ['fix(people): mend a test', 'test/people/a.test.ts'],
  ['refactor(people): move groups', SOURCE],
];

describe.skipIf(obstacle !== '')(obstacle === '' ? 'releases' : `releases: ${obstacle}`, () => {
  let plugin: Plugin;
  beforeAll(async () => {
    plugin = (await import(join(root, TOOLS, 'commits.mjs'))) as Plugin;
    mkdirSync(clone);
    git('init', '--quiet', '--initial-branch', 'main');
    for (const setting of ['commit.gpgsign false', 'core.fsync none', 'gc.auto 0'])
      git('config', ...setting.split(' '));
    cpSync(join(root, TOOLS), join(clone, TOOLS), {
      recursive: true,
      filter: (path) => !path.includes('node_modules'),
    });
    writeFileSync(join(clone, '.gitignore'), 'node_modules\n');
    commit('feat: begin', [SOURCE, 'docs/users.md']);
    git('tag', 'v0.1.0');
    branches({ changelog: CHANGES, ...Object.fromEntries(CASES.map(([, made], index) => [`case-${index}`, made])) });
    symlinkSync(join(root, TOOLS, 'node_modules'), join(clone, TOOLS, 'node_modules'));
  });

  it.each(CASES.map(([release, made], index) => [release, made, index] as const))(
    '%s: %j',
    async (release, _, index) => {
      stand(`case-${index}`);
      expect(await plugin.analyzeCommits({}, context())).toBe(release);
    },
  );

  it('names changes in the changelog by their feature, in words, and leaves out what is not shipped', async () => {
    stand('changelog');
    const nextRelease = { version: '1.0.0', gitTag: 'v1.0.0' };
    const notes = await plugin.generateNotes({}, { ...context(), nextRelease });
    expect(
      notes
        .replaceAll(/\([0-9a-f]{7}\)/g, '(HASH)')
        .replace(/\(\d{4}-\d\d-\d\d\)/, '(DATE)')
        .trim(),
    ).toBe(
      [
        '## 1.0.0 (DATE)\n',
        '### Breaking changes\n',
        '- API: make new tokens\n',
        '### Holdfast\n',
        '- Faster: start faster (HASH)\n',
        '### API\n',
        '- New: drop the old tokens (HASH)\n',
        '### People\n',
        '- New: add groups (HASH)',
        '- Fixed: keep groups (HASH)',
      ].join('\n'),
    );
  });

  it('refuses to choose the first version: that is for people to do', async () => {
    await expect(async () => plugin.analyzeCommits({}, { ...context(), lastRelease: {} })).rejects.toMatchObject({
      message: expect.stringContaining('no tag v*'),
      details: expect.stringContaining('docs/releases.md'),
    });
  });

  it('finds the next release of a clone, with nothing changed', () => {
    stand('main');
    commit('feat(people): add groups', [SOURCE]);
    commit('fix(people): mend a test', ['test/people/a.test.ts']);
    execFileSync('git', ['clone', '--quiet', '--bare', clone, remote], { env });
    const program = join(TOOLS, 'node_modules/semantic-release/bin/semantic-release.js');
    const options = ['--extends', `./${TOOLS}/release.config.mjs`, '--dry-run', '--no-ci'];
    const { status, stdout } = spawnSync(
      process.execPath,
      [program, ...options, '--repository-url', `file://${remote}`],
      { cwd: clone, env, encoding: 'utf8' },
    );
    expect(status).toBe(0);
    expect(stdout).toMatch(/The next release version is 0\.2\.0[^]*### People[^]*New: add groups/);
    expect(stdout).not.toContain('mend a test (');
    expect([git('tag'), git('status', '--porcelain')]).toEqual(['v0.1.0', '']);
  });
});

it('is written by hand in package.json alone: npm run generate and the tools read it there', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const named = spawnSync(
    'git',
    ['grep', '--fixed-strings', '--name-only', version, '--', '*.json', 'compose', 'docs'],
    {
      cwd: root,
      encoding: 'utf8',
    },
  ).stdout;
  // Versions of libraries, and the tag of the first release.
  const others = ['compose/flows/package-lock.json', 'releasing/package-lock.json', 'docs/releases.md'];
  expect(
    named
      .trim()
      .split('\n')
      .filter((file) => !others.includes(file)),
  ).toEqual(['compose/kubernetes/Chart.yaml', 'compose/program.yaml', 'package-lock.json', 'package.json']);
});
