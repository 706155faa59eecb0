// Serves /Marti/api/device/profile: to devices their profiles, and to administrators their
// management.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { urlHost } from '@holdfast/kit/addresses';
import { readBody } from '@holdfast/kit/body';
import { goodText, lastPart } from '../files/query-parameters.ts';
import type { Spool } from '../files/spool.ts';
import { isForm, readForm } from '../files/upload-routes.ts';
import { CoreFault, emptyAnswer, PageFault, wrapped } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, demanded, invalid, readJson } from '../http/route.ts';
import { type Profile, PROFILE_LIMITS, type ProfileStore } from '../store/profiles.ts';
import type { Subscriptions } from '../model/parts.ts';
import type { StreamNotices } from '../model/stream.ts';
import { fileShared } from '../stream/server-events.ts';
import { DeviceProfiles, type DeviceProfilesOptions, download, isPath } from './device-profiles.ts';

export interface ProfilesOptions extends DeviceProfilesOptions {
  /** In every wrapped answer: `readNodeId`. */
  nodeId: string;
  /** SERVER_ADDRESS. */
  hostname: string;
  /** Of 8443, as devices reach it. */
  publicPort: number;
  profiles: ProfileStore;
  subscriptions: Subscriptions;
  toDevices: StreamNotices['toDevices'];
  spool: Spool;
}

const BASE = '/Marti/api/device/profile';
/** What a release writes for a profile of every group. */
const ALL_GROUPS = 'APPLY_TO_ALL_GROUPS';
const MAX_FILE_BYTES = 10 * 1024 * 1024;
const MAX_NAME = 128;
const MAX_GROUPS = 200;
const MAX_UID = 255;
/** Devices at once. */
const MAX_SENT = 1_000;
/** Whom devices show. */
const SENDER = 'TAK Server';
/** These are other addresses. */
const RESERVED = new Set(['connection', 'tool', 'directories']);

const changeSchema = z.object({
  id: z.int().positive(),
  active: z.boolean(),
  type: z.enum(['Enrollment', 'Connection', 'Tool']),
  tool: z
    .string()
    .max(MAX_NAME)
    .nullish()
    .transform((tool) => (tool === undefined || tool === '' ? null : tool)),
  groups: z.array(z.string().min(1).max(255)).max(MAX_GROUPS),
});

export class ProfileRoutes {
  readonly #options: ProfilesOptions;
  readonly #devices;

  constructor(options: ProfilesOptions) {
    this.#options = options;
    this.#devices = new DeviceProfiles(options);
  }

  routes(): AdminRoute[] {
    const devices = this.#devices;
    const username = (c: AdminContext): string => c.env.caller.username;
    const tool = (c: AdminContext): string => c.req.param('tool') ?? '';
    return [
      { path: `${BASE}/connection`, handlers: { GET: (c) => devices.onEvent('Connection', c.req.raw, username(c)) } },
      { path: `${BASE}/tool/:tool`, handlers: { GET: (c) => devices.ofTool(c.req.raw, username(c), tool(c)) } },
      {
        path: `${BASE}/tool/:tool/file`,
        handlers: { GET: (c) => devices.filesOfTool(c.req.raw, username(c), tool(c)) },
      },
      { path: BASE, handlers: { GET: () => this.#list() } },
      {
        path: `${BASE}/:name`,
        handlers: {
          GET: (c) => this.#read(c),
          POST: (c) => this.#create(c),
          PUT: (c) => this.#change(c),
          DELETE: (c) => this.#remove(c),
        },
      },
      { path: `${BASE}/:name/send`, handlers: { POST: (c) => this.#send(c) } },
      {
        path: `${BASE}/:name/missionpackage`,
        handlers: { GET: (c) => devices.named(username(c), c.req.param('name') ?? '') },
      },
      { path: `${BASE}/:name/files`, handlers: { GET: (c) => this.#files(c) } },
      {
        path: `${BASE}/:name/file`,
        handlers: { PUT: (c) => this.#addFile(c, c.req.raw.body), POST: (c) => this.#addForm(c) },
      },
      {
        path: `${BASE}/:name/file/:id`,
        handlers: { GET: (c) => this.#file(c), DELETE: (c) => this.#removeFile(c) },
      },
    ];
  }

  async #named(c: AdminContext): Promise<Profile> {
    const name = c.req.param('name') ?? '';
    const found = (await this.#options.profiles.list()).find((each) => each.name === name);
    if (found === undefined) throw new CoreFault('not found', 'There is no profile of this name.');
    return found;
  }

  async #list(): Promise<Response> {
    const all = await this.#options.profiles.list();
    return wrapped('Profile', all.map(toProfileView), this.#options.nodeId);
  }

  async #read(c: AdminContext): Promise<Response> {
    return wrapped('Profile', toProfileView(await this.#named(c)), this.#options.nodeId);
  }

  async #create(c: AdminContext): Promise<Response> {
    const name = goodText('name', c.req.param('name') ?? '', MAX_NAME);
    if (RESERVED.has(name) || name.trim() !== name || name === '')
      throw invalid(`a profile can't have the name "${name}"`);
    const places = await this.#placesOf(c.req.queries('group')?.filter((group) => group !== '') ?? []);
    const made = await this.#options.profiles.create(name, places);
    if (made === 'full')
      throw new CoreFault('conflict', `There are ${PROFILE_LIMITS.profiles} profiles, as many as can be.`);
    return new Response(null, { status: made ? 201 : 200 });
  }

  async #change(c: AdminContext): Promise<Response> {
    const { id, groups, ...change } = await readJson(c, changeSchema);
    const profile = await this.#named(c);
    if (profile.id !== id) throw invalid(`the profile ${profile.name} has the id ${profile.id}, not ${id}`);
    if (change.type === 'Tool' && change.tool === null) throw invalid('a profile of type Tool needs a tool');
    const places = groups.includes(ALL_GROUPS) ? 'all' : await this.#placesOf(groups);
    if (!(await this.#options.profiles.update(id, { ...change, places }, this.#options.now())))
      throw new CoreFault('not found', 'The profile was deleted in the meantime.');
    return emptyAnswer();
  }

  async #remove(c: AdminContext): Promise<Response> {
    if (!(await this.#options.profiles.remove(idOf(c, 'name'))))
      throw new CoreFault('not found', 'There is no profile of this id.');
    return emptyAnswer();
  }

  /** Tells connected devices to fetch it: those of people who get it, by their uids. */
  async #send(c: AdminContext): Promise<Response> {
    const uids = new Set(await readJson(c, z.array(z.string().min(1).max(MAX_UID)).max(MAX_SENT)));
    const profile = await this.#named(c);
    const { groups } = profile;
    const found = this.#options.subscriptions.list().filter(({ clientUid }) => uids.has(clientUid));
    for (const uid of uids) {
      const device = found.find(({ clientUid }) => clientUid === uid);
      if (device === undefined) throw invalid(`no device ${uid} is connected`);
      const receives = device.groups.filter(({ direction }) => direction === 'OUT').map(({ name }) => name);
      if (groups !== 'all' && !receives.some((name) => groups.includes(name)))
        throw invalid(`${uid} is not in a group of the profile ${profile.name}`);
    }
    const bytes = await this.#devices.packageOf(profile);
    const hash = createHash('sha256').update(bytes).digest('hex');
    const { hostname, publicPort } = this.#options;
    const event = fileShared({
      hash,
      name: profile.name,
      filename: 'profile.zip',
      url: `https://${urlHost(hostname)}:${publicPort}${BASE}/${encodeURIComponent(profile.name)}/missionpackage`,
      bytes: bytes.length,
      senderUid: hash,
      sender: SENDER,
    });
    this.#options.toDevices(found, event);
    return emptyAnswer();
  }

  async #files(c: AdminContext): Promise<Response> {
    const files = await this.#options.profiles.files((await this.#named(c)).id);
    return wrapped('ProfileFile', files, this.#options.nodeId);
  }

  /** The body is the file. */
  async #addFile(c: AdminContext, body: ReadableStream<Uint8Array> | null): Promise<Response> {
    const name = fileName(demanded(c, 'filename'));
    const profile = await this.#named(c);
    const data = await readBody(body, MAX_FILE_BYTES, tooLarge);
    return this.#keep(profile, name, data);
  }

  /** The body is a form with one file, which says what it is called. */
  async #addForm(c: AdminContext): Promise<Response> {
    const profile = await this.#named(c);
    const contentType = c.req.header('content-type') ?? '';
    if (!isForm(contentType)) throw invalid('the body must be a form with a part file');
    const { file, filename } = await readForm({ contentType, body: c.req.raw.body }, this.#options.spool);
    try {
      if (file.sizeBytes > MAX_FILE_BYTES) throw tooLarge();
      return await this.#keep(profile, fileName(lastPart(filename)), await readFile(file.path));
    } finally {
      await file.remove();
    }
  }

  async #keep(profile: Profile, name: string, data: Uint8Array): Promise<Response> {
    const added = await this.#options.profiles.addFile(profile.id, { name, data }, this.#options.now());
    if (added !== 'full') return wrapped('ProfileFile', added, this.#options.nodeId);
    const { filesOfOne, bytes } = PROFILE_LIMITS;
    throw new CoreFault(
      'conflict',
      `A profile has at most ${filesOfOne} files, and all profiles together ${bytes / 2 ** 20} MB. Remove some first.`,
    );
  }

  async #file(c: AdminContext): Promise<Response> {
    const file = await this.#options.profiles.file((await this.#named(c)).id, idOf(c, 'id'));
    if (file === undefined) throw new CoreFault('not found', 'There is no such file in this profile.');
    return download(file);
  }

  async #removeFile(c: AdminContext): Promise<Response> {
    const { id } = await this.#named(c);
    if (!(await this.#options.profiles.removeFile(id, idOf(c, 'id'), this.#options.now())))
      throw new CoreFault('not found', 'There is no such file in this profile.');
    return emptyAnswer();
  }

  /** Groups that nobody was seen in yet get their places. */
  async #placesOf(names: readonly string[]): Promise<number[]> {
    if (names.length > MAX_GROUPS) throw invalid(`a profile may have at most ${MAX_GROUPS} groups`);
    const known = await this.#options.groups.ensure(names.map((name) => goodText('group', name, MAX_NAME)));
    return known.map(({ bitpos }) => bitpos);
  }
}

function tooLarge(): PageFault {
  return new PageFault(413, `The file is too large: at most ${MAX_FILE_BYTES / 2 ** 20} MB are allowed.`);
}

function fileName(text: string): string {
  const name = goodText('filename', text, MAX_NAME);
  if (isPath(name)) return name;
  throw invalid('filename must be a name, or a path without ".."');
}

function idOf(c: AdminContext, name: 'name' | 'id'): number {
  const text = c.req.param(name) ?? '';
  if (!/^\d{1,15}$/.test(text)) throw invalid('the id must be a number');
  return Number(text);
}

function toProfileView({ groups, updated, type, ...profile }: Profile) {
  return {
    ...profile,
    type,
    applyOnEnrollment: type === 'Enrollment',
    applyOnConnect: type === 'Connection',
    updated: updated.toISOString(),
    groups: groups === 'all' ? [ALL_GROUPS] : groups,
  };
}
