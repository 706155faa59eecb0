// Reads and changes through the core's admin API what it keeps for devices.

import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import { deviceGroupName } from '@holdfast/kit/names';
import { MINUTE_MS } from '@holdfast/kit/time';
import { type Answer, quoted } from '../answers.ts';
import { type CoreCalls, type CorePort, type Question, WITHIN_MS } from '../request.ts';
import {
  type CoreContents,
  type DevicePackage,
  type DeviceProfile,
  type ErrorLog,
  type FormUpload,
  PROFILE_TYPES,
  type VideoFeed,
} from './port.ts';

const PROFILES = '/Marti/api/device/profile';
const LOGS = '/Marti/ErrorLog';
const VIDEO = '/Marti/api/video';
const PACKAGES = '/Marti/api/update/products';
const ALL_GROUPS = 'APPLY_TO_ALL_GROUPS';
const UPLOAD_WITHIN_MS = 30 * MINUTE_MS;
const JSON_TYPE = { 'content-type': 'application/json' };
/** The status of a core that lacks this call. */
const NO_SUCH_CALL: ReadonlySet<number> = new Set([404, 405, 501]);

const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');
const time = text.transform((given) => (Number.isNaN(Date.parse(given)) ? null : new Date(given).toISOString()));

const profile = z
  .object({
    id: z.number(),
    name: z.string(),
    active: z.boolean(),
    type: z.enum(PROFILE_TYPES).nullish(),
    applyOnEnrollment: z.boolean().nullish(),
    applyOnConnect: z.boolean().nullish(),
    tool: text,
    groups: z.array(z.string()).nullish(),
    updated: time,
  })
  .transform((read): DeviceProfile => {
    const { id, name, active, tool, groups } = read;
    const byFlags =
      read.applyOnEnrollment === true ? 'Enrollment' : read.applyOnConnect === true ? 'Connection' : 'Tool';
    return {
      id,
      name,
      active,
      type: read.type ?? byFlags,
      tool: tool === '' ? null : tool,
      groups: groups?.includes(ALL_GROUPS) === true ? 'all' : (groups ?? []).map(deviceGroupName),
      updatedAt: read.updated,
    };
  });
const profileFile = z.object({
  id: z.number(),
  name: z.string(),
  bytes: z
    .number()
    .nullish()
    .transform((value) => value ?? null),
});
const errorLog = z
  .object({
    id: z.number(),
    uid: text,
    callsign: text,
    username: text,
    platform: text,
    majorVersion: text,
    minorVersion: text,
    bytes: z.number(),
    time: z.string(),
  })
  .transform(({ majorVersion, minorVersion, time: at, ...log }): ErrorLog => ({
    ...log,
    version: [majorVersion, minorVersion].filter((part) => part !== '').join('.'),
    at,
  }));
const feeds = z
  .object({
    videoConnections: z
      .array(
        z.object({
          uuid: text,
          alias: text,
          active: z.boolean().nullish(),
          feeds: z.array(z.object({ url: text })).nullish(),
        }),
      )
      .nullish(),
  })
  .transform(({ videoConnections }) =>
    (videoConnections ?? []).map(({ uuid, alias, active, feeds: each }): VideoFeed => ({
      uid: uuid,
      name: alias,
      urls: (each ?? []).map(({ url }) => url),
      active: active ?? true,
    })),
  );
const devicePackage = z
  .object({
    hash: z.string(),
    name: text,
    packageName: text,
    version: text,
    pluginApi: z.string().nullish(),
    sizeBytes: z.number(),
    added: time,
  })
  .transform(({ pluginApi, sizeBytes, added, ...rest }): DevicePackage => ({
    ...rest,
    pluginApi: pluginApi ?? null,
    bytes: sizeBytes,
    addedAt: added,
  }));

export class HttpCoreContents implements CoreContents {
  readonly #port: CorePort;

  constructor(port: CorePort) {
    this.#port = port;
  }

  profiles(): Promise<DeviceProfile[]> {
    return this.#calls().data(PROFILES, z.array(profile));
  }

  async addProfile(name: string): Promise<void> {
    const { status } = await this.#change('POST', pathOf(name));
    // A release and our own core answer 200 to a name that is there.
    if (status !== 201) throw new AppError('conflict', `There is a profile ${JSON.stringify(name)} already.`);
    const made = (await this.profiles()).find((each) => each.name === name);
    if (made !== undefined) await this.changeProfile({ ...made, active: false });
  }

  async changeProfile({ name, groups, ...rest }: Omit<DeviceProfile, 'updatedAt'>): Promise<void> {
    const { type } = rest;
    const body = {
      ...rest,
      name,
      groups: groups === 'all' ? [ALL_GROUPS] : groups,
      applyOnEnrollment: type === 'Enrollment',
      applyOnConnect: type === 'Connection',
    };
    await this.#change('PUT', pathOf(name), { headers: JSON_TYPE, body: JSON.stringify(body) });
  }

  async removeProfile(id: number): Promise<void> {
    await this.#change('DELETE', `${PROFILES}/${id}`);
  }

  profileFiles(name: string) {
    return this.#calls().data(`${pathOf(name)}/files`, z.array(profileFile));
  }

  async writeProfileFile(name: string, file: { name: string; text: string }): Promise<void> {
    await this.#change('PUT', `${pathOf(name)}/file`, { query: { filename: file.name }, body: file.text });
  }

  async readProfileFile(name: string, id: number): Promise<string> {
    return (await this.#change('GET', `${pathOf(name)}/file/${id}`)).text;
  }

  async uploadProfileFile(name: string, upload: FormUpload): Promise<void> {
    await this.#upload(`${pathOf(name)}/file`, upload);
  }

  async removeProfileFile(name: string, id: number): Promise<void> {
    await this.#change('DELETE', `${pathOf(name)}/file/${id}`);
  }

  errorLogs() {
    return this.#listed('/Marti/api/errorlogs', z.array(errorLog));
  }

  async errorLog(id: number) {
    const chunks: Uint8Array[] = [];
    const path = `${LOGS}?id=${id}`;
    if ((await this.errorLogs())?.some((log) => log.id === id) !== true)
      throw new AppError('not_found', 'The core no longer has this log.');
    await this.#port.within(MINUTE_MS).stream(path, async (body) => {
      for await (const chunk of body) chunks.push(chunk);
    });
    const bytes = Buffer.concat(chunks);
    const isZip = bytes.subarray(0, 2).toString('latin1') === 'PK';
    return { filename: `error-log-${id}.${isZip ? 'zip' : 'txt'}`, base64: bytes.toString('base64') };
  }

  async removeErrorLog(id: number): Promise<void> {
    await this.#change('DELETE', LOGS, { query: { id: String(id) } });
  }

  async videoFeeds(): Promise<VideoFeed[]> {
    const answer = await this.#calls().ask('GET', VIDEO);
    return this.#calls().read(`GET ${VIDEO}`, answer, feeds);
  }

  async addVideoFeed({ name, url, groups }: { name: string; url: string; groups: readonly string[] }): Promise<void> {
    const feed = { uuid: randomUUID(), active: true, alias: name, url };
    const connection = { uuid: randomUUID(), active: true, alias: name, feeds: [feed] };
    const query = new URLSearchParams(groups.map((group): [string, string] => ['group', group])).toString();
    const path = query === '' ? VIDEO : `${VIDEO}?${query}`;
    await this.#change('POST', path, { headers: JSON_TYPE, body: JSON.stringify({ videoConnections: [connection] }) });
  }

  async removeVideoFeed(uid: string): Promise<void> {
    await this.#change('DELETE', `${VIDEO}/${encodeURIComponent(uid)}`);
  }

  packages() {
    return this.#listed(PACKAGES, z.array(devicePackage));
  }

  async uploadPackage(upload: FormUpload): Promise<void> {
    await this.#upload(PACKAGES, upload);
  }

  async removePackage(hash: string): Promise<void> {
    await this.#change('DELETE', `${PACKAGES}/${encodeURIComponent(hash)}`);
  }

  #calls(): CoreCalls {
    return this.#port.within(WITHIN_MS);
  }

  /** Undefined when the core has no such call, not when it can't reach a part of itself. */
  async #listed<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
    const calls = this.#calls();
    const answer = await calls.ask('GET', path);
    if (NO_SUCH_CALL.has(answer.status) && this.#port.failure(path, answer).code !== 'unavailable') return undefined;
    return calls.read(`GET ${path}`, answer, z.object({ data: schema })).data;
  }

  async #change(method: string, path: string, question: Question = {}, calls = this.#calls()): Promise<Answer> {
    const answer = await calls.ask(method, path, question);
    const { status } = answer;
    if (status === 200 || status === 201) return answer;
    const words = quoted(answer, []);
    if (status === 400) throw new AppError('invalid', `The core refuses it${words}`);
    if (status === 409) throw new AppError('conflict', `The core refuses it${words}`);
    if (status === 413) throw new AppError('too_large', `The core refuses it${words}`);
    const failure = this.#port.failure(`${method} ${path}`, answer);
    throw status === 404 && failure.code !== 'unavailable'
      ? new AppError('not_found', `It is no longer there${words}`)
      : failure;
  }

  async #upload(path: string, { contentType, body }: FormUpload): Promise<void> {
    // What comes from a worker has lost its body on the way.
    if (!(body instanceof ReadableStream))
      throw new AppError('not_supported', 'Files can be uploaded only where Holdfast runs on Node.');
    const calls = this.#port.within(UPLOAD_WITHIN_MS);
    const stream = Readable.fromWeb(body);
    await this.#change('POST', path, { headers: { 'content-type': contentType }, body: stream }, calls);
  }
}

function pathOf(name: string): string {
  return `${PROFILES}/${encodeURIComponent(name)}`;
}
