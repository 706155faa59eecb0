// Keeps backups in S3-compatible storage. An archive is uploaded in parts: the storage shows it
// only once it is complete.

import { Readable } from 'node:stream';
import type { S3mini } from 's3mini';
import { AppError, StackError } from '@holdfast/kit/app-error';
import { mapConcurrent } from '@holdfast/kit/concurrency';
import { formatBytes } from '@holdfast/kit/format';
import { retry } from '@holdfast/kit/retry';
import { type Backup, backupSchema } from '../../shared/backups/port.ts';
import {
  DEFAULT_LIMITS,
  explainS3,
  isTransient,
  type S3Limits,
  type S3Storage,
  s3Client,
  uploadsIn,
  type UnfinishedUpload,
} from './s3-client.ts';
import { ARCHIVE_SUFFIX, type BackupTarget, isArchiveName, SIDECAR_SUFFIX, type WriteOptions } from './target.ts';

/** Some storage wants parts of one size. Two are in memory: one is filled while one is sent. */
const PART_BYTES = 16 * 1024 * 1024;
const MAX_PARTS = 10_000;
const SIDECARS_AT_ONCE = 8;
const MAX_SIDECAR_BYTES = 1024 * 1024;

export class S3Target implements BackupTarget {
  readonly kind = 's3';
  readonly place: string;
  readonly #storage: S3Storage;
  readonly #prefix: string;
  readonly #limits: S3Limits;
  /** Sidecars by key, as long as their ETag stays the same. */
  readonly #known = new Map<string, { etag: string; backup: Backup | undefined }>();
  #client: Promise<S3mini> | undefined;

  constructor(storage: S3Storage, limits: Partial<S3Limits> = {}) {
    this.#storage = storage;
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    this.#prefix = storage.prefix === '' ? '' : `${storage.prefix.replaceAll(/^\/+|\/+$/g, '')}/`;
    this.place = `s3://${storage.bucket}/${this.#prefix}`.replace(/\/$/, '');
  }

  async write(name: string, content: AsyncIterable<Uint8Array>, { signal, sidecar }: WriteOptions = {}): Promise<void> {
    const key = this.#key(name);
    if ((await this.#sizeOf(key)) !== undefined)
      throw new AppError('conflict', `${this.#url(name)} already exists. It was not changed.`);
    const uploadId = await this.#call((s3) => s3.getMultipartUploadId(key), signal);
    let described = false;
    try {
      const parts: { partNumber: number; etag: string }[] = [];
      let bytes = 0;
      for await (const part of inParts(content, PART_BYTES)) {
        const partNumber = parts.length + 1;
        if (partNumber > MAX_PARTS) throw tooLarge(this.place);
        parts.push(await this.#call((s3) => s3.uploadPart(key, uploadId, part, partNumber), signal));
        bytes += part.length;
      }
      if (sidecar !== undefined) {
        described = true;
        await this.putSidecar(sidecar());
      }
      await this.#complete(key, uploadId, { parts, bytes }, signal);
    } catch (error) {
      await this.#abort(key, uploadId);
      // Rule: a sidecar that can't be deleted now is deleted by a later run.
      if (described) await this.#call((s3) => s3.deleteObject(`${key}${SIDECAR_SUFFIX}`)).catch(() => undefined);
      throw error;
    }
  }

  /** Continues after a lost connection where it ended. */
  async read(name: string): Promise<{ body: Readable; bytes: number }> {
    const key = this.#key(name);
    const bytes = await this.#sizeOf(key);
    if (bytes === undefined) throw this.#notFound(name);
    return { body: Readable.from(this.#download(key, bytes), { objectMode: false }), bytes };
  }

  async list(): Promise<Backup[]> {
    const objects = await this.#objects();
    const archives = [...objects.keys()].filter(
      (name) => isArchiveName(name) && objects.has(`${name}${SIDECAR_SUFFIX}`),
    );
    const sidecars = await mapConcurrent(archives, SIDECARS_AT_ONCE, async (name) =>
      this.#sidecar(name, objects.get(`${name}${SIDECAR_SUFFIX}`)),
    );
    return sidecars
      .filter((backup) => backup !== undefined)
      .toSorted((one, other) => other.created_at.localeCompare(one.created_at));
  }

  async putSidecar(backup: Backup): Promise<void> {
    const text = `${JSON.stringify(backup, null, 2)}\n`;
    await this.#call((s3) => s3.putObject(`${this.#key(backup.name)}${SIDECAR_SUFFIX}`, text, 'application/json'));
  }

  async remove(name: string): Promise<void> {
    const key = this.#key(name);
    await this.#call((s3) => s3.deleteObject(key));
    await this.#call((s3) => s3.deleteObject(`${key}${SIDECAR_SUFFIX}`));
  }

  async clean(): Promise<string[]> {
    const uploads = await this.#uploads();
    const stale = uploads.filter(({ initiated }) => Date.now() - Date.parse(initiated) >= this.#limits.staleUploadMs);
    for (const { key, uploadId } of stale) await this.#abort(key, uploadId);
    const underWay = uploads.filter((upload) => !stale.includes(upload)).map(({ key }) => key);
    const objects = await this.#objects();
    const lonely = [...objects.keys()].filter(
      (name) =>
        isOurSidecar(name) && !objects.has(name.slice(0, -5)) && !underWay.includes(this.#prefix + name.slice(0, -5)),
    );
    for (const name of lonely) await this.#call((s3) => s3.deleteObject(`${this.#prefix}${name}`));
    return [...stale.map(({ key }) => key.slice(this.#prefix.length)), ...lonely];
  }

  async freeBytes(): Promise<null> {
    return null;
  }

  async check(): Promise<void> {
    const key = `${this.#prefix}.holdfast-check`;
    await this.#objects();
    await this.#call((s3) => s3.putObject(key, 'x'));
    await this.#call((s3) => s3.deleteObject(key));
  }

  /**
   * Some storage answers 200 with an error inside, and an answer may get lost after the work was
   * done: the size of the object decides.
   */
  async #complete(
    key: string,
    uploadId: string,
    { parts, bytes }: { parts: { partNumber: number; etag: string }[]; bytes: number },
    signal?: AbortSignal,
  ): Promise<void> {
    signal?.throwIfAborted();
    const failure = await this.#call((s3) => s3.completeMultipartUpload(key, uploadId, parts), signal).then(
      () => undefined,
      (error: unknown) => error,
    );
    const stored = await this.#sizeOf(key);
    if (stored === bytes) return;
    if (failure !== undefined) throw failure as Error;
    const found = stored === undefined ? 'nothing' : formatBytes(stored);
    throw new StackError(
      `${this.place} accepted ${formatBytes(bytes)} and stored ${found}.`,
      'check the storage, then run the backup again',
    );
  }

  async #abort(key: string, uploadId: string): Promise<void> {
    // Rule: an upload that can't be aborted now is aborted as stale by a later run.
    await this.#call((s3) => s3.abortMultipartUpload(key, uploadId)).catch(() => undefined);
  }

  async *#download(key: string, bytes: number): AsyncGenerator<Uint8Array> {
    let at = 0;
    let failures = 0;
    while (at < bytes) {
      const from = at;
      try {
        const response = await this.#call((s3) => s3.getObjectRaw(key, from === 0, from));
        for await (const chunk of response.body ?? []) {
          at += chunk.length;
          yield chunk;
        }
        if (at < bytes) throw Object.assign(new Error('The answer ended early.'), { code: 'ECONNRESET' });
      } catch (error) {
        failures = at > from ? 1 : failures + 1;
        if (error instanceof AppError || error instanceof StackError) throw error;
        if (failures >= this.#limits.tries || !isTransient(error)) throw explainS3(error, this.place, this.#limits);
      }
    }
  }

  async #sizeOf(key: string): Promise<number | undefined> {
    return this.#call(async (s3) => {
      if ((await s3.objectExists(key)) !== true) return undefined;
      return s3.getContentLength(key);
    });
  }

  /** Names below the prefix, with their ETags. */
  async #objects(): Promise<Map<string, string>> {
    const found = await this.#call((s3) => s3.listObjects('/', this.#prefix));
    return new Map((found ?? []).map(({ Key, ETag }) => [Key.slice(this.#prefix.length), ETag]));
  }

  async #sidecar(name: string, etag = ''): Promise<Backup | undefined> {
    const key = `${this.#key(name)}${SIDECAR_SUFFIX}`;
    const known = this.#known.get(key);
    if (known !== undefined && known.etag === etag) return known.backup;
    const text = await this.#call((s3) => s3.getObject(key));
    const backup = text === null || text.length > MAX_SIDECAR_BYTES ? undefined : parseSidecar(text, name);
    this.#known.set(key, { etag, backup });
    return backup;
  }

  /** Uploads that were begun below the prefix and neither completed nor aborted. */
  async #uploads(): Promise<UnfinishedUpload[]> {
    const answer: unknown = await this.#call((s3) =>
      s3.listMultipartUploads('/', this.#prefix, 'GET', { prefix: this.#prefix }),
    );
    return uploadsIn(answer).filter(({ key }) => {
      const name = key.slice(this.#prefix.length);
      return key.startsWith(this.#prefix) && isArchiveName(name) && name.endsWith(ARCHIVE_SUFFIX);
    });
  }

  /** Tries again after a lost connection. Rejects with a sentence about this place. */
  async #call<T>(work: (s3: S3mini) => Promise<T>, signal?: AbortSignal): Promise<T> {
    this.#client ??= s3Client(this.#storage, this.#limits);
    const s3 = await this.#client;
    const stopped = signal ?? new AbortController().signal;
    let tries = 0;
    try {
      stopped.throwIfAborted();
      const outcome = await retry(async () => ({ value: await work(s3) }), {
        stopped,
        failed: () => undefined,
        isFinal: (error) => ++tries >= this.#limits.tries || !isTransient(error),
      });
      stopped.throwIfAborted();
      return outcome!.value;
    } catch (error) {
      stopped.throwIfAborted();
      throw explainS3(error, this.place, this.#limits);
    }
  }

  #key(name: string): string {
    if (!isArchiveName(name)) throw this.#notFound(name);
    return `${this.#prefix}${name}`;
  }

  #url(name: string): string {
    return `${this.place}/${name}`;
  }

  #notFound(name: string): AppError {
    return new AppError('not_found', `No backup ${this.#url(name)}.`);
  }
}

/** Pieces of exactly `size` bytes, the last one shorter; at least one. */
export async function* inParts(content: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Buffer<ArrayBuffer>> {
  let part = Buffer.allocUnsafeSlow(size);
  let filled = 0;
  let parts = 0;
  for await (const chunk of content) {
    for (let at = 0; at < chunk.length;) {
      const taken = Math.min(size - filled, chunk.length - at);
      part.set(chunk.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled < size) continue;
      yield part;
      parts += 1;
      part = Buffer.allocUnsafeSlow(size);
      filled = 0;
    }
  }
  if (filled > 0 || parts === 0) yield part.subarray(0, filled);
}

function isOurSidecar(name: string): boolean {
  return /^holdfast-\d{8}T\d{6}Z\.tar\.zst\.age\.json$/.test(name);
}

function parseSidecar(text: string, name: string): Backup | undefined {
  try {
    const backup = backupSchema.parse(JSON.parse(text));
    return backup.name === name ? backup : undefined;
  } catch {
    // Cut off or another program's: not a backup of ours.
    return undefined;
  }
}

function tooLarge(place: string): StackError {
  return new StackError(
    `The archive is larger than ${formatBytes(MAX_PARTS * PART_BYTES)}, the most that ${place} can keep.`,
    'leave out the history (BACKUP_HISTORY=false), or use a directory as the target',
  );
}
