import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { diskUse } from '../../shared/host/disks.ts';
import type { DiskUse } from '../../shared/host/port.ts';

const KIB = 1024;
const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0;

let directory: string;
let mounted: string[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-disk-'));
  mounted = [];
});
afterEach(() => {
  for (const place of mounted.toReversed()) spawnSync('umount', ['-l', place]);
  rmSync(directory, { recursive: true, force: true });
});

/** A file system in memory of 1 MiB and 100 inodes. */
function mountMemory(name: string, options = 'size=1m,nr_inodes=100'): string {
  const place = join(directory, name);
  mkdirSync(place);
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'holdfast-test', place]);
  mounted.push(place);
  return place;
}

/** The numbers of df's only line. */
function df(options: string[], path: string): { size: number; used: number; free: number; pct: number; mount: string } {
  const line = execFileSync('df', [...options, path], { encoding: 'utf8' }).split('\n')[1] ?? '';
  const [, size = '', used = '', free = '', pct = '', ...mount] = line.split(/ +/);
  return {
    size: Number(size),
    used: Number(used),
    free: Number(free),
    pct: Number.parseInt(pct, 10),
    mount: mount.join(' '),
  };
}

async function only(path: string): Promise<DiskUse> {
  const [use, ...others] = await diskUse(() => [path]).use();
  expect(others).toEqual([]);
  if (use === undefined) throw new Error('no file system');
  return use;
}

describe('the use of a disk', () => {
  it('agrees with df on this machine, in bytes, in inodes, and on the mount point', async () => {
    for (const path of [directory, '/', '/dev/shm', process.cwd()].filter((each) => existsSync(each))) {
      const use = await only(path);
      const bytes = df(['-P', '--block-size=1'], path);
      const inodes = df(['-iP'], path);
      expect(use).toMatchObject({ mount: bytes.mount, paths: [path], total_bytes: bytes.size });
      expect(Math.abs(use.free_bytes - bytes.free)).toBeLessThan(64 * KIB * KIB);
      expect(Math.abs(use.used_pct - (bytes.used / (bytes.used + bytes.free)) * 100)).toBeLessThan(0.2);
      expect(bytes.pct - use.used_pct).toBeLessThan(1.1);
      if (inodes.size === 0) expect(use.inodes_used_pct).toBeNull();
      else expect(Math.abs((use.inodes_used_pct ?? -1) - (inodes.used / inodes.size) * 100)).toBeLessThan(0.2);
    }
  });

  it.runIf(mayMount)('is exact on a file system filled to a known level', async () => {
    const place = mountMemory('known');
    expect(await only(place)).toEqual({
      mount: place,
      paths: [place],
      total_bytes: 1024 * KIB,
      free_bytes: 1024 * KIB,
      used_pct: 0,
      inodes_used_pct: 1,
    });
    writeFileSync(join(place, 'a'), Buffer.alloc(768 * KIB));
    for (let index = 0; index < 48; index++) writeFileSync(join(place, `empty-${index}`), '');
    expect(await only(place)).toMatchObject({ free_bytes: 256 * KIB, used_pct: 75, inodes_used_pct: 50 });
    writeFileSync(join(place, 'b'), Buffer.alloc(256 * KIB));
    expect(await only(place)).toMatchObject({ free_bytes: 0, used_pct: 100, inodes_used_pct: 51 });
  });

  it.runIf(mayMount)('has no figure for inodes where their number is not fixed', async () => {
    const place = mountMemory('free', 'size=1m,nr_inodes=0');
    expect(await only(place)).toMatchObject({ used_pct: 0, inodes_used_pct: null });
  });

  it('is that of the nearest existing parent for a path that does not exist yet', async () => {
    const { paths, mount, total_bytes: total } = await only(join(directory, 'not', 'yet', 'made'));
    const parent = await only(directory);
    expect({ paths, mount, total }).toEqual({
      paths: [join(directory, 'not', 'yet', 'made')],
      mount: parent.mount,
      total: parent.total_bytes,
    });
    writeFileSync(join(directory, 'file'), '');
    expect((await only(join(directory, 'file', 'below'))).mount).toBe(parent.mount);
  });

  it.runIf(mayMount)(
    'comes once for each file system, with all paths on it, through links, and with odd names',
    async () => {
      const one = mountMemory('with space\tand tab');
      const two = mountMemory('with');
      mkdirSync(join(one, 'sub'));
      symlinkSync(join(one, 'sub'), join(two, 'link'));
      const paths = [join(one, 'sub'), two, one, join(two, 'link'), join(two, 'new')];
      const found = await diskUse(() => paths).use();
      expect(found.map(({ mount, paths }) => ({ mount, paths }))).toEqual([
        { mount: one, paths: [join(one, 'sub'), one, join(two, 'link')] },
        { mount: two, paths: [two, join(two, 'new')] },
      ]);
    },
  );

  it.runIf(mayMount)(
    'counts an overlay as what it lies on, as the root of a container lies beside its volumes',
    async ({ skip }) => {
      const below = mountMemory('below');
      for (const each of ['upper', 'work', 'lower', 'volume']) mkdirSync(join(below, each));
      const place = join(directory, 'overlay');
      mkdirSync(place);
      const layers = `lowerdir=${below}/lower,upperdir=${below}/upper,workdir=${below}/work`;
      if (spawnSync('mount', ['-t', 'overlay', '-o', layers, 'holdfast-test', place]).status !== 0)
        skip('no overlays here');
      mounted.push(place);
      const paths = [place, join(below, 'volume')];
      const found = await diskUse(() => paths).use();
      expect(found.map((each) => [each.mount, each.paths])).toEqual([[below, [join(below, 'volume'), place]]]);
      expect((await only(place)).mount).toBe(place);
      const apart = mountMemory('apart', 'size=2m');
      expect(await diskUse(() => [place, apart]).use()).toHaveLength(2);
    },
  );

  it.runIf(process.getuid?.() === 0)('is that of the parent for a directory of another user', async () => {
    const hidden = mkdtempSync(join(tmpdir(), 'holdfast-hidden-'));
    mkdirSync(join(hidden, 'pgdata'));
    const script = `const { diskUse } = await import(${JSON.stringify(resolve('shared/host/disks.ts'))});
      process.setgroups([]); process.setgid(65534); process.setuid(65534);
      console.log(JSON.stringify(await diskUse(() => [process.argv[1]]).use()));`;
    const path = join(hidden, 'pgdata', 'pg_wal');
    const reported = execFileSync(process.execPath, ['--input-type=module', '-e', script, path], { encoding: 'utf8' });
    expect(JSON.parse(reported)).toMatchObject([{ paths: [path] }]);
    rmSync(hidden, { recursive: true });
  });

  it('asks for the paths anew each time', async () => {
    const paths = ['/'];
    const disks = diskUse(() => paths);
    expect(await disks.use()).toHaveLength(1);
    paths.push('/proc');
    expect((await disks.use()).map(({ mount }) => mount)).toEqual(['/', '/proc']);
    paths.length = 0;
    expect(await disks.use()).toEqual([]);
  });

  it('fails for a path that cannot be looked at, and not for ever', async () => {
    symlinkSync('loop', join(directory, 'loop'));
    const paths = [join(directory, 'loop')];
    const disks = diskUse(() => paths);
    await expect(disks.use()).rejects.toThrow(/ELOOP.*loop/);
    paths[0] = directory;
    expect(await disks.use()).toHaveLength(1);
  });
});

describe.runIf(mayMount && existsSync('/dev/fuse'))('a file system that hangs', () => {
  /** A file system whose server never answers; closing the descriptor ends it. */
  function mountSilent(): { place: string; descriptor: number } {
    const place = join(directory, 'silent');
    mkdirSync(place);
    const descriptor = openSync('/dev/fuse', 'r+');
    const options = 'fd=3,rootmode=40000,user_id=0,group_id=0';
    const stdio = ['ignore', 'ignore', 'pipe', descriptor] as const;
    const { stderr, status } = spawnSync('mount', ['-i', '-t', 'fuse', '-o', options, 'silent', place], {
      stdio: [...stdio],
    });
    if (status !== 0) throw new Error(String(stderr));
    mounted.push(place);
    return { place, descriptor };
  }

  it('is given up in time, holds one thread however often one asks, and is looked at again when it answers', async () => {
    const { place, descriptor } = mountSilent();
    const disks = diskUse(() => [directory, place], { withinMs: 500 });
    try {
      const both = await Promise.allSettled([disks.use(), disks.use()]);
      const message = expect.stringMatching(
        new RegExp(`^the file system of ${place} has not answered for \\d+\\.\\d s$`),
      );
      for (const each of both) expect(each).toMatchObject({ status: 'rejected', reason: { message } });

      await new Promise((tick) => setTimeout(tick, 600));
      const again = performance.now();
      for (let call = 0; call < 20; call++)
        await expect(disks.use()).rejects.toThrow(/silent has not answered for [1-9]\d*\.\d s$/);
      expect(performance.now() - again).toBeLessThan(5_000);
      // The pool has four threads: with one of them held for each call, this would wait for ever.
      expect(await readFile('/proc/self/comm', 'utf8')).toMatch(/./);
    } finally {
      closeSync(descriptor);
    }
    await expect.poll(() => disks.use().catch((error: Error) => error.message)).toMatch(/ENOTCONN/);
    spawnSync('umount', [place]);
    expect(await disks.use()).toHaveLength(1);
  });
});
