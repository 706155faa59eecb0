// The file in the body of an upload: the body itself, or one part of a form. Nothing of it is kept in memory.

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { messageOf } from '../../../../shared/domain/thrown.ts';
import { CoreFault, PageFault } from '../http/answers.ts';
import type { Spool, SpooledFile } from './spool.ts';

export interface Upload {
  file: SpooledFile;
  /** As the part of the form says; empty where it does not. */
  filename: string;
  /** Of the part, or of the body. */
  mimeType: string;
}

export interface UploadBody {
  contentType: string;
  /** Undefined when the request has none. */
  body: ReadableStream<Uint8Array> | null;
}

/** Names of the part that holds the file. */
const PARTS: ReadonlySet<string | undefined> = new Set(['assetfile', 'resource']);
const LIMITS = { files: 4, fields: 32, parts: 36, fieldSize: 1024, headerPairs: 32, headerSize: 8 * 1024 };

export function isForm(contentType: string): boolean {
  return /^\s*multipart\//i.test(contentType);
}

/** The file of the first part of that name. Rejects with a CoreFault for what is no such form, and as `Spool.receive` does. */
export async function readForm({ contentType, body }: UploadBody, spool: Spool): Promise<Upload> {
  const form = formOf(contentType);
  const taken: { upload?: Promise<Upload>; failure?: Error } = {};
  // One that comes late, after the form has ended, would otherwise end the process.
  form.on('error', () => undefined);
  form.on('file', (name, part, filename: string | undefined, _encoding, mimeType) => {
    part.on('error', () => undefined);
    if (taken.upload !== undefined || !PARTS.has(name)) {
      part.resume();
      return;
    }
    form.once('close', () => part.destroy());
    taken.upload = spool.receive(part).then((file) => ({ file, filename: filename ?? '', mimeType }));
    taken.upload.catch((error: unknown) => {
      if (form.destroyed) return;
      taken.failure = error as Error;
      form.destroy(taken.failure);
    });
  });
  const [read] = await Promise.allSettled([pipeline(Readable.from(whole(body), { objectMode: false }), form)]);
  const [kept] = await Promise.allSettled([taken.upload]);
  const upload = kept.status === 'fulfilled' ? kept.value : undefined;
  if (read.status === 'fulfilled' && upload !== undefined) return upload;
  await upload?.file.remove();
  if (taken.failure !== undefined) throw taken.failure;
  if (read.status === 'rejected') throw read.reason instanceof PageFault ? read.reason : unreadable(read.reason);
  throw new CoreFault('invalid', 'Invalid Request: the form has no part assetfile or resource with a file');
}

function formOf(contentType: string): BusboyInstance {
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: LIMITS,
      isPartAFile: (name, _type, filename) => filename !== undefined || PARTS.has(name),
    });
  } catch (cause) {
    throw unreadable(cause);
  }
}

function unreadable(cause: unknown): CoreFault {
  return new CoreFault('invalid', `Invalid Request: the form cannot be read: ${messageOf(cause)}`, { cause });
}

/** The body as it comes. */
export async function readRaw({ contentType, body }: UploadBody, spool: Spool): Promise<Upload> {
  const file = await spool.receive(whole(body));
  return { file, filename: '', mimeType: contentType };
}

async function* whole(body: UploadBody['body']): AsyncGenerator<Uint8Array> {
  try {
    if (body !== null) yield* body as unknown as AsyncIterable<Uint8Array>;
  } catch (cause) {
    throw new PageFault(400, 'The upload has ended before its end.', { cause });
  }
}
