// The port of a place that keeps backups: archives, and a sidecar file with the facts of each.

import type { Readable } from 'node:stream';
import type { Backup } from '../../shared/backups/port.ts';

export interface WriteOptions {
  /** Ends the write and removes what was written. */
  signal?: AbortSignal;
  /**
   * The facts of the archive, asked for once all of its content was read. They are stored before
   * the archive gets its name: whenever a process dies, there is no archive without its sidecar.
   */
  sidecar?: () => Backup;
}

/**
 * Every method rejects with an AppError `not_found` for a name that isn't there, and with a
 * StackError when the place can't be used. Messages hold no secrets.
 */
export interface BackupTarget {
  readonly kind: 'directory' | 's3';
  /** The directory or the s3:// address, without secrets. */
  readonly place: string;
  /**
   * Stores an archive: hidden until it is complete and on the disk, then under its name at once.
   * Rejects with an AppError `conflict` if the name is taken, and with the error of `content` when
   * that fails. After a rejection nothing is left.
   */
  write(name: string, content: AsyncIterable<Uint8Array>, options?: WriteOptions): Promise<void>;
  /** The whole archive, in order. The reader must read it to the end or destroy it. */
  read(name: string): Promise<{ body: Readable; bytes: number }>;
  /**
   * The sidecars whose archive is there, newest first. Sidecars that can't be read are left out.
   */
  list(): Promise<Backup[]>;
  /** Writes or replaces the sidecar `<name>.json`. */
  putSidecar(backup: Backup): Promise<void>;
  /** Deletes the archive, then its sidecar. Deleting what isn't there is no error. */
  remove(name: string): Promise<void>;
  /**
   * Deletes what killed backups left: partial archives, sidecars without one. Resolves with names.
   */
  clean(): Promise<string[]>;
  /** Null if the storage doesn't say. */
  freeBytes(): Promise<number | null>;
  /** Rejects if the place can't be listed or written. */
  check(): Promise<void>;
}

export const ARCHIVE_SUFFIX = '.tar.zst.age';
export const SIDECAR_SUFFIX = '.json';

/** `holdfast-20260131T023000Z.tar.zst.age`. */
export function archiveName(at: Date): string {
  return `holdfast-${at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z${ARCHIVE_SUFFIX}`;
}

/** One part of a path, visible, and no sidecar. */
export function isArchiveName(name: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9._ -]{0,199}$/.test(name) && !name.endsWith(SIDECAR_SUFFIX);
}
