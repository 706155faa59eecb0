// Spools uploads on disk before they go into the database, in private files with random names.
// Counts and hashes each upload. A start removes leftovers of a crash.

import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import { PageFault } from '../http/answers.ts';
import type { FileParts } from '../store/resources.ts';

/** Bytes that have come, whole. */
export interface SpooledFile extends FileParts {
  sizeBytes: number;
  /** SHA-256, lower-case hex. */
  hash: string;
  /** Where it lies until it is removed. */
  path: string;
  /** To be called in any case. */
  remove(): Promise<void>;
}

export interface SpoolOptions {
  /** Made, and emptied; nobody else may use it. */
  directory: string;
  maxBytes: number;
  /** Milliseconds that never go back. */
  steadyMs: () => number;
  /** How many bytes the disk has left; default: as the system says. */
  freeBytes?: () => Promise<number>;
}

/** What is left for everybody else. */
const KEPT_FREE_BYTES = 256 * 1024 * 1024;
/**
 * File, table, write-ahead log, and the parts on their way: a file lies on the disk four times for
 * a moment.
 */
const COPIES = 4;
/** The disk, or what the account may have of it. */
const FULL = new Set(['ENOSPC', 'EDQUOT']);
const LOOK_EVERY_BYTES = 16 * 1024 * 1024;
/** Slower than the slowest link: whoever comes so slowly only holds a place. */
const SLOWEST_BYTES = 30_000;
const SLOWEST_WITHIN_MS = 60_000;

/** Throws a StackError when the directory cannot be made. */
export class Spool {
  readonly #options: SpoolOptions;
  readonly #freeBytes;

  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#freeBytes = options.freeBytes ?? freeIn(options.directory);
    makeEmpty(options.directory);
  }

  get maxBytes(): number {
    return this.#options.maxBytes;
  }

  /** Rejects with the page of 503 when so many bytes more would fill the disk. */
  async demandRoom(bytes: number): Promise<void> {
    if ((await this.#freeBytes()) - bytes * COPIES >= KEPT_FREE_BYTES) return;
    throw noRoom();
  }

  /**
   * Rejects as the source does, or with a page: 413 beyond the limit, 408 when it comes too slowly,
   * 503 without room. Then nothing is left.
   */
  async receive(source: AsyncIterable<Uint8Array>): Promise<SpooledFile> {
    const path = join(this.#options.directory, randomUUID());
    const remove = (): Promise<void> => rm(path, { force: true });
    try {
      const { sizeBytes, hash } = await this.#write(path, source);
      return { sizeBytes, hash, path, parts: (bytes) => partsOf(path, bytes), remove };
    } catch (error) {
      await remove();
      throw FULL.has(codeOf(error) ?? '') ? noRoom(error) : error;
    }
  }

  /** Throws for a source that brings nearly nothing for a minute. */
  #paced(): (bytes: number) => void {
    let since = this.#options.steadyMs();
    let came = 0;
    return (bytes) => {
      came += bytes;
      if (this.#options.steadyMs() - since < SLOWEST_WITHIN_MS) return;
      if (came < SLOWEST_BYTES) throw new PageFault(408, 'The upload is too slow.');
      since = this.#options.steadyMs();
      came = 0;
    };
  }

  async #write(path: string, source: AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number; hash: string }> {
    const hash = createHash('sha256');
    const pace = this.#paced();
    let sizeBytes = 0;
    let lookAt = LOOK_EVERY_BYTES;
    await using file = await open(path, 'wx', 0o600);
    for await (const chunk of source) {
      sizeBytes += chunk.length;
      if (sizeBytes > this.#options.maxBytes) throw tooLarge(this.#options.maxBytes);
      pace(chunk.length);
      if (sizeBytes >= lookAt) {
        await this.demandRoom(lookAt);
        lookAt += LOOK_EVERY_BYTES;
      }
      hash.update(chunk);
      await file.writeFile(chunk);
    }
    return { sizeBytes, hash: hash.digest('hex') };
  }
}

function makeEmpty(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    chmodSync(directory, 0o700);
    for (const left of readdirSync(directory)) rmSync(join(directory, left), { recursive: true, force: true });
  } catch (error) {
    throw new StackError(
      `Couldn't create or empty ${directory} for uploads: ${messageOf(error)}.`,
      'let the account of the core write there, and keep nothing else under that name',
      error,
    );
  }
}

function noRoom(cause?: unknown): PageFault {
  const headers = { 'retry-after': '300' };
  return new PageFault(503, "The server's disk is full. The file was not saved.", { cause, headers });
}

export function tooLarge(maxBytes: number): PageFault {
  return new PageFault(413, `The file is too large: at most ${maxBytes} bytes are allowed.`);
}

function freeIn(directory: string): () => Promise<number> {
  return async () => {
    const { bavail, bsize } = await statfs(directory);
    return bavail * bsize;
  };
}

async function* partsOf(path: string, bytes: number): AsyncGenerator<Uint8Array> {
  await using file = await open(path, 'r');
  const buffer = Buffer.allocUnsafe(bytes);
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, bytes);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}
