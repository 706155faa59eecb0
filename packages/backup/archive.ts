// Writes and reads archives: tar, compressed with zstd, encrypted with age. Memory stays bounded:
// nothing is read before the next stage has taken what came before.

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as WebStream } from 'node:stream/web';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { Encrypter } from 'age-encryption';
import { extract, type Header as TarHeader, type Pack, pack } from 'tar-stream';
import { codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import type { Secret } from '@holdfast/kit/secret';
import { type DecryptionKey, decrypter, wrongKey } from './decrypter.ts';
import {
  cutOff,
  damaged,
  foreign,
  type Header,
  HEADER_NAME,
  type Manifest,
  MANIFEST_NAME,
  parseHeader,
  parseManifest,
  type VerifiedArchive,
} from './manifest.ts';

export type { DecryptionKey };
/** What an archive is encrypted with. */
export type EncryptionKey = { passphrase: Secret } | { recipient: string };

const ZSTD_LEVEL = 3;
/** 64 MiB and a third of a second. age itself uses 18: four times both. */
const SCRYPT_WORK_FACTOR = 16;
const CHUNK_BYTES = 256 * 1024;
const MAX_JSON_BYTES = 64 * 1024 * 1024;
const AGE_MAGIC = 'age-encryption.org/v1\n';

export interface EntryContent {
  bytes: number;
  mode: number;
  chunks: AsyncIterable<Uint8Array>;
}

/** Entries of a new archive, in order. */
export class ArchiveWriter {
  readonly #pack: Pack;
  readonly #at: Date;
  readonly #entries: Manifest['entries'] = [];

  constructor(into: Pack, at: Date) {
    this.#pack = into;
    this.#at = at;
  }

  /** What was added so far. */
  get entries(): Manifest['entries'] {
    return this.#entries;
  }

  async add(name: string, content: Uint8Array, mode = 0o600): Promise<void> {
    await this.#entry({ name, size: content.length, mode }, content);
    this.#entries.push({ name, bytes: content.length, sha256: sha256Of(content) });
  }

  async addDirectory(name: string, mode: number): Promise<void> {
    await this.#entry({ name, size: 0, mode, type: 'directory' });
  }

  /** Rejects if there are more or fewer bytes than announced. */
  async addStream(name: string, { bytes, mode, chunks }: EntryContent): Promise<void> {
    const hash = createHash('sha256');
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    promise.catch(() => undefined);
    const header = { name, size: bytes, mode, mtime: this.#at };
    const sink = this.#pack.entry(header, (error) => (error ? reject(error) : resolve(undefined)));
    for await (const chunk of chunks) {
      hash.update(chunk);
      if (sink.write(chunk)) continue;
      await new Promise<undefined>((go) => {
        sink.once('drain', () => go(undefined)).once('close', () => go(undefined));
      });
    }
    sink.end(undefined);
    await promise;
    this.#entries.push({ name, bytes, sha256: hash.digest('hex') });
  }

  async #entry(
    header: Pick<TarHeader, 'name' | 'size' | 'mode'> & Partial<TarHeader>,
    content: Uint8Array = new Uint8Array(),
  ): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const done = (error?: Error | null): void => (error ? reject(error) : resolve());
      const whole = { ...header, mtime: this.#at };
      if (header.type === 'directory') this.#pack.entry(whole, done);
      else this.#pack.entry(whole, Buffer.from(content.buffer, content.byteOffset, content.length), done);
    });
  }
}

/**
 * The bytes of a new archive. `produce` writes its entries while they are read; when it rejects, so
 * does the reader. A reader that stops makes `produce` reject.
 */
export async function* archiveBytes(
  key: EncryptionKey,
  at: Date,
  produce: (writer: ArchiveWriter) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const tar = pack();
  const level = { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL };
  const zstd = createZstdCompress({ chunkSize: CHUNK_BYTES, params: level });
  const compressed = pipeline(Readable.from(tar, { objectMode: true, highWaterMark: 1 }), zstd);
  compressed.catch((error: unknown) => tar.destroy(asError(error)));
  const encrypted = await encrypter(key).encrypt(Readable.toWeb(zstd) as globalThis.ReadableStream<Uint8Array>);
  const produced = produce(new ArchiveWriter(tar, at)).then(
    () => tar.finalize(),
    (error: unknown) => {
      tar.destroy(asError(error));
      throw error;
    },
  );
  produced.catch(() => undefined);
  try {
    for await (const chunk of Readable.fromWeb(encrypted as WebStream<Uint8Array>)) yield chunk as Uint8Array;
    await compressed;
    await produced;
  } catch (error) {
    // What stopped the producer says more than the broken pipe behind it.
    tar.destroy(asError(error));
    await produced;
    throw error;
  } finally {
    tar.destroy();
    zstd.destroy();
  }
}

function encrypter(key: EncryptionKey): Encrypter {
  const made = new Encrypter();
  made.setScryptWorkFactor(SCRYPT_WORK_FACTOR);
  if ('passphrase' in key) made.setPassphrase(key.passphrase.reveal());
  else made.addRecipient(key.recipient);
  return made;
}

/** An entry while an archive is read. Its content must be read before the next entry. */
export interface ReadEntry {
  name: string;
  directory: boolean;
  mode: number;
  bytes: number;
  content: AsyncIterable<Uint8Array>;
}

export interface ReadArchive {
  /** The archive from its first byte; called once for each pass. */
  open: () => Promise<Readable>;
  key: DecryptionKey;
  /** Bytes of the archive that were read so far. */
  progress?: (bytes: number) => void;
  signal?: AbortSignal | undefined;
}

/**
 * Reads the whole archive and compares every entry with the manifest. Rejects with a StackError
 * for a wrong key, a damaged, incomplete, foreign or newer archive, and for entries that would lie
 * outside of it.
 */
export async function verifyArchive(archive: ReadArchive): Promise<VerifiedArchive> {
  let header: Header | undefined;
  let manifest: Manifest | undefined;
  const found: Manifest['entries'] = [];
  for await (const { name, directory, bytes, content } of entriesOf(archive)) {
    if (manifest !== undefined) throw damaged(`${MANIFEST_NAME} is not its last entry`);
    if (header === undefined && name !== HEADER_NAME) throw foreign();
    if (name === MANIFEST_NAME) {
      manifest = parseManifest(await textOf(content));
      continue;
    }
    if (directory) continue;
    const hash = createHash('sha256');
    if (name === HEADER_NAME) {
      const text = await textOf(content);
      header = parseHeader(text);
      hash.update(text);
    } else for await (const chunk of content) hash.update(chunk);
    found.push({ name, bytes, sha256: hash.digest('hex') });
  }
  if (header === undefined) throw foreign();
  if (manifest === undefined) throw cutOff();
  compareEntries(found, manifest.entries);
  return { header, manifest };
}

function compareEntries(found: Manifest['entries'], expected: Manifest['entries']): void {
  for (const [index, { name, bytes, sha256 }] of expected.entries()) {
    const entry = found[index];
    if (entry?.name !== name) throw damaged(`${name} is missing`);
    if (entry.bytes !== bytes || entry.sha256 !== sha256) throw damaged(`${name} is not as it was written`);
  }
  const extra = found[expected.length];
  if (extra !== undefined) throw damaged(`${extra.name} is not in its manifest`);
}

/** The entries of an archive, decrypted and unpacked, but not yet compared with the manifest. */
export async function* entriesOf({ open, key, progress, signal }: ReadArchive): AsyncGenerator<ReadEntry> {
  const source = await open();
  const seen = new Set<string>();
  const tar = extract();
  const decompressor = createZstdDecompress({ chunkSize: CHUNK_BYTES });
  try {
    const web = Readable.toWeb(Readable.from(fromAge(source, progress), { objectMode: false }));
    const decrypted = await decrypter(key)
      .decrypt(web as globalThis.ReadableStream<Uint8Array>)
      .catch((error: unknown) => {
        throw headerFailure(error, key);
      });
    const plain = Readable.fromWeb(decrypted as WebStream<Uint8Array>);
    const unpacked = pipeline(plain, decompressor, tar as unknown as NodeJS.WritableStream);
    unpacked.catch((error: unknown) => tar.destroy(asError(error)));
    for await (const entry of tar) {
      signal?.throwIfAborted();
      const { name, type, size, mode } = entry.header;
      const directory = type === 'directory';
      const path = directory ? name.replace(/\/$/, '') : name;
      refuseUnsafe(path, type, seen);
      yield { name: path, directory, mode: mode & 0o777, bytes: size, content: contentOf(entry) };
      entry.resume();
    }
    await unpacked;
  } catch (error) {
    throw contentFailure(error);
  } finally {
    tar.destroy();
    decompressor.destroy();
    source.destroy();
  }
}

/** Its failure reaches the reader of the content first. */
async function* contentOf(entry: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  try {
    yield* entry as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw contentFailure(error);
  }
}

/** Every entry is a file or a directory below the archive, and there once. */
function refuseUnsafe(path: string, type: string, seen: Set<string>): void {
  if (type !== 'file' && type !== 'directory')
    throw damaged(`${printable(path)} is a ${type}, and a backup holds only files`);
  const parts = path.split('/');
  const isPlain = parts.every((part) => part !== '' && part !== '.' && part !== '..' && !/[\\\p{Cc}]/u.test(part));
  if (!isPlain) throw damaged(`${printable(path)} would lie outside of the archive`);
  const isKnown = type === 'directory' ? parts[0] === 'files' : /^(?:files\/.+|databases\/.+|[a-z]+\.json)$/.test(path);
  if (!isKnown) throw damaged(`${printable(path)} is not part of a backup`);
  if (seen.has(path)) throw damaged(`${printable(path)} is there twice`);
  seen.add(path);
}

/** Reads the beginning of age's format, which a file of another kind doesn't have. */
async function* fromAge(source: AsyncIterable<Uint8Array>, progress?: (bytes: number) => void): AsyncGenerator<Buffer> {
  let bytes = 0;
  let head: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of source) {
    bytes += chunk.length;
    progress?.(bytes);
    const next: Buffer = head === undefined ? Buffer.from(chunk) : Buffer.concat([head, chunk]);
    head = head !== undefined && next.length < AGE_MAGIC.length ? next : undefined;
    if (head !== undefined) continue;
    if (bytes === next.length && !next.toString('latin1', 0, AGE_MAGIC.length).startsWith(AGE_MAGIC)) throw foreign();
    yield next;
  }
  if (head !== undefined) throw head.length > 0 && AGE_MAGIC.startsWith(head.toString('latin1')) ? cutOff() : foreign();
}

/** age's own words name no cause that a person could act on. */
function headerFailure(error: unknown, key: DecryptionKey): unknown {
  if (error instanceof StackError || isAbort(error)) return error;
  if (/no identity matched|work factor/.test(messageOf(error))) return wrongKey(key, error);
  return damaged('its beginning was changed', error);
}

function contentFailure(error: unknown): unknown {
  if (error instanceof StackError || isAbort(error) || codeOf(error)?.startsWith('E') === true) return error;
  if (/invalid tag|final chunk is empty|ciphertext/.test(messageOf(error)))
    return damaged('its end is missing, or a part of it was changed', error);
  // age vouches for every byte: whoever knew the key has put something else into the file.
  return foreign(error);
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

async function textOf(content: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.length;
    if (bytes > MAX_JSON_BYTES) throw damaged('an entry is larger than any of its kind');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function sha256Of(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

function printable(path: string): string {
  return JSON.stringify(path.slice(0, 200));
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(messageOf(thrown));
}
