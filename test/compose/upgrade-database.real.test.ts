// The script that upgrades the core's database to the PostgreSQL of a new release, with a `docker`
// that writes down how it was called. What the steps do: test/e2e/embedded/release-upgrade.test.ts.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { madeUpRelease } from '../../packages/setup/test/release-archive.ts';
import { ReleaseWorld } from '../../packages/setup/test/release-world.ts';

const OLD = '5.7-RELEASE-8';
const NEW = '5.8-RELEASE-69';
const STEP = 'compose run --rm --no-deps -T core-database database';

let archives: string;
let prepared: ReleaseWorld;
let printed: string;
let world: ReleaseWorld;

beforeAll(() => {
  archives = mkdtempSync(join(tmpdir(), 'holdfast-archives-'));
  prepared = new ReleaseWorld();
  prepared.run(madeUpRelease({ version: OLD, directory: archives }), '--address', 'cot.example.org');
  printed = prepared.run(madeUpRelease({ version: NEW, directory: archives })).stdout;
});
afterAll(() => {
  rmSync(archives, { recursive: true });
  prepared.remove();
});
beforeEach(() => {
  world = new ReleaseWorld();
  world.become(prepared);
});
afterEach(() => world.remove());

const steps = (): string[] =>
  readFileSync(world.log, 'utf8')
    .trimEnd()
    .split('\n')
    .filter((line) => /compose (?:stop|run)/.test(line));

describe('the upgrade of the database for a release', { timeout: 30_000 }, () => {
  it('is announced by the set-up, which names the versions and the command', () => {
    expect(printed).toContain(
      `TAK Server ${NEW} needs PostgreSQL 18; the database of this stack is PostgreSQL 15.\nUpgrade it before you start the stack:  ./scripts/upgrade-database.sh --from ${OLD}\n`,
    );
    expect(prepared.readEnv()).toContain(`CORE_RELEASE=${NEW}`);
  });

  it('exports with the old image and imports with the new one, while the core is stopped', () => {
    const { status, stdout } = world.upgradeDatabase('--from', OLD);
    expect([status, stdout]).toEqual([0, expect.stringContaining(`--back ${OLD}`)]);
    expect(steps()).toEqual([
      'compose stop core core-database',
      `CORE_RELEASE=${OLD} ${STEP} export`,
      `CORE_RELEASE=${NEW} ${STEP} import`,
    ]);
    // The old image gets the programs of this Holdfast.
    expect(world.request().some((line) => line.includes(`--tag localhost/holdfast-core-database:${OLD} `))).toBe(true);
  });

  it('ends with the first step that fails, and changes no setting', () => {
    const before = world.readEnv();
    world.docker({ failing: 'database export' });
    const { status, stderr } = world.upgradeDatabase('--from', OLD);
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining(`The step 'export' failed with TAK Server ${OLD}.\n  Remedy: `),
    ]);
    expect(steps().some((line) => line.endsWith('import'))).toBe(false);
    expect(world.readEnv()).toBe(before);
  });

  it('goes back: the cluster, the files of the release, and only then the setting', () => {
    const before = world.readEnv();
    world.docker({ failing: 'HOLDFAST_RELEASE_GOES_BACK' });
    expect(world.upgradeDatabase('--back', OLD).status).toBe(1);
    expect(world.readEnv()).toBe(before);
    rmSync(world.log);
    world.docker();
    expect(world.upgradeDatabase(`--back=${OLD}`)).toMatchObject({ status: 0, stderr: '' });
    expect(steps()).toEqual([
      'compose stop core core-database',
      `CORE_RELEASE=${OLD} ${STEP} back`,
      `CORE_RELEASE=${OLD} compose run --rm --no-deps -T -e HOLDFAST_RELEASE_GOES_BACK=yes release`,
    ]);
    expect(world.readEnv()).toBe(before.replace(`CORE_RELEASE=${NEW}`, `CORE_RELEASE=${OLD}`));
  });

  it('deletes the kept database when it is told to', () => {
    expect(world.upgradeDatabase('--forget').status).toBe(0);
    expect(steps()).toEqual([`CORE_RELEASE=${NEW} ${STEP} forget`]);
  });

  it.each([
    [[], 2, 'Usage: '],
    [['--from'], 2, '--from needs a release.'],
    [['--from', OLD, 'more'], 2, 'Usage: '],
    [['--from', NEW], 2, `The release in .env is ${NEW} itself.`],
    [['--from', '5.6-RELEASE-1'], 1, 'The release 5.6-RELEASE-1 in release/5.6-RELEASE-1 is incomplete.'],
  ])('refuses %j', (args, status, words) => {
    const before = world.readEnv();
    expect(world.upgradeDatabase(...args)).toMatchObject({ status, stderr: expect.stringContaining(words) });
    expect(world.readEnv()).toBe(before);
  });
});
