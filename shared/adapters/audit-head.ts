// The last record of the audit log, kept in a file outside the database: whoever cuts off the end of the log in the
// database is found out. Once the record is missing there, the file stays as it is until a person removes it.

import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { codeOf, messageOf } from '../domain/thrown.ts';
import type { Fields, Log } from '../ports/log.ts';
import type { Head } from './audit-chain.ts';
import { replaceFile } from './replaced-file.ts';
import { withinMs } from './time-limit.ts';

export interface AuditHead {
  /** The last record that is known; undefined when none is. Never rejects, and ends in time. */
  known(): Promise<Head | undefined>;
  /** What the file says after everything was written to it; undefined when there is none, or none that can be read. */
  inFile(): Promise<Head | undefined>;
  /** The log has grown up to this record, and what was known is still in it. Does not wait for the disk. */
  grown(head: Head): void;
  /** The record that was known is not in the log any more. */
  isMissing(head: Head): void;
}

const WITHIN_MS = 1_000;
const REMEDY =
  'let the user of the stack read and write this file and its directory, with room on the disk; until then nobody sees when the end of the log is cut off';
const headSchema = z.object({ seq: z.int().min(1), hash: z.string().regex(/^[0-9a-f]{64}$/) });

/** Each writes beside the file under a name of its own: two that share one would take it from each other. */
let opened = 0;

/** `file` undefined: only this process remembers. */
export function auditHead(file: string | undefined, log: Log): AuditHead {
  const own = `${process.pid}.${(opened += 1)}`;
  let last: Head | undefined;
  let missing: Head | undefined;
  let next: Head | undefined;
  let writing: Promise<void> | undefined;
  const said = new Map<string, unknown>();

  /** Says the same thing once. */
  function complain(event: string, fields: Fields = {}): void {
    if (said.get(event) !== fields['error']) log.error(event, fields);
    said.set(event, fields['error']);
  }

  async function read(): Promise<Head | undefined> {
    return file === undefined ? undefined : readHeadFile(file, { error: complain });
  }

  /** Another process may know more, and so may this one, whose file is still being written. */
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
        () => said.clear(),
        (error: unknown) => complain('audit.head_not_written', { file: path, error: messageOf(error), remedy: REMEDY }),
      );
    }
    writing = undefined;
  }

  async function inFile(): Promise<Head | undefined> {
    await withinMs(WITHIN_MS, writing ?? Promise.resolve(), () => new Error('too late')).catch(() => undefined);
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

/** Undefined when there is none; one that cannot be read is logged. */
export async function readHeadFile(file: string, log: Pick<Log, 'error'>): Promise<Head | undefined> {
  try {
    const late = (): Error => new Error('the disk does not answer');
    return headSchema.parse(JSON.parse(await withinMs(WITHIN_MS, readFile(file, 'utf8'), late)));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') log.error('audit.head_not_read', { file, error: messageOf(error), remedy: REMEDY });
    return undefined;
  }
}
