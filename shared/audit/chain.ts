// Chains the audit log: each record is hashed together with the previous hash, under a key that the
// database does not have. Nothing here touches the database.

import { createHmac, hkdfSync, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { codeOf, messageOf } from '@holdfast/kit/app-error';
import { replaceFile } from '@holdfast/kit/files';
import type { Fields, Log } from '@holdfast/kit/log';
import type { Secret } from '@holdfast/kit/secret';
import { withTimeout } from '@holdfast/kit/timeout';

/**
 * A record as text, cell by cell: a bigint of the database has more digits than a JavaScript
 * number.
 */
export interface ChainedRecord {
  seq: string;
  /** ISO 8601 with milliseconds. */
  at: string;
  actor: string;
  address: string;
  action: string;
  target: string;
  phase: string;
  result: string | null;
  detail: string;
  intent: string | null;
  request_id: string;
}

/** The new start of the chain after records were removed. */
export interface SignedCheckpoint {
  /** Of the last removed record. */
  seq: string;
  at: string;
  hash: string;
  /** Number of records removed with it. */
  removed: string;
}

export interface AuditChain {
  /** Hexadecimal. `previous` is the hash of the record before; empty for the first. */
  hash(previous: string, record: ChainedRecord): string;
  signature(checkpoint: SignedCheckpoint): string;
}

/** The last record of a chain; `{ seq: 0, hash: '' }` before the first. */
export interface Head {
  seq: number;
  hash: string;
}

export const NO_RECORD: Head = { seq: 0, hash: '' };

/** One chain for each AUDIT_KEY. */
export function auditChain(key: Secret): AuditChain {
  const chainKey = derived(key, 'holdfast audit chain 1');
  const checkpointKey = derived(key, 'holdfast audit checkpoint 1');
  return {
    hash: (previous, record) => hmac(chainKey, previous, cellsOf(record)),
    signature: ({ seq, at, hash, removed }) => hmac(checkpointKey, hash, [seq, at, removed]),
  };
}

/** JSON keeps the cells separate, whatever they contain. */
function hmac(key: Buffer, previous: string, cells: readonly (string | null)[]): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([previous, ...cells]))
    .digest('hex');
}

function cellsOf(record: ChainedRecord): (string | null)[] {
  const { seq, at, actor, address, action, target, phase, result, detail, intent, request_id } = record;
  return [seq, at, actor, address, action, target, phase, result, detail, intent, request_id];
}

function derived(key: Secret, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key.reveal(), '', purpose, 32));
}

/**
 * The last record of the audit log, kept in a file outside the database, so that truncating the log
 * in the database is detected. Once the recorded row is missing, the file stays unchanged until a
 * person removes it.
 */
export interface AuditHead {
  /** The last known record; undefined when there is none. Never rejects, and ends in time. */
  known(): Promise<Head | undefined>;
  /**
   * The file's content after everything was written to it; undefined when there is none, or it
   * can't be read.
   */
  inFile(): Promise<Head | undefined>;
  /**
   * The log has grown up to this record and still contains the known one. Does not wait for the
   * disk.
   */
  grown(head: Head): void;
  /** The known record is no longer in the log. */
  isMissing(head: Head): void;
}

const WITHIN_MS = 1_000;
const REMEDY =
  'let the user of the stack read and write this file and its directory, and free some disk space; until then a truncated log goes unnoticed';
const headSchema = z.object({ seq: z.int().min(1), hash: z.string().regex(/^[0-9a-f]{64}$/) });

/** `file` undefined: only this process remembers. */
export function auditHead(file: string | undefined, log: Log): AuditHead {
  // A writer of another container may have the same process id.
  const own = randomUUID();
  let last: Head | undefined;
  let missing: Head | undefined;
  let next: Head | undefined;
  let writing: Promise<void> | undefined;
  const reported = new Map<string, unknown>();

  /** Logs the same problem only once. */
  function complain(event: string, fields: Fields = {}): void {
    if (reported.get(event) !== fields['error']) log.error(event, fields);
    reported.set(event, fields['error']);
  }

  async function read(): Promise<Head | undefined> {
    return file === undefined ? undefined : readHeadFile(file, { error: complain });
  }

  /**
   * Another process may know a later record, and so may this one, whose file is still being
   * written.
   */
  async function known(): Promise<Head | undefined> {
    const kept = await read();
    if (missing !== undefined) return kept;
    return kept === undefined || (last !== undefined && last.seq > kept.seq) ? last : kept;
  }

  async function writeAll(path: string): Promise<void> {
    while (next !== undefined) {
      const head = next;
      next = undefined;
      await replaceFile(path, JSON.stringify(head), `${path}.${own}.new`).then(
        () => reported.clear(),
        (error: unknown) => complain('audit.head_not_written', { file: path, error: messageOf(error), remedy: REMEDY }),
      );
    }
    writing = undefined;
  }

  async function inFile(): Promise<Head | undefined> {
    await withTimeout(WITHIN_MS, () => new Error('timed out'), writing ?? Promise.resolve()).catch(() => undefined);
    return read();
  }

  return {
    inFile,
    known,
    grown(head) {
      missing = undefined;
      last = head;
      next = head;
      if (file !== undefined) writing ??= writeAll(file);
    },
    isMissing(head) {
      if (missing?.seq !== head.seq) {
        const remedy = 'see docs/audit.md, then remove the file';
        log.error('audit.cut_off', { seq: head.seq, file: file ?? null, remedy });
      }
      missing = head;
    },
  };
}

/** Undefined when there is none; an unreadable file is logged. */
export async function readHeadFile(file: string, log: Pick<Log, 'error'>): Promise<Head | undefined> {
  try {
    const late = (): Error => new Error('the disk does not answer');
    return headSchema.parse(JSON.parse(await withTimeout(WITHIN_MS, late, readFile(file, 'utf8'))));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') log.error('audit.head_not_read', { file, error: messageOf(error), remedy: REMEDY });
    return undefined;
  }
}
