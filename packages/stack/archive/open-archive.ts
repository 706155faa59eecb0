// Opens an archive to look into it: its databases are loaded into a scratch server beside the data
// of a stack, which is gone afterwards.

import type { ReadArchive } from '@holdfast/backup/archive';
import type { DatabaseKey, VerifiedArchive } from '@holdfast/backup/manifest';
import type { DatabasePlace } from '@holdfast/backup/tables';
import { StackError } from '@holdfast/kit/app-error';
import { buildData, checkRoom } from '../backup/build-data.ts';
import { scratchOf } from '../backup/proof-child.ts';
import { guardScript, takeLock } from '../process/guard.ts';
import { layoutOf, makeDirectories } from '../process/layout.ts';
import { lockScratch, makeScratch, removeScratch } from '../proof/scratch.ts';

export interface OpenOptions {
  home: string;
  /** Data directory of the stack. */
  data: string;
  archive: ReadArchive;
  verified: VerifiedArchive;
  /** What is loaded. Events take most of the time and room. */
  only: { databases: readonly DatabaseKey[]; history: boolean };
  aborted: AbortSignal;
  progress: (phase: string) => void;
}

/**
 * Runs `use` with the loaded databases, at this release's schema. Rejects with a StackError if a
 * proof is running, or without room. What a killed process leaves is deleted by the next proof.
 */
export async function withArchive<T>(
  { home, data, archive, verified, only, aborted, progress }: OpenOptions,
  use: (databases: readonly DatabasePlace[]) => Promise<T>,
): Promise<T> {
  const scratch = scratchOf(data);
  const lock = await lockScratch(home, scratch);
  try {
    const layout = layoutOf(await makeScratch(scratch));
    checkRoom(scratch, verified);
    makeDirectories(layout);
    const guard = await takeLock(guardScript(home), layout.lock, () => undefined);
    if (guard === undefined) throw new StackError(`${layout.root} is in use.`, 'wait a minute, then run it again');
    let outcome: { value: T } | undefined;
    const inspect = async (databases: readonly DatabasePlace[]): Promise<void> => {
      outcome = { value: await use(databases) };
    };
    try {
      await buildData({ home, layout, archive, verified, guard, aborted, only, progress, inspect });
    } finally {
      await guard.release();
    }
    if (outcome === undefined) throw new Error('the archive was not opened');
    return outcome.value;
  } finally {
    try {
      await removeScratch(scratch);
    } finally {
      await lock.release();
    }
  }
}
