// The copy of the data before an upgrade, and its way back, on a real file system.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { BEFORE_UPGRADE, SET_ASIDE } from '../parts.ts';
import { type Layout, layoutOf } from '../process/layout.ts';
import { freeName, moveIn, moveOut, roomForSnapshot, takeSnapshot } from '../upgrade/snapshot.ts';
import { currentVersion, findTarget, schemaOf } from '../upgrade/versions.ts';

const MIB = 1024 ** 2;
const home = resolve(import.meta.dirname, '../../..');
const asRoot = process.getuid?.() === 0;
const places: { path: string; mounted: boolean }[] = [];

afterEach(() => {
  for (const { path, mounted } of places.splice(0)) {
    if (mounted) execFileSync('umount', [path]);
    rmSync(path, { recursive: true, force: true });
  }
});

function stackWith(bytes: number, diskBytes?: number): Layout {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-snapshot-'));
  places.push({ path, mounted: diskBytes !== undefined });
  if (diskBytes !== undefined) execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskBytes}`, 'tmpfs', path]);
  const layout = layoutOf(path);
  for (const directory of [layout.pgdata, layout.logs, layout.run]) mkdirSync(directory);
  writeFileSync(join(layout.pgdata, 'table'), Buffer.alloc(bytes, 1));
  writeFileSync(layout.secrets, '{}');
  writeFileSync(join(layout.logs, 'core.log'), 'a line');
  writeFileSync(join(path, 'notes.txt'), 'mine');
  return layout;
}

describe('the copy of the data', () => {
  it('holds everything of the stack but the logs, and nothing of others', async () => {
    const layout = stackWith(1000);
    const copy = freeName(layout, BEFORE_UPGRADE, '0.2.0');
    await takeSnapshot(layout, copy);
    expect(readdirSync(copy).toSorted()).toEqual(['pgdata', 'secrets.json']);
    expect(freeName(layout, BEFORE_UPGRADE, '0.2.0')).toBe(`${copy}-2`);
  });

  it('takes the place of the data, and can be interrupted after every move', async () => {
    const layout = stackWith(1000);
    const copy = freeName(layout, BEFORE_UPGRADE, '0.2.0');
    const aside = freeName(layout, SET_ASIDE, '0.2.0');
    await takeSnapshot(layout, copy);
    writeFileSync(join(layout.pgdata, 'table'), 'spoilt');
    writeFileSync(join(layout.root, 'pg_hba.conf'), 'of the new version');
    // As if the first move had been the last one.
    mkdirSync(aside);
    execFileSync('mv', [layout.pgdata, aside]);
    moveOut(layout, aside);
    execFileSync('mv', [join(copy, 'pgdata'), layout.root]);
    moveIn(layout, copy);
    moveIn(layout, copy);
    expect(readFileSync(join(layout.pgdata, 'table'))).toEqual(Buffer.alloc(1000, 1));
    expect(readFileSync(join(aside, 'pgdata/table'), 'utf8')).toBe('spoilt');
    expect(readdirSync(layout.root).toSorted()).toEqual(
      ['logs', 'notes.txt', 'pgdata', 'run', 'secrets.json', 'set-aside-upgrade-0.2.0'].toSorted(),
    );
  });

  it.skipIf(!asRoot)('leaves nothing behind on a full disk, and tells beforehand that it does not fit', async () => {
    const layout = stackWith(20 * MIB, 32 * MIB);
    const { neededBytes, freeBytes } = roomForSnapshot(layout);
    expect(neededBytes).toBeGreaterThan(freeBytes);
    const copy = freeName(layout, BEFORE_UPGRADE, '0.2.0');
    await expect(takeSnapshot(layout, copy)).rejects.toThrow(/Couldn't copy the data.*No space left on device/);
    expect([existsSync(copy), readdirSync(layout.root).filter((name) => name.includes('upgrade'))]).toEqual([
      false,
      [],
    ]);
    expect(readFileSync(join(layout.pgdata, 'table')).length).toBe(20 * MIB);
  });
});

describe('a version', () => {
  it('names the oldest one that it upgrades from, which is no newer than itself', () => {
    const target = findTarget({ home, to: undefined, from: home });
    expect(target).toMatchObject({ version: currentVersion(home), source: home });
    expect(target?.upgradesFrom).toMatch(/^\d+\.\d+\.\d+$/);
    const { holdfast } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { holdfast: object };
    expect(holdfast).toEqual({ upgradesFrom: target?.upgradesFrom });
  });

  it('has a fingerprint of its migrations', () => {
    expect(schemaOf(home)).toMatch(/^[0-9a-f]{64}$/);
    expect(schemaOf(home)).not.toBe(schemaOf(tmpdir()));
  });

  it('is found among the tags of a clone', () => {
    const path = mkdtempSync(join(tmpdir(), 'holdfast-tags-'));
    places.push({ path, mounted: false });
    const git = (...args: string[]): string =>
      execFileSync('git', ['-C', path, '-c', 'user.name=test', '-c', 'user.email=test@example.org', ...args], {
        encoding: 'utf8',
      });
    git('init', '--quiet');
    for (const version of ['0.9.0', '0.10.0', '0.11.0-rc.1']) {
      const content = { name: 'holdfast', version, holdfast: { upgradesFrom: '0.1.0' } };
      writeFileSync(join(path, 'package.json'), JSON.stringify(content));
      git('add', '--all');
      git('commit', '--quiet', '--message', version);
      git('tag', `v${version}`);
    }
    const from = `${path}/.git`;
    const clone = join(path, 'clone');
    git('clone', '--quiet', '--no-tags', from, clone);
    expect(findTarget({ home: clone, to: undefined, from: undefined })).toMatchObject({ version: '0.10.0' });
    expect(findTarget({ home: clone, to: '0.11.0-rc.1', from })).toMatchObject({ version: '0.11.0-rc.1' });
    expect(() => findTarget({ home: clone, to: '9.9.9', from })).toThrow(/has no version 9\.9\.9/);
    expect(() => findTarget({ home: clone, to: undefined, from: '/nowhere' })).toThrow(/git ls-remote failed/);
  });
});
