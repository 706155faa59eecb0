// Records in the audit log that the whole stack was restored. The restore leaves a file in DATA_DIR
// for the next start: only that has the audit log and its key.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { codeOf, messageOf } from '@holdfast/kit/app-error';
import { replaceFile } from '@holdfast/kit/files';
import type { Log } from '@holdfast/kit/log';
import type { Actor, Audit } from '../audit/port.ts';
import type { Exclusive } from '../identity/port.ts';
import { RESTORED } from './restored.ts';

export const RESTORED_FILE = 'restored.json';

const restoredSchema = z.object({
  /** File name of the archive. */
  archive: z.string(),
  made_at: z.iso.datetime(),
  /** Of Holdfast, that made it. */
  release: z.string(),
  history: z.boolean(),
  rows: z.number(),
  restored_at: z.iso.datetime(),
});
export type Restored = z.infer<typeof restoredSchema>;

/** Leaves the note in DATA_DIR of the restored stack. */
export async function leaveRestoredNote(directory: string, restored: Restored): Promise<void> {
  await replaceFile(join(directory, RESTORED_FILE), `${JSON.stringify(restored)}\n`);
}

interface NoteDeps {
  /** Held, so that of several processes that start at once one records it. */
  peopleLock: Exclusive;
  audit: Pick<Audit, 'intend' | 'conclude' | 'list'>;
  log: Log;
}

/**
 * Records the restore of the note in that DATA_DIR once, and deletes the note. Never rejects: a
 * note that can't be recorded now is recorded by the next start.
 */
export async function recordRestore(directory: string, actor: Actor, deps: NoteDeps): Promise<void> {
  const file = join(directory, RESTORED_FILE);
  try {
    if (readNote(file) !== undefined) await deps.peopleLock(RESTORED, () => recordOnce(file, actor, deps));
  } catch (error) {
    deps.log.warn('backup.restore_not_recorded', { file, error: messageOf(error) });
  }
}

async function recordOnce(file: string, actor: Actor, { audit }: NoteDeps): Promise<void> {
  const restored = readNote(file);
  if (restored === undefined) return;
  const { archive, ...detail } = restored;
  const { results } = await audit.list({ action: RESTORED, since: detail.made_at }, 0, 100);
  // A process that died before it deleted the note has recorded it.
  if (!results.some((record) => record.detail.includes(detail.restored_at))) {
    const subject = { actor, action: RESTORED, target: archive };
    await audit.conclude(await audit.intend(subject, detail), subject, { result: 'ok', detail });
  }
  rmSync(file, { force: true });
}

function readNote(file: string): Restored | undefined {
  try {
    return restoredSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
