// Reads and deletes missions through the core's admin API, as the service account of the stack.

import { z } from 'zod';
import { API_ACCOUNT } from '@holdfast/kit/names';
import type { Answer } from '../answers.ts';
import { type CorePort, dataOf, WITHIN_MS } from '../request.ts';
import type {
  CoreMission,
  CoreMissionDetail,
  CoreMissions,
  MissionChange,
  MissionFile,
  MissionItem,
  MissionLogEntry,
  MissionMember,
} from './port.ts';

export const MISSIONS = '/Marti/api/missions';
const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** For 20,000 contents, which is what the light core shows at most. */
const MAX_BYTES = 64 * 1024 * 1024;

const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');
const flag = z
  .boolean()
  .nullish()
  .transform((value) => value ?? false);
const bytes = z
  .number()
  .nonnegative()
  .nullish()
  .transform((value) => value ?? 0);
const time = text.transform(timeOf);
const list = <T>(item: z.ZodType<T>) =>
  z
    .array(item)
    .nullish()
    .transform((value) => value ?? []);

const file = z
  .object({
    data: z.object({ name: text, hash: text, mimeType: text, size: bytes }),
    timestamp: time,
    creatorUid: text,
  })
  .transform(({ data, timestamp, creatorUid }): MissionFile => {
    const { size, ...resource } = data;
    return { ...resource, bytes: size, addedAt: timestamp, addedBy: creatorUid };
  });

const details = z.object({ type: text, callsign: text }).nullish();
const item = z.object({ data: text, timestamp: time, creatorUid: text, details }).transform((read): MissionItem => ({
  uid: read.data,
  callsign: read.details?.callsign ?? '',
  type: read.details?.type ?? '',
  addedAt: read.timestamp,
  addedBy: read.creatorUid,
}));

const entry = z
  .object({ content: text, creatorUid: text, created: time, servertime: time })
  .transform(({ content, creatorUid, created, servertime }): MissionLogEntry => ({
    content,
    author: creatorUid,
    at: created ?? servertime,
  }));

const change = z
  .object({
    type: text,
    creatorUid: text,
    timestamp: time,
    contentUid: text,
    details,
    contentResource: z.object({ name: text, hash: text }).nullish(),
  })
  .transform((read): MissionChange => ({
    type: read.type,
    subject:
      read.details?.callsign || read.contentUid || read.contentResource?.name || read.contentResource?.hash || '',
    author: read.creatorUid,
    at: read.timestamp,
  }));

const member = z
  .object({ clientUid: text, username: text, createTime: time, role: z.object({ type: text }).nullish() })
  .transform(({ clientUid, username, createTime, role }): MissionMember => ({
    clientUid,
    username,
    role: role?.type ?? '',
    since: createTime,
  }));

const shape = {
  guid: z.string().regex(GUID, 'must be a UUID'),
  name: z.string(),
  description: text,
  creatorUid: text,
  createTime: time,
  lastEdited: time,
  keywords: list(z.string()),
  passwordProtected: flag,
  inviteOnly: flag,
  contents: list(file),
  uids: list(item),
};

const summary = z.object(shape).transform(toSummary);
const detail = z
  .object({
    ...shape,
    groups: z
      .union([z.array(z.string()), z.string().transform((name) => [name])])
      .nullish()
      .transform((value) => value ?? []),
    logs: list(entry),
    missionChanges: list(change),
  })
  .transform((read): Omit<CoreMissionDetail, 'members'> => ({
    ...toSummary(read),
    groups: read.groups,
    files: read.contents,
    items: read.uids,
    log: read.logs.toSorted(newestFirst),
    changes: read.missionChanges.toSorted(newestFirst),
  }));
const listed = z.object({ data: z.array(summary), messages: list(z.string()) });

export class HttpCoreMissions implements CoreMissions {
  readonly #port: CorePort;

  constructor(port: CorePort) {
    this.#port = port;
  }

  async list() {
    const calls = this.#port.within(WITHIN_MS);
    const query = { passwordProtected: 'true', defaultRole: 'true' };
    const answer = await calls.ask('GET', MISSIONS, { query, maxBytes: MAX_BYTES });
    const { data, messages } = calls.read(`GET ${MISSIONS}`, answer, listed);
    return { missions: data.toSorted((one, other) => one.name.localeCompare(other.name)), messages };
  }

  async find(guid: string): Promise<CoreMissionDetail | undefined> {
    if (!GUID.test(guid)) return undefined;
    const calls = this.#port.within(WITHIN_MS);
    const path = `${MISSIONS}/guid/${guid}`;
    const query = { changes: 'true', logs: 'true' };
    const answer = await calls.ask('GET', path, { query, maxBytes: MAX_BYTES });
    if (isMissing(this.#port, path, answer)) return undefined;
    const [found] = calls.read(`GET ${path}`, answer, dataOf(z.array(detail)));
    if (found === undefined) return undefined;
    const roles = await calls.ask('GET', `${path}/subscriptions/roles`);
    // Deleted in the meantime.
    if (isMissing(this.#port, path, roles)) return undefined;
    const members = calls.read(`GET ${path}/subscriptions/roles`, roles, dataOf(z.array(member)));
    return { ...found, members };
  }

  async remove(guid: string): Promise<boolean> {
    if (!GUID.test(guid)) return false;
    const calls = this.#port.within(WITHIN_MS);
    const query = { guid, creatorUid: API_ACCOUNT, deepDelete: 'false' };
    const answer = await calls.ask('DELETE', MISSIONS, { query, maxBytes: MAX_BYTES });
    if (isMissing(this.#port, MISSIONS, answer)) return false;
    if (answer.status !== 200) throw this.#port.failure(`DELETE ${MISSIONS}`, answer);
    return true;
  }
}

/** 410: it was deleted. A core that can't reach its database also answers 404. */
export function isMissing(port: CorePort, path: string, answer: Answer): boolean {
  const isGone = answer.status === 404 || answer.status === 410;
  return isGone && port.failure(path, answer).code !== 'unavailable';
}

function toSummary(read: z.infer<z.ZodObject<typeof shape>>): CoreMission {
  const { guid, name, description, creatorUid, keywords, inviteOnly, contents, uids } = read;
  return {
    guid,
    name,
    description,
    creatorUid,
    createdAt: read.createTime,
    lastEditedAt: read.lastEdited,
    keywords,
    hasPassword: read.passwordProtected,
    inviteOnly,
    size: {
      items: uids.length,
      files: contents.length,
      bytes: contents.reduce((sum, each) => sum + each.bytes, 0),
    },
  };
}

function newestFirst(one: { at: string | null }, other: { at: string | null }): number {
  return (other.at ?? '').localeCompare(one.at ?? '');
}

function timeOf(given: string): string | null {
  const ms = Date.parse(given);
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}
