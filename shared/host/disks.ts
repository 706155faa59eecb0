// Measures how full file systems are, as df counts, and finds their mount points in /proc.

import { readFile, realpath, stat, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { codeOf } from '@holdfast/kit/app-error';
import { type Mount, mountPointOf, mountsIn } from '@holdfast/kit/files';
import type { Disks, DiskUse } from './port.ts';

interface Measurement {
  /** The path being measured. */
  path: string;
  since: number;
  result: Promise<DiskUse[]>;
}

/**
 * Measures the file systems of these paths one after the other. A path that does not exist, or that
 * this user can't read, counts toward the file system of its parent. A file system that hangs
 * occupies one thread, and each call fails at once until it answers.
 */
export function diskUse(paths: () => string[], options: { withinMs?: number } = {}): Disks {
  const { withinMs = 5000 } = options;
  let running: Measurement | undefined;

  function start(): Measurement {
    const measurement: Measurement = { path: '/proc', since: performance.now(), result: Promise.resolve([]) };
    const looking = (path: string): void => void (measurement.path = path);
    measurement.result = measure(paths(), looking).finally(() => (running = undefined));
    return measurement;
  }

  async function use(): Promise<DiskUse[]> {
    running ??= start();
    return within(running, running.since + withinMs - performance.now());
  }

  return { use };
}

async function within(measurement: Measurement, remainingMs: number): Promise<DiskUse[]> {
  const { result, since } = measurement;
  const late = Promise.withResolvers<never>();
  const giveUp = (): void => {
    const seconds = Math.round((performance.now() - since) / 100) / 10;
    late.reject(new Error(`the file system of ${measurement.path} has not answered for ${seconds} s`));
  };
  if (remainingMs <= 0) giveUp();
  const timer = setTimeout(giveUp, Math.max(remainingMs, 0));
  try {
    return await Promise.race([late.promise, result]);
  } finally {
    clearTimeout(timer);
  }
}

async function measure(paths: readonly string[], looking: (path: string) => void): Promise<DiskUse[]> {
  const mounts = await mountsOfProc();
  const found = new Map<number, DiskUse>();
  for (const path of paths) {
    looking(path);
    const place = await nearestExisting(resolve(path));
    const device = (await stat(place)).dev;
    const known = found.get(device);
    if (known === undefined)
      found.set(device, { mount: mountPointOf(place, mounts) ?? place, paths: [path], ...(await fill(place)) });
    else known.paths.push(path);
  }
  return withoutOverlays([...found.values()], mounts);
}

/**
 * The root of a container is an overlay on the engine's file system, which also holds its volumes:
 * it isn't counted twice.
 */
function withoutOverlays(uses: DiskUse[], mounts: readonly Mount[]): DiskUse[] {
  const isOverlay = ({ mount }: DiskUse): boolean =>
    mounts.findLast(({ point }) => point === mount)?.type === 'overlay';
  const plain = uses.filter((use) => !isOverlay(use));
  const rest = uses.filter(isOverlay).filter((overlay) => {
    const below = plain.find((use) => isAlike(use, overlay));
    below?.paths.push(...overlay.paths);
    return below === undefined;
  });
  return [...rest, ...plain];
}

function isAlike(one: DiskUse, other: DiskUse): boolean {
  const sizeBytes = one.total_bytes;
  return sizeBytes === other.total_bytes && Math.abs(one.free_bytes - other.free_bytes) <= sizeBytes / 100;
}

async function nearestExisting(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    // A directory that only another user can read counts toward the file system of its parent, as
    // far as visible.
    const unseen = ['ENOENT', 'ENOTDIR', 'EACCES'].includes(codeOf(error) ?? '');
    if (!unseen || path === '/') throw error;
    return nearestExisting(dirname(path));
  }
}

async function fill(path: string): Promise<Omit<DiskUse, 'mount' | 'paths'>> {
  const { bsize, frsize, blocks, bfree, bavail, files, ffree } = await statfs(path);
  // Blocks are counted in frsize, as statvfs(3) defines; bsize is only the preferred transfer size.
  const blockBytes = frsize > 0 ? frsize : bsize;
  return {
    total_bytes: blocks * blockBytes,
    free_bytes: bavail * blockBytes,
    used_pct: percentage(blocks - bfree, bavail),
    inodes_used_pct: files === 0 ? null : percentage(files - ffree, ffree),
  };
}

function percentage(used: number, free: number): number {
  return used + free === 0 ? 0 : Math.floor((used / (used + free)) * 1000) / 10;
}

/** Empty on systems without /proc. */
async function mountsOfProc(): Promise<Mount[]> {
  return mountsIn(await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''));
}
