// The upgrade of the stack in containers to another version of Holdfast, with a `docker` that keeps volumes as files and
// a start.sh that says whether a version works. With real containers: test/e2e/containers/light-direct.test.ts.

import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ComposeRoot, REPOSITORY } from '../../packages/setup/test/compose.ts';
import { type Ended, UpgradeWorld } from './upgrade-world.ts';

const [OLD, NEW] = ['0.1.0', '0.2.0'];
const THRESHOLDS = 'monitor/config/thresholds.yml';
const MIGRATIONS = [
  'shared/runtime/migrations',
  'packages/core/store/migrations',
  'packages/identity/store/migrations',
];
/** A version writes into the volumes when it starts, whether it works or not. */
const START = String.raw`#!/bin/bash
cd "$(dirname "$0")/.."
version=$(sed -n 's/.*"version": "\(.*\)".*/\1/p' package.json)
echo "$version" >>volumes/holdfast_core-data
if grep -qxF "$version" broken 2>/dev/null; then printf "Couldn't start the stack: core failed.\n  Remedy: read its log\n" >&2; exit 1; fi
`;

let root: ComposeRoot;
let stack: UpgradeWorld;
let newer: string;

/** What a version has besides compose files and most scripts. */
function complete(directory: string, version: string): void {
  for (const place of [...MIGRATIONS, 'monitor/config']) mkdirSync(join(directory, place), { recursive: true });
  for (const place of MIGRATIONS) writeFileSync(join(directory, place, '0001-first.sql'), 'SELECT;\n');
  writeFileSync(join(directory, THRESHOLDS), `of ${version}\n`);
  writeFileSync(join(directory, 'package.json'), `{\n  "version": "${version}",\n  "upgradesFrom": "${OLD}"\n}\n`);
  writeFileSync(join(directory, 'compose/program.yaml'), `image: localhost/holdfast:${version}\n`);
  writeFileSync(join(directory, `compose/only-in-${version}`), '');
  cpSync(join(REPOSITORY, 'scripts/versions.sh'), join(directory, 'scripts/versions.sh'));
  writeFileSync(join(directory, 'scripts/start.sh'), START, { mode: 0o755 });
}

beforeEach(() => {
  root = new ComposeRoot();
  newer = mkdtempSync(join(tmpdir(), 'holdfast-version-'));
  cpSync(root.path, newer, { recursive: true });
  complete(root.path, OLD);
  complete(newer, NEW);
  const programs = join(root.path, '.upgrade/programs');
  mkdirSync(programs, { recursive: true });
  stack = new UpgradeWorld(root.path, programs, OLD);
  expect(stack.run(join(root.path, 'scripts/setup.sh'), '--light', '--address', '192.0.2.1').status).toBe(0);
});
afterEach(() => {
  root.remove();
  rmSync(newer, { recursive: true });
});

const upgrade = (...args: string[]): Ended => stack.upgrade(...args);
const apply = (): Ended => upgrade('apply', '--from', newer);

/** The version whose files are here, all of them. */
function version(): string {
  const found = /"version": "(.*)"/.exec(readFileSync(join(root.path, 'package.json'), 'utf8'))?.[1] ?? '';
  const files = [OLD, NEW].filter((each) => existsSync(join(root.path, `compose/only-in-${each}`)));
  expect([files, stack.read('compose/program.yaml')]).toEqual([[found], expect.stringContaining(`:${found}\n`)]);
  return found;
}

describe('upgrade.sh in containers', { timeout: 60_000 }, () => {
  it('runs the new version, and returns to the old one with the current data and the own thresholds', () => {
    writeFileSync(join(root.path, THRESHOLDS), 'mine\n');
    expect(apply()).toMatchObject({ status: 0 });
    expect([version(), stack.data(), stack.hasCopies(NEW), stack.isOpen()]).toEqual([NEW, [OLD, NEW], true, false]);
    expect(upgrade('back')).toMatchObject({ status: 0 });
    expect([version(), stack.data(), stack.hasCopies(NEW)]).toEqual([OLD, [OLD, NEW, OLD], false]);
    expect(stack.read(THRESHOLDS)).toBe('mine\n');
    expect(upgrade('back')).toMatchObject({ status: 3 });
  });

  it('says that local changes are not seen in a directory that is no clone', () => {
    expect(upgrade('check', '--from', newer)).toMatchObject({
      status: 10,
      output: expect.stringContaining(
        "not a git clone, so local changes can't be seen; they will be in .upgrade/0.1.0",
      ),
    });
    expect(stack.data()).toEqual([OLD]);
  });

  it('prepares a version that requires a setting which .env does not have yet', () => {
    stack.write('required', 'NEW_SECRET');
    expect(upgrade('fetch', '--from', newer)).toMatchObject({ status: 1 });
    rmSync(join(root.path, '.upgrade', NEW), { recursive: true });
    const light = join(newer, 'compose/compose.light.yaml');
    writeFileSync(light, `${readFileSync(light, 'utf8')}\n# \${NEW_SECRET:?run ./scripts/setup.sh}\n`);
    expect(upgrade('fetch', '--from', newer)).toMatchObject({ status: 0 });
    expect(stack.read('.env')).not.toContain('NEW_SECRET');
  });

  it('needs the copies to go back from a version that changed a database', () => {
    writeFileSync(join(newer, MIGRATIONS[0] ?? '', '0002-second.sql'), 'SELECT;\n');
    expect(apply()).toMatchObject({ status: 0 });
    expect(upgrade('back')).toMatchObject({ status: 3, output: expect.stringContaining('--to-snapshot') });
    expect(upgrade('back', '--to-snapshot')).toMatchObject({ status: 0 });
    expect([version(), stack.data(), stack.hasCopies(NEW)]).toEqual([OLD, [OLD, OLD], false]);
  });

  it('goes back by itself with all volumes when the new version does not work, and says so in health', () => {
    stack.write('broken', `${NEW}\n`);
    expect(apply()).toMatchObject({ status: 4, output: expect.stringContaining(`${OLD} runs and passed`) });
    expect([version(), stack.data(), stack.hasCopies(NEW), stack.isOpen()]).toEqual([OLD, [OLD, OLD], false, false]);
    expect(stack.read('record')).toBe(
      `returned: ${OLD} to ${NEW} (${NEW} does not work: Couldn't start the stack: core failed)\n`,
    );
  });

  it.each([
    ['compose stop', 'the stack is stopped', OLD, [OLD, OLD]],
    ['volume create', 'a copy is made', OLD, [OLD, OLD]],
    [':/to/', 'the volumes are copied', OLD, [OLD, OLD]],
    ['upgrade.js record', 'it is recorded', NEW, [OLD, NEW, NEW]],
  ])('survives kill -9 at "%s" (%s): the next command finishes or drops it', (at, _words, then, rows) => {
    stack.write('kill', at);
    expect(apply().status).toBe(null);
    expect([stack.read('kill'), stack.isOpen()]).toEqual(['', true]);
    expect(upgrade('recover')).toMatchObject({ status: 0 });
    expect([version(), stack.data(), stack.hasCopies(NEW), stack.isOpen()]).toEqual([then, rows, then === NEW, false]);
  });

  it.each([
    ['compose stop', 'the new version is stopped'],
    [':/to/', 'a volume is put back'],
    ['record', 'it is recorded'],
  ])('survives kill -9 at "%s" (%s) on its way back', (at, _words) => {
    stack.write('broken', `${NEW}\n`);
    // The way back begins with the broken start.
    const start = join(newer, 'scripts/start.sh');
    writeFileSync(start, START.replace('exit 1', `echo '${at}' >"$PWD/kill"; exit 1`), { mode: 0o755 });
    expect(apply().status).toBe(null);
    expect(stack.isOpen()).toBe(true);
    upgrade('recover');
    expect([version(), stack.hasCopies(NEW), stack.isOpen()]).toEqual([OLD, false, false]);
    expect(stack.data()).not.toContain(NEW);
    expect(stack.read('record')).toContain('returned: ');
  });
});
