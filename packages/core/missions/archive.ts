// Packs a mission as a data package: its newest events, its files, and a manifest. Nothing of it is
// kept in memory: it is written as the reader takes it.

import { strToU8, Zip, ZipDeflate } from 'fflate';
import { limitPerCaller } from '@holdfast/kit/concurrency';
import type { FilesOptions } from '../files/options.ts';
import { contentDisposition, lastPart } from '../files/query-parameters.ts';
import { CoreFault, PageFault } from '../http/answers.ts';
import type { AdminContext } from '../http/route.ts';
import { MISSION_LIMITS, PERMISSIONS, type MissionWithGroups, type Resource } from '../model/mission.ts';
import { eventXml, XML_HEAD } from '../model/stored-event.ts';
import { escapeXml } from '../model/wire-text.ts';
import type { MissionKey } from '../store/missions.ts';
import type { MissionAccess, MissionApiOptions, Visit } from './access.ts';
import { nextBatch } from './contents.ts';
import { missionKey, readGuid } from './request.ts';

const PART_BYTES = 128 * 1024;
const AT_ONCE = { most: 8, maxPerOne: 2 };
/** Of ZIP without its extension for large files. */
const MAX_ENTRIES = 65_000;

interface Entry {
  path: string;
  attributes: Record<string, string>;
  isEvent: boolean;
}

export class ArchiveHandler {
  readonly #options: MissionApiOptions & FilesOptions;
  readonly #access: MissionAccess;
  readonly #packing = limitPerCaller(AT_ONCE);

  readonly pack = async (c: AdminContext): Promise<Response> => {
    const visited = await this.#access.visitWith('MISSION_READ', c, await this.#keyOf(c));
    const { mission, sees } = visited;
    const { files } = await this.#options.missions.reads.contents([mission.id], MISSION_LIMITS.contents);
    const seen = [];
    for (const { resource } of files)
      if ((await this.#options.resources.count({ groups: sees, id: resource.id })) > 0) seen.push(resource);
    const bytes = seen.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    if (bytes > MISSION_LIMITS.archiveBytes)
      throw new CoreFault(
        'conflict',
        `The files of ${mission.name} have ${bytes} bytes, and an archive at most ${MISSION_LIMITS.archiveBytes}. Download them one by one.`,
      );
    const leave = this.#packing.enter(c.env.caller.username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many archives at once. Try again in a moment.', {
        headers: { 'retry-after': '10' },
      });
    c.req.raw.signal.addEventListener('abort', leave, { once: true });
    const chunks = this.#zipped(visited, seen);
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = await chunks.next().catch((error: unknown) => {
            leave();
            throw error;
          });
          if (!done) return controller.enqueue(value);
          leave();
          controller.close();
        },
        async cancel() {
          leave();
          await chunks.return(undefined);
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, {
      headers: {
        'content-type': 'application/zip',
        'content-disposition': contentDisposition(`${mission.name}.zip`),
        'x-content-type-options': 'nosniff',
      },
    });
  };

  constructor(options: MissionApiOptions & FilesOptions, access: MissionAccess) {
    this.#options = options;
    this.#access = access;
  }

  /** CloudTAK asks with a guid where the name is. */
  async #keyOf(c: AdminContext): Promise<MissionKey> {
    const key = missionKey(c);
    const guid = 'name' in key ? readGuid(key.name) : undefined;
    return guid === undefined || (await this.#access.visitIfSeen(c, key)) !== undefined ? key : { guid };
  }

  async *#zipped({ mission, sees }: Visit, files: readonly Resource[]): AsyncGenerator<Uint8Array> {
    const ready: Uint8Array[] = [];
    const zip = new Zip((error, chunk) => {
      if (error !== null) throw error;
      ready.push(chunk);
    });
    const entries: Entry[] = [];
    const { events } = this.#options.missions;
    const wanted = (await events.newest(mission.id, sees)).slice(0, MAX_ENTRIES - files.length);
    for (let at = 0; at < wanted.length;) {
      const ids = nextBatch(wanted, at);
      at += ids.length;
      for (const event of await events.read(ids)) {
        const path = `cot/${entries.length}_${fileName(event.uid)}.cot`;
        entries.push({ path, attributes: { uid: event.uid }, isEvent: true });
        addText(zip, path, `${XML_HEAD}${eventXml(event)}`);
      }
      yield* ready.splice(0);
    }
    for (const file of files) {
      const path = `contents/${entries.length}_${fileName(lastPart(file.name))}`;
      entries.push({ path, attributes: attributesOf(file), isEvent: false });
      // What is in a mission is mostly compressed already, and some readers take no stored entries.
      const entry = new ZipDeflate(path, { level: 0 });
      zip.add(entry);
      for (let from = 0; from < file.sizeBytes; from += PART_BYTES) {
        const part = await this.#options.resources.bytes(file.id, from, Math.min(PART_BYTES, file.sizeBytes - from));
        if (part === undefined) throw new CoreFault('not found', 'A file was deleted in the meantime.');
        entry.push(part);
        yield* ready.splice(0);
      }
      entry.push(new Uint8Array(0), true);
    }
    addText(zip, 'MANIFEST/manifest.xml', manifest(mission, entries, this.#options.hostname));
    zip.end();
    yield* ready.splice(0);
  }
}

function addText(zip: Zip, path: string, text: string): void {
  const entry = new ZipDeflate(path, { level: 1 });
  zip.add(entry);
  entry.push(strToU8(text), true);
}

/** Of what others have called it: letters, digits, and a few marks that no file system minds. */
function fileName(text: string): string {
  const plain = text
    .toWellFormed()
    .replaceAll(/[^\p{L}\p{N}._ ()@+-]/gu, '_')
    .slice(-100);
  return plain.replace(/^\.+/, '_');
}

function attributesOf(file: Resource): Record<string, string> {
  const { name, filename, mimeType, keywords, creatorUid, submitter, tool, uid, submissionTime, sizeBytes } = file;
  return {
    name,
    filename,
    mimeType,
    keywords: keywords.join(','),
    creatorUid,
    submitter,
    tool,
    uid,
    submissionTime: submissionTime.toISOString(),
    size: String(sizeBytes),
  };
}

/** As devices read it; nothing of a password in it. */
function manifest(mission: MissionWithGroups, entries: readonly Entry[], hostname: string): string {
  const parameters = {
    uid: mission.guid,
    name: mission.name,
    mission_guid: mission.guid,
    mission_name: mission.name,
    mission_label: mission.name,
    mission_uid: `${hostname}-8443-ssl-${mission.name}`,
    mission_server: `${hostname}:8443:ssl`,
    creatorUid: mission.creatorUid,
    create_time: String(mission.createTime.getTime()),
    expiration: String(mission.expiration),
    chatroom: mission.chatRoom ?? '',
    description: mission.description ?? '',
    tool: mission.tool,
    onReceiveImport: 'true',
    onReceiveDelete: 'false',
  };
  const written = (values: Record<string, string>): string =>
    Object.entries(values)
      .map(([name, value]) => ` ${name}="${escapeXml(value)}"`)
      .join('');
  const configuration = Object.entries(parameters).map(([name, value]) => `<Parameter${written({ name, value })}/>`);
  const contents = entries.map(({ path, attributes, isEvent }) =>
    isEvent
      ? `<Content ignore="false"${written({ zipEntry: path })}><Parameter${written({ name: 'uid', value: attributes['uid'] ?? '' })}/></Content>`
      : `<Content ignore="false"${written({ zipEntry: path, ...attributes })}/>`,
  );
  const groups = mission.groups.map(({ name }) => `<Group${written({ name })}/>`).join('');
  const permissions = PERMISSIONS[mission.defaultRole].map((name) => `<Permission${written({ name })}/>`).join('');
  return (
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?><MissionPackageManifest version="2">' +
    `<Configuration>${configuration.join('')}</Configuration><Contents>${contents.join('')}</Contents>` +
    `<Groups>${groups}</Groups><Role${written({ name: mission.defaultRole })}>${permissions}</Role></MissionPackageManifest>`
  );
}
