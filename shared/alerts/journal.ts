// Keeps the state of the alert engine in a file beside the database, so that a restart while the
// database is unavailable neither repeats nor loses alerts. Files are replaced by rename, one write
// at a time; the newest content wins.

import { readFileSync, renameSync } from 'node:fs';
import { codeOf, messageOf } from '@holdfast/kit/app-error';
import { replaceFile } from '@holdfast/kit/files';
import type { Log } from '@holdfast/kit/log';
import type { Snapshot } from './memory.ts';
import { snapshotSchema } from './schemas.ts';

export interface AlertJournal {
  /** Undefined if there is none, or it can't be read. */
  load(): Snapshot | undefined;
  /** Resolves once this or newer content is on the disk. Never rejects: errors are logged. */
  save(snapshot: () => Snapshot): Promise<void>;
  /** Why the last write failed or hangs; undefined if it did not. */
  trouble(): string | undefined;
}

const HANGS_AFTER_MS = 2_000;

/** A journal in `file`; a missing directory is created. */
export function alertJournal(file: string, log: Log): AlertJournal {
  let writing: Promise<void> = Promise.resolve();
  let trouble: string | undefined;
  let writingSinceMs: number | undefined;
  let next: { snapshot: () => Snapshot; written: Promise<void> } | undefined;

  function load(): Snapshot | undefined {
    try {
      return snapshotSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      log.error('alerts.journal_not_read', { file, kept_as: `${file}.bad`, error: messageOf(error) });
      setAside();
      return undefined;
    }
  }

  /** Keeps the unreadable file, which may still be useful to a person. */
  function setAside(): void {
    try {
      renameSync(file, `${file}.bad`);
    } catch (error) {
      log.error('alerts.journal_not_set_aside', { file, error: messageOf(error) });
    }
  }

  function hangs(): boolean {
    return writingSinceMs !== undefined && performance.now() - writingSinceMs > HANGS_AFTER_MS;
  }

  function save(snapshot: () => Snapshot): Promise<void> {
    if (next !== undefined) {
      next.snapshot = snapshot;
      return next.written;
    }
    const mine = { snapshot, written: Promise.resolve() };
    next = mine;
    mine.written = writing.then(async () => {
      next = undefined;
      writingSinceMs = performance.now();
      const failure = await replaceFile(file, JSON.stringify(mine.snapshot())).then(
        () => undefined,
        (error: unknown) => messageOf(error),
      );
      if (failure !== undefined && failure !== trouble)
        log.error('alerts.journal_not_written', { file, error: failure });
      writingSinceMs = undefined;
      trouble = failure;
    });
    writing = mine.written;
    return mine.written;
  }

  return { load, save, trouble: () => (hangs() ? 'the disk does not answer' : trouble) };
}
