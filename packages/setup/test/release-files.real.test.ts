// The files of a release on the volume of the core: what is replaced, what stays, and what a crash
// leaves behind.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Problem } from '../../../shared/settings/setting.ts';
import { compareReleases, releaseIn } from '../archive/version.ts';
import { bringReleaseFiles, readManifest } from '../release-files/files.ts';
import { planReleaseFiles } from '../release-files/handover.ts';
import { runs } from '../../../test/support/runs.ts';

const root = mkdtempSync(join(tmpdir(), 'holdfast-release-files-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

type Files = Record<string, string>;

const OLD: Files = {
  'takserver.war': 'war of the old release',
  'old-only.jar': 'only the old release has it',
  'db-utils/old/one.sql': 'only the old release has it',
  'configureInDocker.sh': '#!/bin/sh\n',
  'CoreConfig.example.xml': '<Configuration/>',
  'certs/cert-metadata.sh': 'STATE=${STATE}\n',
  'certs/config.cfg': '[ ca ]\n',
  'certs/makeCert.sh': 'old script\n',
  'conf/retention/retention-policy.yml': 'dataRetentionMap:\n',
  'mission-archive/mission-store.yml': 'missionArchiveStoreEntries:\n',
  'lib/of-the-release.jar': 'library\n',
  'version.txt': '5.6-RELEASE-22\n',
};
const { 'old-only.jar': _one, 'db-utils/old/one.sql': _two, ...both } = OLD;
const NEW: Files = {
  ...both,
  // As long as the old one: only its content tells them apart.
  'takserver.war': 'war of the new release',
  'certs/cert-metadata.sh': 'STATE=${STATE:-none}\n',
  'certs/config.cfg': '[ ca ]\nnew = yes\n',
  'conf/retention/retention-policy.yml': 'dataRetentionMap: {}\n',
  'new-only.jar': 'only the new release has it',
  'version.txt': '5.7-RELEASE-8\n',
};
const [OLD_RELEASE, NEW_RELEASE] = ['5.6-RELEASE-22', '5.7-RELEASE-8'];

let volume = '';
const from = { old: treeOf(OLD), new: treeOf(NEW) };
const bringOld = () => bringReleaseFiles({ from: from.old, to: volume, release: OLD_RELEASE });
const bringNew = () => bringReleaseFiles({ from: from.new, to: volume, release: NEW_RELEASE });
const at = (path: string): string => join(volume, path);
const read = (path: string): string => readFileSync(at(path), 'utf8');
const edit = (path: string, text: string): void => {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), text);
};

beforeEach(() => {
  volume = mkdtempSync(join(root, 'volume-'));
});

/** As archives have them that are the same whenever they are made: every file of one time. */
function treeOf(files: Files): string {
  const tree = mkdtempSync(join(root, 'tree-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), text);
    utimesSync(join(tree, path), 315_532_800, 315_532_800);
    chmodSync(join(tree, path), 0o444);
  }
  mkdirSync(join(tree, 'logs'));
  return tree;
}

/** Content and time of everything; a file that is written again has another number. */
function picture(): Record<string, string> {
  const entries = readdirSync(volume, { recursive: true, encoding: 'utf8' }).toSorted();
  return Object.fromEntries(
    entries.map((path) => {
      const { mtimeMs, ino, mode } = statSync(at(path));
      const text = statSync(at(path)).isFile() ? read(path) : '';
      return [path, `${mtimeMs} ${ino} ${mode.toString(8)} ${text}`];
    }),
  );
}

describe('an empty volume', () => {
  it('gets everything of the release, programs executable, nothing for others to read', () => {
    const { before, removed, keptAside } = bringNew();
    expect([before, removed, keptAside]).toEqual([undefined, [], []]);
    for (const [path, text] of Object.entries(NEW)) expect(read(path)).toBe(text);
    expect(statSync(at('configureInDocker.sh')).mode & 0o777).toBe(0o750);
    expect(statSync(at('takserver.war')).mode & 0o777).toBe(0o640);
    expect(statSync(at('certs')).mode & 0o777).toBe(0o750);
    expect(statSync(at('logs')).isDirectory()).toBe(true);
    expect(readManifest(volume)?.release).toBe(NEW_RELEASE);
    expect(readManifest(volume)?.files['conf/retention/retention-policy.yml']).toBeUndefined();
  });

  it('is not written again by a second run: no byte, no time, no number of a file changes', () => {
    bringNew();
    const before = picture();
    expect(bringNew()).toMatchObject({ written: [], removed: [], keptAside: [] });
    expect(picture()).toEqual(before);
  });
});

describe('an upgrade', () => {
  it('replaces the programs, adds what is new and removes what the new release lacks', () => {
    bringOld();
    const { before, removed, keptAside } = bringNew();
    expect(before).toBe(OLD_RELEASE);
    expect(removed.toSorted()).toEqual(['db-utils/old/one.sql', 'old-only.jar']);
    expect(existsSync(at('db-utils'))).toBe(false);
    expect(keptAside).toEqual([]);
    expect(read('takserver.war')).toBe(NEW['takserver.war']);
    expect(read('certs/config.cfg')).toBe(NEW['certs/config.cfg']);
    expect(readManifest(volume)?.release).toBe(NEW_RELEASE);
  });

  it("leaves alone what is the operator's, whatever the release brings", () => {
    bringOld();
    const own: Files = {
      'CoreConfig.xml': 'mine',
      'UserAuthenticationFile.xml': 'mine',
      'TAKIgniteConfig.xml': 'mine',
      'certs/files/ca.pem': 'mine',
      'certs/files/ca-do-not-share.key': 'mine',
      'certs/cert-metadata.sh': 'STATE=Utah\n',
      'conf/retention/retention-policy.yml': 'mine',
      'mission-archive/1_mission.zip': 'mine',
      'logs/takserver.log': 'mine',
      'lib/plugin.jar': 'mine',
      'admin-grants/svc_x.pem': 'mine',
      'whatever/else.txt': 'mine',
      'old-only.jar': 'edited: it is mine now',
    };
    for (const [path, text] of Object.entries(own)) edit(path, text);
    expect(bringNew().removed).toEqual(['db-utils/old/one.sql']);
    for (const [path, text] of Object.entries(own)) expect(read(path)).toBe(text);
  });

  it('keeps an edited program beside the new one, and every edit of it', () => {
    bringOld();
    edit('certs/makeCert.sh', 'edited');
    edit('takserver.war', 'patched');
    expect(bringNew().keptAside.toSorted()).toEqual([
      `certs/makeCert.sh.before-${NEW_RELEASE}`,
      `takserver.war.before-${NEW_RELEASE}`,
    ]);
    expect(read(`takserver.war.before-${NEW_RELEASE}`)).toBe('patched');
    expect(read('takserver.war')).toBe(NEW['takserver.war']);
    edit('takserver.war', 'patched again');
    expect(bringNew().keptAside).toEqual([`takserver.war.before-${NEW_RELEASE}.2`]);
    expect(read(`takserver.war.before-${NEW_RELEASE}.2`)).toBe('patched again');
  });

  it('refuses to bring an older release over a newer one, and changes nothing', () => {
    bringNew();
    const before = picture();
    expect(bringOld).toThrow(/contains the newer release 5\.7-RELEASE-8\. The older 5\.6-RELEASE-22/);
    expect(picture()).toEqual(before);
    // Unless its database has gone back.
    bringReleaseFiles({ from: from.old, to: volume, release: OLD_RELEASE, goesBack: true });
    expect(read('takserver.war')).toBe(OLD['takserver.war']);
    expect(bringOld).not.toThrow();
  });

  it('says what to do when the manifest is broken', () => {
    bringNew();
    writeFileSync(at('.holdfast-release.json'), '{');
    expect(bringNew).toThrow(/\.holdfast-release\.json is damaged/);
  });

  it('takes over a volume that was filled by hand', () => {
    for (const [path, text] of Object.entries(OLD)) edit(path, text);
    const { keptAside } = bringNew();
    expect(keptAside).toContain(`takserver.war.before-${NEW_RELEASE}`);
    expect(read('takserver.war')).toBe(NEW['takserver.war']);
  });
});

describe('a run that is ended at any moment', () => {
  const PROGRAM = `
    import { bringReleaseFiles } from ${JSON.stringify(join(process.cwd(), 'packages/setup/release-files/files.ts'))};
    const [from, to, release] = process.argv.slice(1);
    process.stdout.write('.');
    bringReleaseFiles({ from, to, release });
  `;

  it('is healed by the next one, and no file is ever half there', { timeout: 60_000 }, async () => {
    // Large enough for a signal to hit the middle.
    const large = (text: string): Files =>
      Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`lib/${i}.jar`, text.repeat(20_000) + i]));
    const trees = { old: treeOf({ ...OLD, ...large('old') }), new: treeOf({ ...NEW, ...large('new') }) };
    const known = new Set([
      ...Object.values({ ...OLD, ...large('old') }),
      ...Object.values({ ...NEW, ...large('new') }),
    ]);
    let hit = 0;
    for (let round = 0; round < 5; round++) {
      volume = mkdtempSync(join(root, 'volume-'));
      bringReleaseFiles({ from: trees.old, to: volume, release: OLD_RELEASE });
      edit('takserver.war', 'patched');
      const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, trees.new, volume, NEW_RELEASE]);
      await once(child.stdout, 'data');
      const exit = once(child, 'exit');
      setTimeout(() => child.kill('SIGKILL'), round * 20);
      if ((await exit)[1] === 'SIGKILL') hit++;
      for (const path of Object.keys({ ...OLD, ...large('') }))
        if (existsSync(at(path)) && path !== 'takserver.war') expect(known).toContain(read(path));
      bringReleaseFiles({ from: trees.new, to: volume, release: NEW_RELEASE });
      for (const [path, text] of Object.entries({ ...NEW, ...large('new') }))
        if (!path.startsWith('conf/')) expect(read(path)).toBe(text);
      expect(read(`takserver.war.before-${NEW_RELEASE}`)).toBe('patched');
      expect(existsSync(at('old-only.jar'))).toBe(false);
      expect(readdirSync(volume).filter((name) => name.includes('before') || name.endsWith('.new'))).toHaveLength(1);
    }
    expect(hit).toBeGreaterThan(0);
  });

  it('loses no edit of the operator, whatever was done in which order', () => {
    const paths = ['takserver.war', 'certs/config.cfg', 'CoreConfig.xml', 'lib/plugin.jar', 'old-only.jar'];
    const step = fc.oneof(
      fc.constant({ do: 'old' as const }),
      fc.constant({ do: 'new' as const }),
      fc.record({
        do: fc.constant('edit' as const),
        path: fc.constantFrom(...paths),
        text: fc.string({ minLength: 1 }),
      }),
      // As a crash leaves it: part of the new release is there already.
      fc.record({ do: fc.constant('half' as const), path: fc.constantFrom('takserver.war', 'new-only.jar') }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
        volume = mkdtempSync(join(root, 'volume-'));
        const edits = new Set<string>();
        let newest = '';
        for (const each of steps) {
          if (each.do === 'edit') {
            edit(each.path, `edit ${each.text}`);
            // An edit over an edit is the operator's own doing.
            for (const other of edits) if (other.startsWith(`${each.path}\0`)) edits.delete(other);
            edits.add(`${each.path}\0edit ${each.text}`);
          } else if (each.do === 'half') {
            mkdirSync(at('.holdfast-release.new'), { recursive: true });
            if (!existsSync(at(each.path)) || read(each.path) === OLD[each.path]) edit(each.path, NEW[each.path] ?? '');
          } else if (each.do === 'new') {
            bringNew();
            newest = 'new';
          } else if (newest === 'new') expect(bringOld).toThrow(/newer/);
          else bringOld();
        }
        const contents = readdirSync(volume, { recursive: true, encoding: 'utf8' })
          .filter((path) => statSync(at(path)).isFile())
          .map((path) => [path, read(path)] as const);
        for (const wanted of edits) {
          const [path = '', text] = wanted.split('\0');
          expect(contents.some(([name, content]) => name.startsWith(path) && content === text)).toBe(true);
        }
        if (newest === 'new') {
          bringNew();
          expect(read('takserver.war')).toBe(NEW['takserver.war']);
        }
      }),
      { numRuns: runs(30) },
    );
  });
});

describe('which release it is', () => {
  it('is in its version.txt', () => {
    expect(releaseIn('5.7-RELEASE-8\n')).toBe('5.7-RELEASE-8');
    expect(releaseIn('TAK Server 5.4-RELEASE-19 (Docker)')).toBe('5.4-RELEASE-19');
    expect(releaseIn('unknown')).toBeUndefined();
  });

  it.each([
    ['5.7-RELEASE-8', '5.7-RELEASE-8', 0],
    ['5.10-RELEASE-1', '5.9-RELEASE-30', 1],
    ['5.7-RELEASE-8', '5.7-RELEASE-10', -1],
    ['5.7.1-RELEASE-1', '5.7-RELEASE-9', 1],
    ['unknown', '5.7-RELEASE-9', -1],
  ])('%s against %s', (one, other, sign) => {
    expect(Math.sign(compareReleases(one, other))).toBe(sign);
  });

  it('is asked of an image that holds one, else the remedy is named', () => {
    const plan = (tree: string, environment: Record<string, string> = {}) => {
      const problems: Problem[] = [];
      const source = planReleaseFiles('/opt/holdfast', { HOLDFAST_RELEASE_TREE: tree, ...environment }, problems);
      return { source, names: problems.map(({ name }) => name) };
    };
    expect(plan(from.new, { CORE_RELEASE: '1.1-RELEASE-1' })).toEqual({
      source: { from: from.new, to: '/opt/tak', release: NEW_RELEASE },
      names: [],
    });
    const { 'version.txt': _version, ...unnamed } = NEW;
    const tree = treeOf(unnamed);
    expect(plan(tree).names).toEqual(['CORE_RELEASE']);
    expect(plan(tree, { CORE_RELEASE: '5.7-RELEASE-8' }).source.release).toBe('5.7-RELEASE-8');
    expect(plan('/nowhere').names).toEqual(['HOLDFAST_RELEASE_TREE']);
  });
});

it('a file that is appended to counts as edited, though it has been copied a moment ago', () => {
  bringNew();
  appendFileSync(at('configureInDocker.sh'), 'echo\n');
  expect(bringNew().keptAside).toEqual([`configureInDocker.sh.before-${NEW_RELEASE}`]);
});
