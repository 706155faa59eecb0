// Takes a backup of a running stack: files first, then the databases, each at one moment.

import { createHash, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { fileProblemOf } from '@holdfast/kit/files';
import { withDatabase } from '@holdfast/kit/postgres';
import type { Backup } from '../../shared/backups/port.ts';
import { archiveBytes, type ArchiveWriter, type EncryptionKey } from './archive.ts';
import { copyDatabase, type Snapshot, withSnapshots } from './copy-out.ts';
import { copyPart, type FilePart, sizeOfParts } from './file-parts.ts';
import { FORMAT, FORMAT_VERSION, type Header, HEADER_NAME, type Manifest, MANIFEST_NAME, rowsOf } from './manifest.ts';
import { type DatabasePlace, isLeftOut, readSchemaNumber } from './tables.ts';
import { archiveName, type BackupTarget } from './target.ts';

/** What a backup holds. */
export interface BackupSource {
  stack: Backup['stack'];
  release: string;
  /**
   * In the order of their snapshots. The state comes last: it knows of everything that was to be
   * done in the others.
   */
  databases: readonly DatabasePlace[];
  files: readonly FilePart[];
  /** PEM. */
  caFile: string;
}

export interface BackupProgress {
  /** In plain words: `Copying cot_router`. */
  phase: string;
  /** 0 to 100. */
  percent: number;
  /** Of the source; null at the beginning. */
  bytesPerSecond: number | null;
  secondsLeft: number | null;
}

export interface TakeOptions {
  source: BackupSource;
  target: BackupTarget;
  key: EncryptionKey;
  history: boolean;
  /** `schedule`, `script`, or the name of a person. */
  requestedBy: string;
  /** Default: the standard name of this moment. */
  name?: string;
  progress?: (progress: BackupProgress) => void;
  signal?: AbortSignal;
  now?: () => Date;
}

const QUICK_MS = 10_000;

/** For a program that makes backups, before anything else: what the stack does goes first. */
export function yieldToStack(): void {
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
}

/**
 * Resolves when the archive and its sidecar are stored. After a rejection nothing is left in the
 * target; an aborted signal rejects with its reason.
 */
export async function takeBackup(options: TakeOptions): Promise<Backup> {
  const { source, target, key, history, requestedBy, now = () => new Date() } = options;
  const begun = performance.now();
  const at = now();
  const name = options.name ?? archiveName(at);
  const stopping = new AbortController();
  const signal = AbortSignal.any([stopping.signal, ...(options.signal === undefined ? [] : [options.signal])]);
  const header = await headerOf(source, history, at);
  const run = new Run(options, header, signal);
  const hash = createHash('sha256');
  let bytes = 0;
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const chunk of archiveBytes(key, at, (writer) => run.produce(writer))) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  }
  let backup: Backup | undefined;
  const sidecar = (): Backup =>
    (backup ??= {
      name,
      created_at: at.toISOString(),
      seconds: Math.round((performance.now() - begun) / 100) / 10,
      bytes,
      sha256: hash.digest('hex'),
      stack: source.stack,
      release: source.release,
      history,
      rows: run.rows,
      ca_fingerprint: header.ca_fingerprint,
      requested_by: requestedBy,
      permanent: false,
      proof: null,
    });
  try {
    await target.write(name, counted(), { signal, sidecar });
  } finally {
    stopping.abort();
  }
  return sidecar();
}

async function headerOf(source: BackupSource, history: boolean, at: Date): Promise<Header> {
  const schemas: Header['schemas'] = {};
  for (const { key, url, migrations } of source.databases)
    schemas[key] = await withDatabase(url, 'holdfast-backup', QUICK_MS, (sql) =>
      readSchemaNumber(sql, migrations),
    ).catch((error: unknown) => {
      throw new StackError(
        `Couldn't read the database ${key}: ${messageOf(error)}.`,
        'check that the stack is running',
        error,
      );
    });
  return {
    format: FORMAT,
    version: FORMAT_VERSION,
    release: source.release,
    architecture: process.arch,
    stack: source.stack,
    created_at: at.toISOString(),
    history,
    schemas,
    ca_fingerprint: await fingerprintOf(source.caFile),
  };
}

/** SHA-256 of the certificate, hex digits without colons. */
export async function fingerprintOf(caFile: string): Promise<string> {
  const pem = await readFile(caFile).catch((error: unknown) => {
    throw new StackError(`${caFile} ${fileProblemOf(error)}.`, 'run this as the user that the stack runs as', error);
  });
  return new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase();
}

/** One backup under way. */
class Run {
  readonly #options: TakeOptions;
  readonly #header: Header;
  readonly #signal: AbortSignal;
  readonly #begun = performance.now();
  #totalBytes = 0;
  #doneBytes = 0;
  rows = 0;

  constructor(options: TakeOptions, header: Header, signal: AbortSignal) {
    this.#options = options;
    this.#header = header;
    this.#signal = signal;
  }

  async produce(writer: ArchiveWriter): Promise<void> {
    const { source, history, now = () => new Date() } = this.#options;
    const beganAt = now();
    await writer.add(HEADER_NAME, json(this.#header));
    this.#totalBytes = await sizeOfParts(source.files);
    const files: Manifest['files'] = [];
    // A file that follows the database, as the head of the audit log, must not be ahead of it.
    for (const part of source.files) {
      files.push(await copyPart(part, writer, (bytes) => this.#report('Copying files', (this.#doneBytes += bytes))));
      this.#signal.throwIfAborted();
    }
    const databases = await withSnapshots(source.databases, this.#signal, (snapshots) =>
      this.#copy(snapshots, writer, history),
    );
    const manifest: Manifest = {
      format: FORMAT,
      began_at: beganAt.toISOString(),
      ended_at: now().toISOString(),
      entries: writer.entries,
      databases,
      files,
    };
    this.rows = rowsOf(manifest);
    this.#report('Finishing', this.#totalBytes);
    await writer.add(MANIFEST_NAME, json(manifest));
  }

  async #copy(snapshots: readonly Snapshot[], writer: ArchiveWriter, history: boolean): Promise<Manifest['databases']> {
    for (const { place, schema, tables } of snapshots) {
      if (schema !== this.#header.schemas[place.key])
        throw new StackError(`The database ${place.key} was upgraded meanwhile.`, 'run the backup again');
      for (const { name, heapBytes } of tables) if (!isLeftOut(place.key, name, history)) this.#totalBytes += heapBytes;
    }
    const copied: Manifest['databases'] = [];
    for (const snapshot of snapshots) {
      let [table, before] = ['', this.#doneBytes];
      const progress = (name: string, heapBytes: number): void => {
        if (name !== table) [table, before] = [name, this.#doneBytes];
        this.#doneBytes = before + heapBytes;
        this.#report(`Copying ${name}`, this.#doneBytes);
      };
      copied.push(await copyDatabase(snapshot, writer, { history, progress }));
    }
    return copied;
  }

  #report(phase: string, doneBytes: number): void {
    const seconds = (performance.now() - this.#begun) / 1000;
    const bytesPerSecond = seconds < 1 ? null : doneBytes / seconds;
    const share = this.#totalBytes === 0 ? 0 : Math.min(1, doneBytes / this.#totalBytes);
    this.#options.progress?.({
      phase,
      percent: Math.round(share * 1000) / 10,
      bytesPerSecond,
      secondsLeft: bytesPerSecond === null || share < 0.01 ? null : Math.round((seconds / share) * (1 - share)),
    });
  }
}

function json(document: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(document)}\n`);
}
