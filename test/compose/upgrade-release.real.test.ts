// The upgrade of a TAK Server release by upgrade.sh, with a `docker` that keeps volumes and the
// record of health as files, and a start.sh that says whether a release works. With real containers:
// test/e2e/containers/production.test.ts.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { madeUpRelease } from '../../packages/setup/test/release-archive.ts';
import { ReleaseWorld } from '../../packages/setup/test/release-world.ts';
import { type Ended, UpgradeWorld } from './upgrade-world.ts';

const OLD = '5.7-RELEASE-8';
const NEXT = '5.7-RELEASE-9';
const NEWER = '5.8-RELEASE-69';

let archives: string;
let prepared: ReleaseWorld;
let world: ReleaseWorld;
let stack: UpgradeWorld;

/** A release writes into the volumes when it starts, whether it works or not. */
const START = String.raw`#!/bin/bash
cd "$(dirname "$0")/.."
release=$(sed -n 's/^CORE_RELEASE=//p' .env)
echo "$release" >>volumes/holdfast_core-data
if grep -qxF "$release" broken 2>/dev/null; then printf "Couldn't start the stack: core failed.\n  Remedy: read its log\n" >&2; exit 1; fi
`;

beforeAll(() => {
  archives = mkdtempSync(join(tmpdir(), 'holdfast-archives-'));
  prepared = new ReleaseWorld();
  prepared.run(archiveOf(OLD), '--address', 'cot.example.org');
});
afterAll(() => {
  rmSync(archives, { recursive: true });
  prepared.remove();
});
beforeEach(() => {
  world = new ReleaseWorld();
  world.become(prepared);
  stack = new UpgradeWorld(world.path, world.programs, OLD);
  writeFileSync(join(world.path, 'scripts/start.sh'), START, { mode: 0o755 });
  writeFileSync(join(world.path, 'package.json'), '{\n  "version": "0.1.0"\n}\n');
  writeFileSync(join(world.path, 'compose/program.yaml'), 'image: localhost/holdfast:0.1.0\n');
  // The installed programs are older than the files that were written now.
  writeFileSync(join(world.path, 'dist/.built'), '');
});
afterEach(() => world.remove());

function archiveOf(version: string): string {
  return madeUpRelease({ version, directory: archives });
}

const run = (...args: string[]): Ended => stack.run(...args);
const upgrade = (...args: string[]): Ended => stack.upgrade(...args);
const file = (name: string): string => stack.read(name);
const release = (): string => /^CORE_RELEASE=(.*)$/m.exec(world.readEnv())?.[1] ?? '';
const data = (): string[] => stack.data();
const copies = (): boolean => stack.hasCopies(NEXT);
const calls = (word: string): string[] => stack.calls(word);
const isOpen = (): boolean => stack.isOpen();

describe('upgrade.sh --archive', { timeout: 60_000 }, () => {
  it('says what a release does to the database, and changes nothing', () => {
    const before = world.tree();
    expect(upgrade('check', '--archive', archiveOf(NEXT))).toMatchObject({
      status: 10,
      output: expect.stringMatching(
        /TAK Server 5\.7-RELEASE-9 is available[^]*ok +version .*uses the database as it is/,
      ),
    });
    expect(upgrade('check', '--archive', archiveOf(NEWER)).output).toContain('needs PostgreSQL 18; apply upgrades');
    expect(upgrade('check', '--archive', archiveOf(OLD))).toMatchObject({
      status: 0,
      output: expect.stringContaining(`TAK Server ${OLD} is up to date`),
    });
    expect(upgrade('apply', '--archive', archiveOf('5.6-RELEASE-6'))).toMatchObject({
      status: 1,
      output: expect.stringContaining("The database can't be downgraded."),
    });
    expect(world.tree()).toEqual(before);
  });

  it('runs the new release, and returns to the old one with the current data', () => {
    expect(upgrade('apply', '--archive', archiveOf(NEXT))).toMatchObject({ status: 0 });
    expect([release(), data(), copies(), isOpen()]).toEqual([NEXT, [OLD, NEXT], true, false]);
    expect(upgrade('back')).toMatchObject({
      status: 0,
      output: expect.stringContaining(`TAK Server ${OLD} runs and passed`),
    });
    expect([release(), data(), copies()]).toEqual([OLD, [OLD, NEXT, OLD], false]);
    // The files of the older release replace those of the newer one.
    expect(calls('HOLDFAST_RELEASE_GOES_BACK=yes release')).toHaveLength(1);
    expect(upgrade('back')).toMatchObject({ status: 3 });
  });

  it('goes back by itself with all volumes when the new release does not work, and says so in health', () => {
    writeFileSync(join(world.path, 'broken'), `${NEXT}\n`);
    expect(upgrade('apply', '--archive', archiveOf(NEXT))).toMatchObject({
      status: 4,
      output: expect.stringContaining(`TAK Server ${OLD} runs and passed the connection check`),
    });
    expect([release(), data(), copies(), isOpen()]).toEqual([OLD, [OLD, OLD], false, false]);
    expect(file('record')).toBe(
      `returned: TAK Server ${OLD} to TAK Server ${NEXT} (TAK Server ${NEXT} does not work: Couldn't start the stack: core failed)\n`,
    );
  });

  it('upgrades the database for another PostgreSQL, and then needs the copies to go back', () => {
    expect(upgrade('apply', '--archive', archiveOf(NEWER))).toMatchObject({ status: 0 });
    expect(calls('core-database database').map((line) => line.split(' ').at(-1))).toEqual(['export', 'import']);
    expect(upgrade('back')).toMatchObject({ status: 3, output: expect.stringContaining('--to-snapshot') });
    expect([release(), data()]).toEqual([NEWER, [OLD, NEWER]]);
    expect(upgrade('back', '--to-snapshot')).toMatchObject({ status: 0 });
    expect([release(), data()]).toEqual([OLD, [OLD, OLD]]);
  });

  it('and a backup by backup.sh never run at the same time', () => {
    const besides = (lock: string, name: string, ...args: string[]): Ended =>
      run('flock', '--shared', join(world.path, lock), join(world.path, 'scripts', name), ...args);
    expect(besides('scripts/backup.sh', 'upgrade.sh', 'apply', '--archive', archiveOf(NEXT))).toMatchObject({
      status: 11,
      output: expect.stringMatching(/failed +work +running: \.\/scripts\/backup\.sh[^]*Nothing was changed/),
    });
    expect(besides('.upgrade/lock', 'backup.sh', '--output', 'x').output).toContain('No key given');
    expect(run('flock', join(world.path, '.upgrade/lock'), join(world.path, 'scripts/backup.sh'))).toMatchObject({
      status: 1,
      output: expect.stringContaining('An upgrade of this installation is running.'),
    });
  });

  it('goes back when the disk is full during the copy, after the half copies are deleted', () => {
    writeFileSync(join(world.path, 'full'), ':/from/');
    const start = file('scripts/start.sh').replace('release=', 'ls volumes >seen; release=');
    writeFileSync(join(world.path, 'scripts/start.sh'), start, { mode: 0o755 });
    expect(upgrade('apply', '--archive', archiveOf(NEXT))).toMatchObject({
      status: 4,
      output: expect.stringContaining('No space left on device'),
    });
    expect([release(), data(), file('seen'), isOpen()]).toEqual([OLD, [OLD, OLD], 'holdfast_core-data\n', false]);
    expect(file('record')).toContain('(the volumes could not be copied)');
  });

  it("stays where it is when the older release's files are gone", () => {
    upgrade('apply', '--archive', archiveOf(NEXT));
    rmSync(join(world.path, 'release', OLD), { recursive: true });
    expect(upgrade('back')).toMatchObject({ status: 3, output: expect.stringContaining('no longer in release') });
    expect(release()).toBe(NEXT);
  });

  it.each([
    ['build', 'images are built', OLD, [OLD]],
    ['volume create', 'a copy is made', OLD, [OLD, OLD]],
    ['core-database database import', 'the database is imported', NEWER, [OLD, NEWER]],
    ['upgrade.js record', 'it is recorded', NEWER, [OLD, NEWER, NEWER]],
  ])('survives kill -9 at "%s" (%s): the next command finishes or drops it', (at, _words, then, rows) => {
    writeFileSync(join(world.path, 'kill'), at);
    expect(upgrade('apply', '--archive', archiveOf(NEWER)).status).toBe(null);
    expect([existsSync(join(world.path, 'kill')), isOpen()]).toEqual([false, true]);
    expect(upgrade('recover')).toMatchObject({ status: 0 });
    expect([release(), data(), isOpen()]).toEqual([then, rows, false]);
    expect(copies()).toBe(false);
  });

  it.each([
    [':/to/', 'a volume is put back'],
    ['record', 'it is recorded'],
  ])('survives kill -9 at "%s" (%s) on its way back', (at, _words) => {
    writeFileSync(join(world.path, 'broken'), `${NEXT}\n`);
    // The way back begins with the broken start.
    const start = file('scripts/start.sh').replace('exit 1', `echo '${at}' >"$PWD/kill"; exit 1`);
    writeFileSync(join(world.path, 'scripts/start.sh'), start, { mode: 0o755 });
    expect(upgrade('apply', '--archive', archiveOf(NEXT)).status).toBe(null);
    expect(isOpen()).toBe(true);
    upgrade('recover');
    expect([release(), data(), copies(), isOpen()]).toEqual([OLD, expect.arrayContaining([OLD]), false, false]);
    expect(data()).not.toContain(NEXT);
    expect(file('record')).toContain('returned: ');
  });
});
