// Keeps backups in a directory: a local disk, or a mounted one.

import { randomUUID } from 'node:crypto';
import { createReadStream, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { type FileHandle, link, open, readdir, readFile, rename, rm, stat, statfs, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { AppError, codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import { replaceFile, syncDirectory } from '@holdfast/kit/files';
import { type Backup, backupSchema } from '../../shared/backups/port.ts';
import { type BackupTarget, isArchiveName, SIDECAR_SUFFIX, type WriteOptions } from './target.ts';

const PARTIAL = /^\.(?<name>.+)\.partial$/;

/** `directory` must exist: a missing one is often a disk that isn't mounted. */
export class DirectoryTarget implements BackupTarget {
  readonly kind = 'directory';
  readonly place: string;

  constructor(directory: string) {
    this.place = resolve(directory);
  }

  async write(name: string, content: AsyncIterable<Uint8Array>, { signal, sidecar }: WriteOptions = {}): Promise<void> {
    const [path, partial] = [this.#path(name), join(this.place, `.${name}.partial`)];
    let described = false;
    if (await exists(path)) throw taken(path);
    const file = await this.#explain(open(partial, 'wx', 0o600));
    try {
      await writeAll(file, content, signal);
      await file.sync();
      signal?.throwIfAborted();
      if (sidecar !== undefined) {
        if (await exists(path)) throw taken(path);
        described = true;
        await this.putSidecar(sidecar());
      }
      await publish(partial, path);
      syncDirectory(this.place);
    } catch (error) {
      if (described) await rm(`${path}${SIDECAR_SUFFIX}`, { force: true }).catch(() => undefined);
      throw explained(error, this.place);
    } finally {
      await file.close().catch(() => undefined);
      await rm(partial, { force: true }).catch(() => undefined);
    }
  }

  async read(name: string): Promise<{ body: ReturnType<typeof createReadStream>; bytes: number }> {
    const path = this.#path(name);
    const handle = await open(path, 'r').catch((error: unknown) => {
      throw codeOf(error) === 'ENOENT' ? notFound(path) : explained(error, path);
    });
    const found = await handle.stat();
    if (found.isFile()) return { body: handle.createReadStream({ highWaterMark: 1024 * 1024 }), bytes: found.size };
    await handle.close();
    throw new StackError(`${path} is not a file.`, 'give the archive of a backup');
  }

  async list(): Promise<Backup[]> {
    const names = new Set(await this.#names());
    const archives = [...names].filter((name) => isArchiveName(name) && names.has(`${name}${SIDECAR_SUFFIX}`));
    const sidecars = await Promise.all(archives.map((name) => this.#sidecar(name)));
    return sidecars
      .filter((backup) => backup !== undefined)
      .toSorted((one, other) => other.created_at.localeCompare(one.created_at));
  }

  async putSidecar(backup: Backup): Promise<void> {
    const path = `${this.#path(backup.name)}${SIDECAR_SUFFIX}`;
    await this.#explain(replaceFile(path, `${JSON.stringify(backup, null, 2)}\n`, `${path}.new`));
    syncDirectory(this.place);
  }

  async remove(name: string): Promise<void> {
    const path = this.#path(name);
    await this.#explain(rm(path, { force: true }));
    await this.#explain(rm(`${path}${SIDECAR_SUFFIX}`, { force: true }));
  }

  async clean(): Promise<string[]> {
    const names = await this.#names();
    const written = names.filter((name) => PARTIAL.test(name) && isOpen(join(this.place, name)));
    const archives = new Set([...names, ...written.map((name) => PARTIAL.exec(name)?.groups?.['name'])]);
    const stale = names.filter((name) => {
      if (PARTIAL.test(name)) return !written.includes(name);
      const of = /^(?<archive>holdfast-\d{8}T\d{6}Z\.tar\.zst\.age)\.json(?:\.new)?$/.exec(name)?.groups?.['archive'];
      return of !== undefined && !archives.has(of);
    });
    for (const name of stale) await this.#explain(rm(join(this.place, name), { force: true }));
    return stale;
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await this.#explain(statfs(this.place));
    return bavail * bsize;
  }

  async check(): Promise<void> {
    await this.#names();
    const probe = join(this.place, `.holdfast-${randomUUID()}`);
    try {
      await using file = await open(probe, 'wx', 0o600);
      await file.write('x');
      await file.sync();
    } catch (error) {
      throw explained(error, this.place);
    } finally {
      await rm(probe, { force: true });
    }
  }

  #path(name: string): string {
    if (!isArchiveName(name)) throw notFound(join(this.place, name));
    return join(this.place, name);
  }

  async #names(): Promise<string[]> {
    return this.#explain(readdir(this.place));
  }

  async #sidecar(name: string): Promise<Backup | undefined> {
    try {
      const backup = backupSchema.parse(JSON.parse(await readFile(`${this.#path(name)}${SIDECAR_SUFFIX}`, 'utf8')));
      return backup.name === name ? backup : undefined;
    } catch {
      // Cut off or another program's: not a backup of ours.
      return undefined;
    }
  }

  async #explain<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => {
      throw explained(error, this.place);
    });
  }
}

/** Content may fail before it is read: its end is awaited here, so that no write follows. */
async function writeAll(file: FileHandle, content: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
  for await (const chunk of content) {
    signal?.throwIfAborted();
    for (let at = 0; at < chunk.length;) {
      const { bytesWritten } = await file.write(chunk, at);
      at += bytesWritten;
    }
  }
}

/** Never replaces a file: a link can't be made where something is. Some disks have no links. */
async function publish(partial: string, path: string): Promise<void> {
  try {
    await link(partial, path);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw taken(path);
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(codeOf(error) ?? '')) throw error;
    if (await exists(path)) throw taken(path);
    await rename(partial, path);
    return;
  }
  await unlink(partial);
}

/** True while a process of this machine writes it. */
function isOpen(path: string): boolean {
  const real = realpathSync(path);
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .some((pid) => descriptorsOf(pid).some((target) => target === real));
}

/** Ended meanwhile, or of another user: none. */
function descriptorsOf(pid: string): string[] {
  const directory = `/proc/${pid}/fd`;
  return orElse<string[]>(() => readdirSync(directory), []).map((descriptor) =>
    // A process sees the descriptor by which it lists its own.
    orElse(() => readlinkSync(`${directory}/${descriptor}`), ''),
  );
}

function orElse<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === 'ENOENT') return false;
      throw explained(error, path);
    },
  );
}

function taken(path: string): AppError {
  return new AppError('conflict', `${path} already exists. It was not changed.`);
}

function notFound(path: string): AppError {
  return new AppError('not_found', `No backup ${path}.`);
}

function explained(error: unknown, place: string): unknown {
  if (error instanceof AppError || error instanceof StackError) return error;
  switch (codeOf(error) ?? '') {
    case 'ENOSPC':
    case 'EDQUOT':
      return new StackError(`The disk of ${place} is full.`, 'free some space there, or use another place', error);
    case 'EACCES':
    case 'EPERM':
      return new StackError(
        `This user can't read or write ${place}.`,
        'change its owner or mode, or use another place',
        error,
      );
    case 'ENOENT':
    case 'ENOTDIR':
      return new StackError(
        `${place} is not a directory, or does not exist.`,
        'create it, or mount the disk that holds it',
        error,
      );
    case 'EROFS':
      return new StackError(`${place} is on a read-only file system.`, 'use another place', error);
    case 'EEXIST':
      return new AppError('conflict', `Another backup is being written to ${place}. Try again in a second.`);
    case 'EIO':
    case 'ESTALE':
    case 'ETIMEDOUT':
      return new StackError(
        `The disk of ${place} fails: ${messageOf(error)}.`,
        'check the disk and its connection',
        error,
      );
    default:
      return error;
  }
}
