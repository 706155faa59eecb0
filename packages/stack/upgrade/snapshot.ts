// Copies the data of a stopped stack, and puts a copy in the place of the data.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { explainFileError, StackError } from '@holdfast/kit/app-error';
import { syncDirectory } from '@holdfast/kit/files';
import { formatBytes } from '@holdfast/kit/format';
import { BEFORE_UPGRADE, PARTIAL, savedParts, SET_ASIDE, upgradeCopies } from '../parts.ts';
import type { Layout } from '../process/layout.ts';

/** Beside the copy: log of the database, logs of the start. */
const SPARE_BYTES = 64 * 1024 ** 2;

export interface Room {
  neededBytes: number;
  freeBytes: number;
}

/** The room that a copy needs. Counts blocks that share data twice. */
export function roomForSnapshot(layout: Layout): Room {
  const { bavail, bsize } = statfsSync(layout.root);
  const { stdout } = spawnSync('du', ['-s', '--block-size=1', '--total', '--', ...savedParts(layout)], {
    cwd: layout.root,
    encoding: 'utf8',
  });
  const total = Number(/^(\d+)\ttotal$/m.exec(stdout)?.[1] ?? 0);
  return { neededBytes: total + SPARE_BYTES, freeBytes: bavail * bsize };
}

/** A name for a copy that nothing has. */
export function freeName({ root }: Layout, prefix: typeof BEFORE_UPGRADE | typeof SET_ASIDE, version: string): string {
  for (let count = 1; ; count++) {
    const path = join(root, `${prefix}${version}${count === 1 ? '' : `-${count}`}`);
    if (!existsSync(path) && !existsSync(path + PARTIAL)) return path;
  }
}

/** Copies everything but the logs. The copy gets its name once it is complete and on the disk. */
export async function takeSnapshot(layout: Layout, snapshot: string): Promise<void> {
  if (existsSync(snapshot)) return;
  const partial = snapshot + PARTIAL;
  try {
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial, { mode: 0o700 });
    const copied = await runQuietly(
      'cp',
      ['-a', '--reflink=auto', '--', ...savedParts(layout), `${partial}/`],
      layout.root,
    );
    if (copied !== undefined) throw failedCopy(layout, copied);
    const synced = await runQuietly('sync', ['-f', partial], layout.root);
    if (synced !== undefined) throw failedCopy(layout, synced);
    renameSync(partial, snapshot);
    syncDirectory(layout.root);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error instanceof StackError ? error : explainFileError(error, partial);
  }
}

function failedCopy(layout: Layout, complaint: string): StackError {
  const { freeBytes } = roomForSnapshot(layout);
  return new StackError(
    `Couldn't copy the data in ${layout.root}: ${complaint}`,
    `free some space on that disk (${formatBytes(freeBytes)} free), then try again`,
  );
}

/** The last line of a failed program; undefined if it worked. */
async function runQuietly(program: string, args: readonly string[], cwd: string): Promise<string | undefined> {
  const child = spawn(program, args, { cwd, detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
  let text = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text = (text + chunk).slice(-2000)));
  const [code] = (await once(child, 'close')) as [number | null];
  return code === 0 ? undefined : (text.trim().split('\n').at(-1) ?? `${program} exited with ${code}`);
}

/** Moves the data into `aside`. Can be repeated until it is done. */
export function moveOut(layout: Layout, aside: string): void {
  mkdirSync(aside, { recursive: true, mode: 0o700 });
  for (const name of savedParts(layout)) renameSync(join(layout.root, name), join(aside, name));
  syncDirectory(aside);
  syncDirectory(layout.root);
}

/** Moves the parts of a copy into the data directory. Can be repeated until it is done. */
export function moveIn(layout: Layout, copy: string): void {
  if (!existsSync(copy)) return;
  for (const name of readdirSync(copy)) renameSync(join(copy, name), join(layout.root, name));
  syncDirectory(layout.root);
  rmSync(copy, { recursive: true });
}

/** Deletes all copies but these, and partial ones. */
export function discardCopies(layout: Layout, except: readonly (string | null)[]): string[] {
  const unwanted = upgradeCopies(layout).filter((path) => !except.includes(path));
  for (const path of unwanted) rmSync(path, { recursive: true, force: true });
  return unwanted.map((path) => basename(path));
}

/** A part that is a link to another place, which a copy would lack; undefined if there is none. */
export function linkOutside(layout: Layout): string | undefined {
  return savedParts(layout)
    .map((name) => join(layout.root, name))
    .find((path) => lstatSync(path).isSymbolicLink());
}
