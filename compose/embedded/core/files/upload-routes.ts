// /Marti/sync/upload and /Marti/sync/missionupload: files on their way in.

import { randomUUID } from 'node:crypto';
import { invalid } from '../admin/body.ts';
import { placesNamed, sendingRows } from '../admin/own-groups.ts';
import { isAdmin } from '../admin/roles.ts';
import type { AdminContext, AdminRoute } from '../admin/route.ts';
import type { FilesOptions } from './options.ts';
import { CoreFault, PageFault, plainText } from '../http/answers.ts';
import { oneAfterTheOther } from '../one-after-the-other.ts';
import type { NewResource } from '../store/resource-bytes.ts';
import type { Resource } from '../store/resources.ts';
import { asked, askedAll, askedHash, askedKeywords, askedNumber, goodText, MOST_NAME, MOST_TOOL } from './asked.ts';
import { BYTES, lastPart, plainType } from './file-names.ts';
import { contentUrl, shownMetadata, textJson } from './shown-files.ts';
import { tooLarge } from './spool.ts';
import { turnstile } from './turnstile.ts';
import { isForm, readForm, readRaw, type Upload, type UploadBody } from './upload-body.ts';

/** What a form is larger than its file. */
const MOST_OF_A_FORM = 256 * 1024;
const MOST_AT_A_TIME = { most: 32, mostOfOne: 16 };
export const MISSION_PACKAGE = 'missionpackage';

export function uploadRoutes(options: FilesOptions): AdminRoute[] {
  const { resourceWriter, spool, log, now } = options;
  const uploads = turnstile(MOST_AT_A_TIME);
  /** PostgreSQL holds a file in its memory while it is written. */
  const write = oneAfterTheOther();

  /** Places of the groups that will see the file: those named, else all that the caller may send into. */
  async function placesOf(c: AdminContext): Promise<number[]> {
    const { caller } = c.env;
    const wanted = [...askedAll(c, 'groups'), ...askedAll(c, 'group')]
      .flatMap((text) => text.split(','))
      .filter((text) => text !== '');
    const rows = await sendingRows(caller, options);
    if (wanted.length > 0) return placesNamed([...new Set(wanted)], rows);
    const active = rows.filter((row) => row.active || isAdmin(caller)).map(({ group }) => group.bitpos);
    if (active.length === 0) throw new CoreFault('forbidden', 'There is no group that you may send into.');
    return active;
  }

  async function received<T>(
    c: AdminContext,
    read: (body: UploadBody) => Promise<Upload>,
    keep: (upload: Upload) => Promise<T>,
  ): Promise<T> {
    const declared = Number(c.req.header('content-length') ?? 0);
    const most = spool.mostBytes + MOST_OF_A_FORM;
    if (declared > most) throw tooLarge(spool.mostBytes);
    const leave = uploads.enter(c.env.caller.username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many files are coming in at the moment.', { headers: { 'retry-after': '10' } });
    try {
      await spool.demandRoom(declared);
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
  function newResource(c: AdminContext, { file, mimeType }: Upload, name: string): Omit<NewResource, 'places' | 'uid'> {
    const claimed = askedHash(c);
    const { hash, sizeBytes } = file;
    if (claimed !== undefined && claimed !== hash)
      throw invalid(`the hash of the file is ${hash}, not ${claimed}: it was damaged on its way, or is another one`);
    const latitude = askedNumber(c, 'latitude', -90, 90);
    const longitude = askedNumber(c, 'longitude', -180, 180);
    return {
      hash,
      sizeBytes,
      name,
      filename: name,
      mimeType: plainType(mimeType) ?? BYTES,
      keywords: askedKeywords(c),
      submitter: c.env.caller.username,
      creatorUid: asked(c, 'creatorUid') ?? '',
      tool: asked(c, 'tool', MOST_TOOL) ?? 'public',
      submissionTime: now(),
      expiration: -1,
      location: latitude === undefined || longitude === undefined ? null : { latitude, longitude },
      altitude: askedNumber(c, 'altitude', -1e6, 1e9) ?? null,
    };
  }

  /** As the query says, else as the form does. */
  function nameOf(c: AdminContext, parameter: string, { filename, file }: Upload): string {
    const given = askedAll(c, parameter)[0] ?? filename;
    const name = goodText(parameter, lastPart(given), MOST_NAME);
    return name === '' ? file.hash : name;
  }

  function stored(row: Resource): void {
    const { id, hash, sizeBytes: bytes, submitter: user } = row;
    log.info('file.stored', { id, hash, bytes, user });
  }

  /** A version of its own under its uid. */
  async function upload(c: AdminContext): Promise<Response> {
    checkTexts(c);
    const places = await placesOf(c);
    const uid = asked(c, 'uid') ?? randomUUID();
    const read = (body: UploadBody): Promise<Upload> => (isForm(body.contentType) ? readForm : readRaw)(body, spool);
    const row = await received(c, read, (got) => {
      const file = { ...newResource(c, got, nameOf(c, 'name', got)), places, uid };
      return write(() => resourceWriter.add(file, got.file));
    });
    stored(row);
    return textJson(shownMetadata(row));
  }

  /** One file of each hash: whoever brings it again shares it with his groups too. */
  async function missionUpload(c: AdminContext): Promise<Response> {
    checkTexts(c);
    if (!isForm(c.req.header('content-type') ?? '')) throw invalid('the body must be a form with a part assetfile');
    const places = await placesOf(c);
    const row = await received(
      c,
      (body) => readForm(body, spool),
      (got) => {
        const known = newResource(c, got, nameOf(c, 'filename', got));
        const keywords = [...new Set([...known.keywords, MISSION_PACKAGE])];
        const file = { ...known, keywords, places, uid: known.hash };
        return write(() => resourceWriter.join(file, got.file));
      },
    );
    stored(row);
    return plainText(contentUrl(options, row.hash));
  }

  return [
    { path: '/Marti/sync/upload', handlers: { POST: upload } },
    { path: '/Marti/sync/missionupload', handlers: { POST: missionUpload } },
  ];
}

/** What cannot be kept is refused before the file comes. */
function checkTexts(c: AdminContext): void {
  for (const parameter of ['name', 'filename'])
    for (const given of askedAll(c, parameter)) goodText(parameter, lastPart(given), MOST_NAME);
  askedKeywords(c);
  asked(c, 'creatorUid');
  asked(c, 'tool', MOST_TOOL);
  askedHash(c);
  askedNumber(c, 'latitude', -90, 90);
  askedNumber(c, 'longitude', -180, 180);
  askedNumber(c, 'altitude', -1e6, 1e9);
}
