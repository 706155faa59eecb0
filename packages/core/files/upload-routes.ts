// Serves uploads: /Marti/sync/upload and /Marti/sync/missionupload.

import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { messageOf } from '@holdfast/kit/app-error';
import { limitPerCaller, serialize } from '@holdfast/kit/concurrency';
import { sendingPlaces } from '../groups/own-groups.ts';
import { CoreFault, PageFault, plainText, wrapped } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, invalid } from '../http/route.ts';
import { parsedXml } from '../http/xml-body.ts';
import type { Resource } from '../model/mission.ts';
import type { NewResource } from '../store/resources.ts';
import {
  request,
  requestedAll,
  requestedHash,
  requestedKeywords,
  requestedNumber,
  BYTES,
  goodText,
  lastPart,
  MAX_NAME,
  MAX_TOOL,
  plainType,
  textFault,
} from './query-parameters.ts';
import type { FilesOptions } from './options.ts';
import { contentUrl, toMetadataView, textJson } from './file-views.ts';
import { type Spool, type SpooledFile, tooLarge } from './spool.ts';
import { readZipEntry } from './zip-entry.ts';

/**
 * The file in the body of an upload: the body itself, or one part of a form. Nothing of it is kept
 * in memory.
 */
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
const PARTS: ReadonlySet<string | undefined> = new Set(['assetfile', 'resource', 'file']);
const LIMITS = { files: 4, fields: 32, parts: 36, fieldSize: 1024, headerPairs: 32, headerSize: 8 * 1024 };

export function isForm(contentType: string): boolean {
  return /^\s*multipart\//i.test(contentType);
}

/**
 * The file of the first part of that name. Rejects with a CoreFault for what is no such form, and
 * as `Spool.receive` does.
 */
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
  throw new CoreFault('invalid', 'Invalid Request: the form has no part assetfile, resource or file with a file');
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
  return new CoreFault('invalid', `Invalid Request: couldn't read the form: ${messageOf(cause)}`, { cause });
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
    throw new PageFault(400, 'The upload is incomplete.', { cause });
  }
}

/** What a form is larger than its file. */
const MAX_FORM_BYTES = 256 * 1024;
const MAX_CONCURRENT = { most: 32, maxPerOne: 16 };
export const MISSION_PACKAGE = 'missionpackage';
export const ICON_SET = 'iconset';

export class UploadRoutes {
  readonly #options: FilesOptions;
  readonly #uploads = limitPerCaller(MAX_CONCURRENT);
  /** PostgreSQL holds a file in its memory while it is written. */
  readonly #write = serialize();

  constructor(options: FilesOptions) {
    this.#options = options;
  }

  routes(): AdminRoute[] {
    return [
      { path: '/Marti/sync/upload', handlers: { POST: (c) => this.#upload(c) } },
      { path: '/Marti/sync/missionupload', handlers: { POST: (c) => this.#missionUpload(c) } },
      { path: '/Marti/api/iconset', handlers: { POST: (c) => this.#iconSet(c) } },
    ];
  }

  #placesOf(c: AdminContext): Promise<number[]> {
    return sendingPlaces(c.env.caller, [...requestedAll(c, 'groups'), ...requestedAll(c, 'group')], this.#options);
  }

  async #received<T>(
    c: AdminContext,
    read: (body: UploadBody) => Promise<Upload>,
    keep: (upload: Upload) => Promise<T>,
  ): Promise<T> {
    const declared = Number(c.req.header('content-length') ?? 0);
    const most = this.#options.spool.maxBytes + MAX_FORM_BYTES;
    if (declared > most) throw tooLarge(this.#options.spool.maxBytes);
    const leave = this.#uploads.enter(c.env.caller.username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many uploads at once. Try again in a moment.', {
        headers: { 'retry-after': '10' },
      });
    try {
      await this.#options.spool.demandRoom(declared);
      const contentType = c.req.header('content-type') ?? '';
      const upload = await read({ contentType, body: c.req.raw.body });
      try {
        return await keep(upload);
      } finally {
        await upload.file.remove();
      }
    } finally {
      leave();
    }
  }

  /** Throws for a hash that is not the one the caller says. */
  #newResource(c: AdminContext, { file, mimeType }: Upload, name: string): Omit<NewResource, 'places' | 'uid'> {
    const claimed = requestedHash(c);
    const { hash, sizeBytes } = file;
    if (claimed !== undefined && claimed !== hash)
      throw invalid(`the hash of the file is ${hash}, not ${claimed}: it was damaged on its way, or is another one`);
    const latitude = requestedNumber(c, 'latitude', -90, 90);
    const longitude = requestedNumber(c, 'longitude', -180, 180);
    return {
      hash,
      sizeBytes,
      name,
      filename: name,
      mimeType: plainType(mimeType) ?? BYTES,
      keywords: requestedKeywords(c),
      submitter: c.env.caller.username,
      creatorUid: request(c, 'creatorUid') ?? '',
      tool: request(c, 'tool', MAX_TOOL) ?? 'public',
      submissionTime: this.#options.now(),
      expiration: -1,
      location: latitude === undefined || longitude === undefined ? null : { latitude, longitude },
      altitude: requestedNumber(c, 'altitude', -1e6, 1e9) ?? null,
    };
  }

  /** As the query says, else as the form does. */
  #nameOf(c: AdminContext, parameter: string, { filename, file }: Upload): string {
    const given = requestedAll(c, parameter)[0] ?? filename;
    const name = goodText(parameter, lastPart(given), MAX_NAME);
    return name === '' ? file.hash : name;
  }

  #stored(row: Resource): void {
    const { id, hash, sizeBytes: bytes, submitter: user } = row;
    this.#options.log.info('file.stored', { id, hash, bytes, user });
  }

  /** A version of its own under its uid. */
  async #upload(c: AdminContext): Promise<Response> {
    checkTexts(c);
    const places = await this.#placesOf(c);
    const uid = request(c, 'uid') ?? randomUUID();
    const read = (body: UploadBody): Promise<Upload> =>
      (isForm(body.contentType) ? readForm : readRaw)(body, this.#options.spool);
    const row = await this.#received(c, read, (got) => {
      const file = { ...this.#newResource(c, got, this.#nameOf(c, 'name', got)), places, uid };
      return this.#write(() => this.#options.resourceWriter.add(file, got.file));
    });
    this.#stored(row);
    return textJson(toMetadataView(row));
  }

  /** A file with the tool `iconset`, under the uid that is in its iconset.xml. */
  async #iconSet(c: AdminContext): Promise<Response> {
    if (!isForm(c.req.header('content-type') ?? '')) throw invalid('the body must be a form with a part file');
    const places = await this.#placesOf(c);
    const row = await this.#received(
      c,
      (body) => readForm(body, this.#options.spool),
      async (got) => {
        const uid = await iconSetUid(got.file.path);
        const file = { ...this.#newResource(c, got, this.#nameOf(c, 'name', got)), tool: ICON_SET, places, uid };
        return this.#write(() => this.#options.resourceWriter.add(file, got.file));
      },
    );
    this.#stored(row);
    return wrapped('java.lang.String', 'You successfully uploaded', this.#options.nodeId);
  }

  /** One file of each hash: whoever brings it again shares it with his groups too. */
  async #missionUpload(c: AdminContext): Promise<Response> {
    checkTexts(c);
    if (!isForm(c.req.header('content-type') ?? '')) throw invalid('the body must be a form with a part assetfile');
    const places = await this.#placesOf(c);
    const row = await this.#received(
      c,
      (body) => readForm(body, this.#options.spool),
      (got) => {
        const known = this.#newResource(c, got, this.#nameOf(c, 'filename', got));
        const keywords = [...new Set([...known.keywords, MISSION_PACKAGE])];
        const file = { ...known, keywords, places, uid: known.hash };
        return this.#write(() => this.#options.resourceWriter.join(file, got.file));
      },
    );
    this.#stored(row);
    return plainText(contentUrl(this.#options, row.hash));
  }
}

/** What cannot be kept is refused before the file comes. */
function checkTexts(c: AdminContext): void {
  for (const parameter of ['name', 'filename'])
    for (const given of requestedAll(c, parameter)) goodText(parameter, lastPart(given), MAX_NAME);
  requestedKeywords(c);
  request(c, 'creatorUid');
  request(c, 'tool', MAX_TOOL);
  requestedHash(c);
  requestedNumber(c, 'latitude', -90, 90);
  requestedNumber(c, 'longitude', -180, 180);
  requestedNumber(c, 'altitude', -1e6, 1e9);
}

const ICON_SET_INDEX = { called: 'iconset.xml', maxBytes: 2_000_000 };

/** As its iconset.xml says. Rejects with a CoreFault that says why the file is no icon set. */
async function iconSetUid(path: string): Promise<string> {
  try {
    const index = await readZipEntry(path, (name) => lastPart(name) === ICON_SET_INDEX.called, ICON_SET_INDEX);
    const [set] = parsedXml(index.toString('utf8')).getElementsByTagName('iconset');
    const uid = set?.getAttribute('uid') ?? '';
    const fault = uid === '' ? 'is missing' : textFault(uid, MAX_NAME);
    if (fault === undefined) return uid;
    throw new Error(`its uid ${fault}`);
  } catch (cause) {
    throw invalid(`the file is no icon set: ${messageOf(cause)}`);
  }
}
