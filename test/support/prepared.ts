// Directories that many test files begin with: made once, kept in node_modules, copied for each.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

const KEPT = join(import.meta.dirname, '../../node_modules/.cache/prepared');

/** Puts a copy of what `make` makes of `inputs` at `target`, which does not exist yet. */
export async function copyPrepared(
  target: string,
  inputs: unknown,
  make: (path: string) => Promise<void>,
): Promise<void> {
  const kept = join(KEPT, createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 16));
  if (!existsSync(kept)) {
    await make(target);
    keep(target, kept);
  } else copy(kept, target);
}

function keep(from: string, kept: string): void {
  mkdirSync(dirname(kept), { recursive: true });
  const partial = mkdtempSync(`${kept}-`);
  try {
    copy(from, join(partial, 'copy'));
    renameSync(join(partial, 'copy'), kept);
  } catch (error) {
    // Another process has kept one meanwhile.
    if (!existsSync(kept)) throw error;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

function copy(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-a', '--reflink=auto', from, to], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`cp ended with ${status}: ${stderr}`);
}
