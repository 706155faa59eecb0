// Keeps archives of missions below DATA_DIR: a data package of the core, and a description beside
// it. An archive is there once its description is. What a crash leaves behind is deleted later.
// Several processes may share the directory, also from several machines.

import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import { serialize } from '@holdfast/kit/concurrency';
import { readBounded, replaceFile } from '@holdfast/kit/files';
import { formatBytes } from '@holdfast/kit/format';
import { API_ACCOUNT } from '@holdfast/kit/names';
import { fileLock } from '@holdfast/kit/shared-file';
import { HOUR_MS, MINUTE_MS } from '@holdfast/kit/time';
import { quoted } from '../answers.ts';
import { type CorePort, dataOf, WITHIN_MS } from '../request.ts';
import { MISSIONS } from './missions.ts';
import type { CoreMissions, MissionArchive, MissionArchives } from './port.ts';

export interface ArchiveOptions {
  /** Made when it is missing. */
  directory: string;
  missions: CoreMissions;
  port: CorePort;
  now: () => Date;
  /** Default: 5 GB. */
  maxBytes?: number;
}

/** Below DATA_DIR. */
export const ARCHIVES_DIRECTORY = 'mission-archives';
export const MAX_ARCHIVES = 200;
const MAX_BYTES = 5_000_000_000;
/** To pack or unpack 2 GB. */
const TRANSFER_MS = 5 * MINUTE_MS;
const PART_BYTES = 1024 * 1024;
const MAX_DESCRIPTION_BYTES = 256 * 1024;
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const FILE = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(?:zip|json)(?:\.new)?$/;
/** Deleted, also by another machine that shares the volume. */
const GONE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ESTALE']);

const archiveSchema: z.ZodType<MissionArchive> = z.object({
  id: z.string().regex(ID),
  guid: z.string(),
  name: z.string(),
  description: z.string(),
  creatorUid: z.string(),
  groups: z.array(z.string()),
  hasPassword: z.boolean(),
  inviteOnly: z.boolean(),
  keptAt: z.iso.datetime(),
  bytes: z.number(),
});
const created = dataOf(z.array(z.object({ guid: z.string() })).min(1));

export class MissionArchiveFiles implements MissionArchives {
  readonly #options: ArchiveOptions;
  readonly #inTurn = serialize();

  constructor(options: ArchiveOptions) {
    this.#options = options;
  }

  async list(): Promise<MissionArchive[]> {
    return this.#reported(async () => {
      const found: MissionArchive[] = [];
      for (const id of described(await this.#names())) found.push(...(await this.#read(id)));
      return found.toSorted((one, other) => other.keptAt.localeCompare(one.keptAt));
    });
  }

  keep(guid: string): Promise<MissionArchive> {
    return this.#inTurn(async () => {
      const mission = await this.#options.missions.find(guid);
      if (mission === undefined) throw new AppError('not_found', `The core has no mission ${guid.slice(0, 100)}.`);
      const left = await this.#left();
      const id = randomUUID();
      const bytes = await this.#reported(async () => {
        await this.#clean();
        return this.#download(`${MISSIONS}/guid/${mission.guid}/archive`, newOf(this.#file(id)), left);
      });
      const { name, description, creatorUid, groups, hasPassword, inviteOnly } = mission;
      const keptAt = this.#options.now().toISOString();
      const shown = { guid: mission.guid, name, description, creatorUid, groups, hasPassword, inviteOnly };
      const archive: MissionArchive = { id, ...shown, keptAt, bytes };
      await this.#publish(archive);
      return archive;
    });
  }

  async part(id: string, from: number): Promise<string> {
    await this.#existing(id);
    return this.#reported(async () => {
      await using handle = await this.#open(id);
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(PART_BYTES), 0, PART_BYTES, from);
      return buffer.subarray(0, bytesRead).toString('base64');
    });
  }

  restore(id: string): Promise<MissionArchive> {
    return this.#inTurn(async () => {
      const archive = await this.#existing(id);
      const { missions, port } = this.#options;
      if (archive.groups.length === 0)
        throw new AppError(
          'conflict',
          `The archive of ${archive.name} does not say its groups. Remedy: download it, and import it with a TAK client.`,
        );
      if ((await missions.list()).missions.some(({ name }) => name === archive.name)) throw isThere(archive.name);
      // Open until the end: another process may delete it meanwhile.
      await using file = await this.#reported(() => this.#open(id));
      const calls = port.within(WITHIN_MS);
      const path = `${MISSIONS}/${encodeURIComponent(archive.name)}`;
      const answer = await calls.ask('PUT', path, {
        query: { creatorUid: archive.creatorUid || API_ACCOUNT },
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          description: archive.description,
          groups: archive.groups,
          inviteOnly: archive.inviteOnly || archive.hasPassword,
        }),
      });
      if (answer.status === 200) throw isThere(archive.name);
      if (answer.status !== 201) throw refused(port.failure(`PUT ${path}`, answer), archive, quoted(answer, []));
      const [made] = calls.read(`PUT ${path}`, { ...answer, status: 200 }, created);
      const guid = made?.guid ?? '';
      await this.#unpack(archive, file, guid).catch(async (error: unknown) => {
        const isRemoved = await missions.remove(guid).catch(() => false);
        if (isRemoved || !(error instanceof AppError)) throw error;
        throw new AppError(
          error.code,
          `${error.message} A mission ${archive.name} with a part of it was left: delete it.`,
        );
      });
      return { ...archive, guid };
    });
  }

  remove(id: string): Promise<boolean> {
    return this.#inTurn(() =>
      this.#reported(async () => {
        if (!ID.test(id) || (await this.#read(id)).length === 0) return false;
        await rm(this.#file(id, 'json'), { force: true });
        await rm(this.#file(id), { force: true });
        return true;
      }),
    );
  }

  #file(id: string, kind: 'zip' | 'json' = 'zip'): string {
    return join(this.#options.directory, `${id}.${kind}`);
  }

  async #names(): Promise<string[]> {
    return readdir(this.#options.directory).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    });
  }

  /** Empty when there is none. */
  async #read(id: string): Promise<MissionArchive[]> {
    try {
      const text = (await readBounded(this.#file(id, 'json'), MAX_DESCRIPTION_BYTES)).toString('utf8');
      return [archiveSchema.parse(JSON.parse(text))];
    } catch (error) {
      if (GONE.has(codeOf(error))) return [];
      throw error;
    }
  }

  async #existing(id: string): Promise<MissionArchive> {
    const [found] = ID.test(id) ? await this.#reported(() => this.#read(id)) : [];
    return found ?? unknown(id);
  }

  async #open(id: string): Promise<FileHandle> {
    return open(this.#file(id), 'r').catch((error: unknown) => {
      if (GONE.has(codeOf(error))) return unknown(id);
      throw error;
    });
  }

  /** Bytes that may still be kept. */
  async #left(): Promise<number> {
    const kept = await this.list();
    const used = kept.reduce((sum, { bytes }) => sum + bytes, 0);
    const left = (this.#options.maxBytes ?? MAX_BYTES) - used;
    if (kept.length < MAX_ARCHIVES && left > 0) return left;
    throw new AppError(
      'conflict',
      `${kept.length} archives with ${formatBytes(used)} are kept, which is the most. Remedy: download and delete some.`,
    );
  }

  /** Under a lock of all processes, so that together they stay within the limits. */
  async #publish(archive: MissionArchive): Promise<void> {
    const file = this.#file(archive.id);
    await this.#reported(async () => {
      try {
        await fileLock(join(this.#options.directory, '.lock'), async () => {
          const left = await this.#left();
          if (archive.bytes > left) throw tooLarge(left);
          await rename(newOf(file), file);
          await replaceFile(this.#file(archive.id, 'json'), JSON.stringify(archive));
        });
      } catch (error) {
        // Also when only the lock could not be given back, as on a full volume.
        for (const each of [this.#file(archive.id, 'json'), newOf(file), file]) await rm(each, { force: true });
        throw error;
      }
    });
  }

  /** Of a process that died: nothing is written for an hour. What else lies there stays. */
  async #clean(): Promise<void> {
    await mkdir(this.#options.directory, { mode: 0o700, recursive: true });
    const names = await this.#names();
    const whole = new Set(described(names));
    for (const name of names) {
      const id = FILE.exec(name)?.[1];
      if (id === undefined || (whole.has(id) && !name.endsWith('.new'))) continue;
      const path = join(this.#options.directory, name);
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined && this.#options.now().getTime() - found.mtimeMs > HOUR_MS)
        await rm(path, { force: true });
    }
  }

  async #download(path: string, file: string, maxBytes: number): Promise<number> {
    const handle = await open(file, 'wx', 0o600);
    try {
      let bytes = 0;
      await this.#options.port.within(TRANSFER_MS).stream(path, async (body) => {
        for await (const chunk of body) {
          bytes += chunk.length;
          if (bytes > maxBytes) throw tooLarge(maxBytes);
          await this.#reported(() => handle.writeFile(chunk));
        }
      });
      await handle.sync();
      return bytes;
    } catch (error) {
      await rm(file, { force: true });
      throw error;
    } finally {
      await handle.close();
    }
  }

  async #unpack(archive: MissionArchive, file: FileHandle, guid: string): Promise<void> {
    const { port } = this.#options;
    const path = `${MISSIONS}/guid/${guid}/contents/missionpackage`;
    const answer = await port.within(TRANSFER_MS).ask('PUT', path, {
      query: { creatorUid: archive.creatorUid || API_ACCOUNT },
      headers: { 'content-type': 'application/zip', 'content-length': String(archive.bytes) },
      body: file.createReadStream({ autoClose: false }),
    });
    if (answer.status !== 200) throw refused(port.failure(`PUT ${path}`, answer), archive, quoted(answer, []));
  }

  async #reported<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof AppError) throw error;
      throw new AppError(
        'unavailable',
        `The archives of missions in ${this.#options.directory} can't be used (${codeOf(error) ?? messageOf(error)}). Remedy: check the directory.`,
        { cause: error },
      );
    }
  }
}

const newOf = (file: string): string => `${file}.new`;

/** The ids of the archives that are there. */
function described(names: readonly string[]): string[] {
  return names.filter((name) => name.endsWith('.json')).flatMap((name) => FILE.exec(name)?.[1] ?? []);
}

function unknown(id: string): never {
  throw new AppError('not_found', `No archive ${JSON.stringify(id.slice(0, 100))} is kept.`);
}

function tooLarge(left: number): AppError {
  return new AppError(
    'conflict',
    `The archive needs more than the ${formatBytes(left)} that are left for archives. Remedy: download and delete some.`,
  );
}

function isThere(name: string): AppError {
  return new AppError('conflict', `A mission named ${name} exists. Remedy: delete or archive it first.`);
}

/** What the core has against the archive is for the caller; a failure of the core stays one. */
function refused(failure: AppError, { name }: MissionArchive, words: string): AppError {
  if (!/\((?:403|404|413)\)|with (?:400|409|413|501)/.test(failure.message)) return failure;
  return new AppError('conflict', `The core did not restore ${name}${words}`);
}
