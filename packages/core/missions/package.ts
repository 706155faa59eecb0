// Unpacks a mission package into a mission: events are stored and sent on, files become contents.
// All of it is looked at before anything is written.

import type { Readable } from 'node:stream';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { messageOf } from '@holdfast/kit/app-error';
import { limitPerCaller } from '@holdfast/kit/concurrency';
import type { FilesOptions } from '../files/options.ts';
import { BYTES, goodKeywords, lastPart, MAX_NAME, plainType, textFault } from '../files/query-parameters.ts';
import { readRaw } from '../files/upload-routes.ts';
import { sendingRows } from '../groups/own-groups.ts';
import { CoreFault, PageFault, wrapped } from '../http/answers.ts';
import { type AdminContext, invalid, isAdmin } from '../http/route.ts';
import { parsedXml } from '../http/xml-body.ts';
import { MISSION_LIMITS, type MissionWithGroups } from '../model/mission.ts';
import { stamps } from '../stream/framings.ts';
import { type Submitted, submittedEvent } from '../stream/event-parts.ts';
import type { MissionAccess, MissionApiOptions, Visit } from './access.ts';
import { audience } from './announce.ts';
import type { ContentHandlers } from './contents.ts';
import { uidDemanded } from './request.ts';

const AT_ONCE = { most: 8, maxPerOne: 2 };
const MAX_MANIFEST_BYTES = 4_000_000;
/** Of one event, and of all that are written at once. */
const MAX_EVENT_BYTES = 1_000_000;
const BATCH_BYTES = 4_000_000;

interface Named {
  name: string;
  mimeType: string;
  keywords: string[];
}

interface Target {
  visited: Visit;
  creatorUid: string;
  /** Of the groups that will see what comes. */
  places: readonly number[];
  username: string;
}

export class PackageHandler {
  readonly #options: MissionApiOptions & FilesOptions;
  readonly #access: MissionAccess;
  readonly #contents: Pick<ContentHandlers, 'takeIn'>;
  readonly #unpacking = limitPerCaller(AT_ONCE);
  readonly #hearers;
  readonly #stampAt;

  readonly unpack = async (c: AdminContext): Promise<Response> => {
    const creatorUid = uidDemanded(c, 'creatorUid');
    const visited = await this.#access.visitToWrite('MISSION_WRITE', c);
    const { username } = c.env.caller;
    const target = { visited, creatorUid, username, places: await this.#placesFor(c, visited.mission) };
    const leave = this.#unpacking.enter(username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many packages at once. Try again in a moment.', {
        headers: { 'retry-after': '10' },
      });
    try {
      const { spool } = this.#options;
      await spool.demandRoom(Number(c.req.header('content-length') ?? 0));
      const { file } = await readRaw({ contentType: '', body: c.req.raw.body }, spool);
      try {
        await this.#unpackFile(file.path, target);
      } finally {
        await file.remove();
      }
    } finally {
      leave();
    }
    return wrapped('MissionChange', [], this.#options.nodeId);
  };

  constructor(
    options: MissionApiOptions & FilesOptions,
    access: MissionAccess,
    contents: Pick<ContentHandlers, 'takeIn'>,
  ) {
    this.#options = options;
    this.#access = access;
    this.#contents = contents;
    this.#hearers = audience(options.missions.subscriptions, options.subscriptions);
    this.#stampAt = stamps(options.nodeId);
  }

  /** The groups of the mission that the caller may send into. */
  async #placesFor(c: AdminContext, { groups }: MissionWithGroups): Promise<number[]> {
    const { caller } = c.env;
    const all = groups.map(({ place }) => place);
    if (isAdmin(caller)) return all;
    const sends = new Set((await sendingRows(caller, this.#options)).map(({ group }) => group.bitpos));
    return all.filter((place) => sends.has(place));
  }

  async #unpackFile(path: string, target: Target): Promise<void> {
    const zip = await openPromise(path, { autoClose: false }).catch((cause: unknown) => {
      throw unreadable(cause);
    });
    try {
      const entries = await entriesOf(zip, this.#options.spool.maxBytes);
      const events = entries.filter(({ fileName }) => fileName.endsWith('.cot'));
      const manifest = entries.find(({ fileName }) => isManifest(fileName));
      const files = entries.filter(({ fileName }) => !fileName.endsWith('.cot') && !isManifest(fileName));
      if (files.some(({ fileName }) => fileName === 'changes.json'))
        throw new CoreFault('not implemented', 'Changes made offline (changes.json) are not supported.');
      const names = manifest === undefined ? new Map<string, Named>() : namesIn(await textOf(zip, manifest));
      const named = files.map((entry): [Entry, Named] => [
        entry,
        checkedName(entry.fileName, names.get(entry.fileName)),
      ]);
      for (const entry of events) await this.#readEvent(zip, entry, target);
      await this.#takeEvents(zip, events, target);
      const hashes: string[] = [];
      for (const [entry, name] of named) hashes.push(await this.#takeFile(zip, entry, name, target));
      for (let at = 0; at < hashes.length; at += MISSION_LIMITS.added)
        await this.#contents.takeIn(
          { ...target.visited, sees: target.places },
          { uids: [], hashes: [...new Set(hashes.slice(at, at + MISSION_LIMITS.added))] },
          target.creatorUid,
        );
    } finally {
      zip.close();
    }
  }

  async #readEvent(zip: ZipFile, entry: Entry, { username, places }: Target): Promise<Submitted> {
    const atMs = this.#options.now().getTime();
    const xml = Buffer.from(await bytesOf(zip, entry, MAX_EVENT_BYTES));
    try {
      const event = submittedEvent(xml, { sender: username, places, stamp: this.#stampAt(atMs), atMs });
      if (event !== undefined) return event;
    } catch (cause) {
      throw invalid(`${entry.fileName} is not well-formed: ${messageOf(cause)}`);
    }
    throw invalid(`${entry.fileName} is no event that can be stored: uid, type, times and point are needed`);
  }

  async #takeEvents(zip: ZipFile, entries: readonly Entry[], target: Target): Promise<void> {
    const { missions } = this.#options;
    let batch: Submitted[] = [];
    let bytes = 0;
    const flush = async (): Promise<void> => {
      if (batch.length === 0) return;
      await missions.submit(batch.map(({ row }) => row));
      const uids = [...new Set(batch.map(({ post }) => post.uid))];
      await this.#contents.takeIn(target.visited, { uids, hashes: [] }, target.creatorUid);
      const devices = await this.#hearers(target.visited.mission);
      for (const { sent } of batch) missions.announce.sent(devices, sent);
      batch = [];
      bytes = 0;
    };
    for (const entry of entries) {
      batch.push(await this.#readEvent(zip, entry, target));
      bytes += entry.uncompressedSize;
      if (bytes >= BATCH_BYTES) await flush();
    }
    await flush();
  }

  async #takeFile(zip: ZipFile, entry: Entry, named: Named, target: Target): Promise<string> {
    const { spool, resourceWriter, now } = this.#options;
    const file = await spool.receive(contentsOf(zip, entry));
    try {
      const { hash, sizeBytes } = file;
      const added = {
        ...named,
        hash,
        sizeBytes,
        uid: hash,
        filename: named.name,
        submitter: target.username,
        creatorUid: target.creatorUid,
        tool: 'public',
        submissionTime: now(),
        expiration: -1,
        location: null,
        altitude: null,
        places: target.places,
      };
      await resourceWriter.join(added, file);
      return hash;
    } finally {
      await file.remove();
    }
  }
}

function unreadable(cause: unknown): CoreFault {
  return new CoreFault('invalid', `Invalid Request: the mission package is no readable zip: ${messageOf(cause)}`, {
    cause,
  });
}

function isManifest(name: string): boolean {
  return name.toLowerCase().endsWith('manifest.xml');
}

/** Files only. Rejects for what unpacks to more than an upload may have. */
async function entriesOf(zip: ZipFile, maxBytes: number): Promise<Entry[]> {
  const entries: Entry[] = [];
  let bytes = 0;
  try {
    for await (const entry of zip.eachEntry()) {
      bytes += entry.uncompressedSize;
      if (!entry.fileName.endsWith('/')) entries.push(entry);
      if (bytes > maxBytes) throw new PageFault(413, `The package unpacks to more than ${maxBytes} bytes.`);
      if (entries.length > MISSION_LIMITS.packageEntries)
        throw new PageFault(413, `A package can have at most ${MISSION_LIMITS.packageEntries} files.`);
    }
  } catch (error) {
    throw error instanceof PageFault ? error : unreadable(error);
  }
  return entries;
}

/** Its checksum and size are checked by the reader. */
async function* contentsOf(zip: ZipFile, entry: Entry): AsyncGenerator<Uint8Array> {
  try {
    const stream: Readable = await zip.openReadStreamPromise(entry);
    yield* stream as AsyncIterable<Buffer>;
  } catch (error) {
    throw error instanceof PageFault ? error : unreadable(error);
  }
}

async function bytesOf(zip: ZipFile, entry: Entry, most: number): Promise<Uint8Array> {
  if (entry.uncompressedSize > most) throw invalid(`${entry.fileName} has more than ${most} bytes`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of contentsOf(zip, entry)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function textOf(zip: ZipFile, entry: Entry): Promise<string> {
  return new TextDecoder().decode(await bytesOf(zip, entry, MAX_MANIFEST_BYTES));
}

/** By the path of the entry: what the manifest calls it. */
function namesIn(manifest: string): Map<string, Named> {
  const names = new Map<string, Named>();
  try {
    for (const content of parsedXml(manifest).getElementsByTagName('Content')) {
      const of = (name: string): string => content.getAttribute(name) ?? '';
      const keywords = of('keywords')
        .split(',')
        .filter((each) => each !== '');
      names.set(of('zipEntry'), { name: of('name'), mimeType: of('mimeType'), keywords });
    }
  } catch (cause) {
    throw invalid(`the manifest is not well-formed: ${messageOf(cause)}`);
  }
  return names;
}

/** What the manifest says, as far as it may be kept; else what the entry is called. */
function checkedName(path: string, named: Named | undefined): Named {
  const name = lastPart(named?.name || path);
  const fault = textFault(name, MAX_NAME);
  if (name === '' || fault !== undefined)
    throw invalid(`the name of ${path.slice(0, MAX_NAME)} ${fault ?? 'is empty'}`);
  return { name, mimeType: plainType(named?.mimeType ?? '') ?? BYTES, keywords: goodKeywords(named?.keywords ?? []) };
}
