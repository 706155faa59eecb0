// Serves downloads and deletions: /Marti/sync/missionquery, /Marti/sync/content, GET and DELETE of
// /Marti/api/files/{hash}.

import { messageOf } from '@holdfast/kit/app-error';
import { limitPerCaller } from '@holdfast/kit/concurrency';
import { visiblePlaces } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer, PageFault, plainText } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, invalid } from '../http/route.ts';
import type { Resource } from '../model/mission.ts';
import { request, requestedHash, contentDisposition, pathHash, servedType } from './query-parameters.ts';
import { fileChanges } from './catalog-routes.ts';
import type { FilesOptions } from './options.ts';
import { contentUrl } from './file-views.ts';

export interface ByteRange {
  /** First byte, counted from 0. */
  from: number;
  length: number;
}

/**
 * The header Range (RFC 9110, 14): one range of bytes; several at once are answered with the whole
 * file. What is asked for of a file of so many bytes; undefined: all of it; `unsatisfiable`:
 * nothing of it.
 */
export function byteRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') return part(Math.max(0, size - Number(last)), size, size);
  if (last !== '' && Number(last) < Number(first)) return undefined;
  return part(Number(first), last === '' ? size : Number(last) + 1, size);
}

function part(from: number, end: number, size: number): ByteRange | 'unsatisfiable' {
  const length = Math.min(end, size) - from;
  return length > 0 ? { from, length } : 'unsatisfiable';
}

/** What a reader who is slow holds in memory, about twice. */
const PART_BYTES = 128 * 1024;
const MAX_CONCURRENT = { most: 240, maxPerOne: 80 };

export class ContentRoutes {
  readonly #options: FilesOptions;
  readonly #downloads = limitPerCaller(MAX_CONCURRENT);
  readonly #changes;

  constructor(options: FilesOptions) {
    this.#options = options;
    this.#changes = fileChanges(options);
  }

  routes(): AdminRoute[] {
    return [
      { path: '/Marti/sync/missionquery', handlers: { GET: (c) => this.#missionQuery(c) } },
      { path: '/Marti/sync/content', handlers: { GET: (c) => this.#content(c) } },
      {
        path: '/Marti/api/files/:hash',
        handlers: { GET: (c) => this.#ofPath(c), DELETE: (c) => this.#removeOfPath(c) },
      },
    ];
  }

  /** The newest that the caller may see. What others have and what nobody has look the same. */
  async #fileOf(c: AdminContext, wanted: { hash?: string; uid?: string }): Promise<Resource> {
    const groups = await visiblePlaces(c.env.caller, this.#options);
    const file = await this.#options.resources.find({ groups, ...wanted });
    if (file === undefined) throw new CoreFault('not found', 'File not found.');
    return file;
  }

  async #missionQuery(c: AdminContext): Promise<Response> {
    const hash = requestedHash(c);
    if (hash === undefined) throw invalid('hash is missing');
    return plainText(contentUrl(this.#options, (await this.#fileOf(c, { hash })).hash));
  }

  async #content(c: AdminContext): Promise<Response> {
    const hash = requestedHash(c);
    const uid = request(c, 'uid');
    if (hash === undefined && uid === undefined) throw invalid('hash or uid is missing');
    return this.#sent(
      c,
      await this.#fileOf(c, { ...(hash === undefined ? {} : { hash }), ...(uid === undefined ? {} : { uid }) }),
    );
  }

  async #ofPath(c: AdminContext): Promise<Response> {
    return this.#sent(c, await this.#fileOf(c, { hash: pathHash(c) }));
  }

  async #removeOfPath(c: AdminContext): Promise<Response> {
    await this.#changes.remove(c, { hash: pathHash(c) });
    return emptyAnswer();
  }

  #sent(c: AdminContext, file: Resource): Response {
    const { sizeBytes, hash, mimeType } = file;
    const tag = `"${hash}"`;
    const condition = c.req.header('if-range');
    const asksForPart = condition === undefined || condition === tag;
    const range = asksForPart ? byteRange(c.req.header('range'), sizeBytes) : undefined;
    if (range === 'unsatisfiable')
      throw new PageFault(416, 'The requested range is outside the file.', {
        headers: { 'content-range': `bytes */${sizeBytes}` },
      });
    const { from, length } = range ?? { from: 0, length: sizeBytes };
    const headers: Record<string, string> = {
      'content-type': servedType(mimeType),
      'content-length': String(length),
      'content-disposition': contentDisposition(file.filename === '' ? file.name : file.filename),
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'accept-ranges': 'bytes',
      etag: tag,
    };
    if (range !== undefined) headers['content-range'] = `bytes ${from}-${from + length - 1}/${sizeBytes}`;
    const status = range === undefined ? 200 : 206;
    const isEmpty = length === 0 || c.req.method === 'HEAD';
    return new Response(isEmpty ? null : this.#bytesOf(c, file, { from, length }), { status, headers });
  }

  /**
   * Read part by part, each when the reader has taken the one before: no connection to the database
   * waits for a phone.
   */
  #bytesOf(c: AdminContext, { id, hash }: Resource, { from, length }: ByteRange): ReadableStream<Uint8Array> {
    const { caller, connection } = c.env;
    const leave = this.#downloads.enter(caller.username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many downloads at once. Try again in a moment.', {
        headers: { 'retry-after': '10' },
      });
    c.req.raw.signal.addEventListener('abort', leave, { once: true });
    let at = from;
    const end = from + length;

    const next = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      const part = await this.#options.resources.bytes(id, at, Math.min(PART_BYTES, end - at));
      if (part === undefined || part.length === 0)
        throw new CoreFault('not found', 'The file was deleted in the meantime.');
      at += part.length;
      controller.enqueue(part);
      if (at < end) return;
      leave?.();
      controller.close();
    };

    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      try {
        await next(controller);
      } catch (error) {
        leave?.();
        this.#options.log.warn('file.broken_off', { hash, sent: at - from, of: length, error: messageOf(error) });
        if (connection.abort === undefined) controller.error(error);
        else connection.abort();
      }
    };

    return new ReadableStream({ pull, cancel: leave }, { highWaterMark: 0 });
  }
}
