// Reads a release archive safely: checks all entries before unpacking, and sizes and checksums
// while unpacking.

import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { type Entry, getFileNameLowLevel, openPromise, type ZipFile } from 'yauzl';
import { StackError } from '@holdfast/kit/app-error';

/**
 * An entry of a release archive, by its name. Names that leave the folder, hide something or
 * collide with another name are refused before anything is written.
 */
export interface NamedEntry {
  /** Path in the archive; a directory ends with a slash. */
  name: string;
}

/** The limit of file systems. */
const MAX_PART_BYTES = 255;
const MAX_NAME_BYTES = 1000;
// oxlint-disable-next-line no-control-regex -- finds control characters
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffd]/;

/** What is wrong with a name, as the end of a sentence; undefined if it is valid. */
export function nameProblem(name: string): string | undefined {
  const parts = (name.endsWith('/') ? name.slice(0, -1) : name).split('/');
  if (CONTROL.test(name)) return 'has control characters or broken text in its name';
  if (name.includes('\\')) return 'has a backslash in its name';
  if (name.startsWith('/') || /^[A-Za-z]:/.test(name)) return 'has an absolute name';
  if (parts.includes('..')) return 'leads out of its folder';
  if (parts.some((part) => part === '' || part === '.')) return 'has an empty part in its name';
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `has a name longer than ${MAX_NAME_BYTES} bytes`;
  if (parts.some((part) => Buffer.byteLength(part) > MAX_PART_BYTES))
    return `has a part longer than ${MAX_PART_BYTES} bytes in its name`;
  return undefined;
}

/** The first two entries whose names collide, ignoring case; undefined if there are none. */
export function namesakes(entries: readonly NamedEntry[]): [name: string, other: string] | undefined {
  const seen = new Map<string, string>();
  const listed = new Set<string>();
  for (const { name } of entries) {
    const path = name.replace(/\/$/, '');
    if (listed.has(path)) return [name, name];
    listed.add(path);
    const parts = path.split('/');
    // The paths of files also name their directories.
    for (let length = 1; length <= parts.length; length += 1) {
      const isDirectory = length < parts.length || name.endsWith('/');
      const each = parts.slice(0, length).join('/') + (isDirectory ? '/' : '');
      const folded = parts.slice(0, length).join('/').normalize('NFC').toLowerCase();
      const other = seen.get(folded) ?? each;
      if (other !== each) return [each, other];
      seen.set(folded, each);
    }
  }
  return undefined;
}

export interface ArchiveEntry {
  /** Path in the archive; a directory ends with a slash. */
  name: string;
  isDirectory: boolean;
  isExecutable: boolean;
  bytes: number;
  source: Entry;
}

export interface Limits {
  entries: number;
  bytes: number;
}

/** A release has about 3000 files with 1.5 GB. */
export const LIMITS: Limits = { entries: 50_000, bytes: 16 * 1024 ** 3 };
export const AGAIN = 'download the archive again from https://tak.gov. Nothing of this one was used';

/** The index is kept in memory: names, comments and extra fields of the entries. */
const MAX_INDEX_BYTES = 64 * 1024 ** 2;
const MAX_QUOTED_LENGTH = 300;
const ENCRYPTED = 0x41;
const METHODS = [0, 8];
const TYPE = 0o170000;
const REGULAR = 0o100000;
const DIRECTORY = 0o040000;
const ANY_MAY_RUN = 0o111;
const BEGINNING_BYTES = 512;

export class ReleaseArchive {
  /** The name for messages. */
  readonly name: string;
  readonly entries: readonly ArchiveEntry[];
  readonly #path: string;
  readonly #zip: ZipFile;

  private constructor(path: string, name: string, zip: ZipFile, entries: readonly ArchiveEntry[]) {
    this.#path = path;
    this.#zip = zip;
    this.name = name;
    this.entries = entries;
  }

  static async open(path: string, name: string, limits: Limits = LIMITS): Promise<ReleaseArchive> {
    await refuseOtherKinds(path, name);
    const zip = await openPromise(path, { autoClose: false, decodeStrings: false }).catch((error: unknown) => {
      throw asRefusal(error, name);
    });
    try {
      const entries = await readEntries(zip, name, limits);
      return new ReleaseArchive(path, name, zip, entries);
    } catch (error) {
      zip.close();
      throw asRefusal(error, name);
    }
  }

  /** Unpacked size of all files. */
  get bytes(): number {
    return this.entries.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** The contents of a file, checked when they come to their end. */
  async *contents(entry: ArchiveEntry): AsyncGenerator<Buffer> {
    let bytes = 0;
    let checksum = 0;
    try {
      const stream: Readable = await this.#zip.openReadStreamPromise(entry.source);
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > entry.bytes) break;
        checksum = crc32(chunk, checksum);
        yield chunk;
      }
    } catch (error) {
      throw asRefusal(error, this.name, entry.name);
    }
    if (bytes !== entry.bytes) throw otherSize(this.name, entry.name);
    if (checksum !== entry.source.crc32)
      throw new StackError(`${this.name} is damaged: wrong checksum of ${quoted(entry.name)}.`, AGAIN);
  }

  /** The contents of a short text file. */
  async text(entry: ArchiveEntry, maxBytes: number): Promise<string> {
    return (await this.bytesOf(entry, maxBytes)).toString('utf8');
  }

  /** The contents of a file that fits into memory. */
  async bytesOf(entry: ArchiveEntry, maxBytes: number): Promise<Buffer> {
    if (entry.bytes > maxBytes)
      throw new StackError(`${this.name}: ${quoted(entry.name)} is longer than ${maxBytes} bytes.`, AGAIN);
    const chunks: Buffer[] = [];
    for await (const chunk of this.contents(entry)) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  /** SHA-256 of the whole archive. */
  async sha256(): Promise<string> {
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(this.#path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
    return hash.digest('hex');
  }

  close(): void {
    this.#zip.close();
  }
}

export function quoted(name: string): string {
  const shown = name.length > MAX_QUOTED_LENGTH ? `${name.slice(0, MAX_QUOTED_LENGTH)}...` : name;
  return JSON.stringify(shown).replaceAll(/[\u007f-\u009f\u2028\u2029\ufffd]/g, '?');
}

async function refuseOtherKinds(path: string, name: string): Promise<void> {
  const beginning = await beginningOf(path);
  const isPackage = beginning.startsWith('\u00ed\u00ab\u00ee\u00db') || beginning.startsWith('!<arch>');
  if (isPackage || /\.(rpm|deb)$/i.test(name))
    throw new StackError(
      `${name} is a package for installing a TAK Server without containers.`,
      'use the download for Docker: takserver-docker-<version>.zip',
    );
  if (beginning.slice(257, 262) === 'ustar' || /\.(tar|tgz|tar\.\w+)$/i.test(name))
    throw new StackError(
      `${name} is a tar archive, but the release for Docker is a zip archive.`,
      'use the download for Docker as it is: takserver-docker-<version>.zip',
    );
  if (!beginning.startsWith('PK'))
    throw new StackError(
      `${name} is not a zip archive.`,
      'use the download for Docker: takserver-docker-<version>.zip',
    );
}

async function beginningOf(path: string): Promise<string> {
  const file: FileHandle = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(BEGINNING_BYTES), 0, BEGINNING_BYTES, 0);
    return buffer.toString('latin1', 0, bytesRead);
  } finally {
    await file.close();
  }
}

async function readEntries(zip: ZipFile, archive: string, limits: Limits): Promise<ArchiveEntry[]> {
  const entries: ArchiveEntry[] = [];
  let bytes = 0;
  let indexBytes = 0;
  for await (const source of zip.eachEntry()) {
    indexBytes += source.fileNameLength + source.extraFieldLength + source.fileCommentLength;
    if (indexBytes > MAX_INDEX_BYTES)
      throw new StackError(`${archive} is not a release: its index has more than ${MAX_INDEX_BYTES} bytes.`, AGAIN);
    const entry = asEntry(source, archive);
    bytes += entry.bytes;
    entries.push(entry);
    if (entries.length > limits.entries || bytes > limits.bytes)
      throw new StackError(
        `${archive} is not a release: it unpacks to more than ${limits.entries} entries or ${Math.round(limits.bytes / 1e9)} GB.`,
        AGAIN,
      );
  }
  const same = namesakes(entries);
  if (same !== undefined)
    throw new StackError(
      `${archive}: the entries ${quoted(same[0])} and ${quoted(same[1])} would be the same file.`,
      AGAIN,
    );
  return entries;
}

function asEntry(source: Entry, archive: string): ArchiveEntry {
  // A buffer, because of decodeStrings. The library's decoding would turn backslashes into slashes.
  const name = getFileNameLowLevel(source.generalPurposeBitFlag, source.fileNameRaw, source.extraFields, true);
  const mode = source.externalFileAttributes >>> 16;
  const isDirectory = name.endsWith('/');
  const problem = nameProblem(name) ?? kindProblem(mode, isDirectory) ?? packingProblem(source, isDirectory);
  if (problem !== undefined) throw new StackError(`${archive}: the entry ${quoted(name)} ${problem}.`, AGAIN);
  const isExecutable = (mode & ANY_MAY_RUN) !== 0 || name.endsWith('.sh');
  return { name, isDirectory, isExecutable, bytes: source.uncompressedSize, source };
}

function kindProblem(mode: number, isDirectory: boolean): string | undefined {
  const type = mode & TYPE;
  const isRight = type === 0 || type === (isDirectory ? DIRECTORY : REGULAR);
  return isRight ? undefined : 'is neither a file nor a directory (such as a link)';
}

function packingProblem(source: Entry, isDirectory: boolean): string | undefined {
  if ((source.generalPurposeBitFlag & ENCRYPTED) !== 0) return 'is encrypted';
  if (!METHODS.includes(source.compressionMethod))
    return `uses compression method ${source.compressionMethod}, not 0 or 8`;
  if (isDirectory && source.uncompressedSize > 0) return 'is a directory with data';
  return undefined;
}

function otherSize(archive: string, entry: string): StackError {
  return new StackError(`${archive} is damaged: wrong size of ${quoted(entry)}.`, AGAIN);
}

/**
 * Rewords errors of the library or zlib about a damaged archive. File system errors stay as they
 * are.
 */
function asRefusal(error: unknown, archive: string, entry?: string): unknown {
  if (error instanceof StackError || !(error instanceof Error)) return error;
  const isOfFileSystem = 'syscall' in error;
  if (isOfFileSystem) return error;
  if (entry !== undefined && /bytes in the stream/.test(error.message)) return otherSize(archive, entry);
  if (/strong encryption/.test(error.message)) return new StackError(`${archive} is encrypted.`, AGAIN);
  const where = entry === undefined ? '' : ` at ${quoted(entry)}`;
  return new StackError(`${archive} is truncated or damaged${where} (${error.message}).`, AGAIN, error);
}
