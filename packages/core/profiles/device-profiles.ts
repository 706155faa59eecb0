// Gives devices their profiles: at enrollment, at each connection, and for a tool.

import { limitPerCaller } from '@holdfast/kit/concurrency';
import { SECOND_MS } from '@holdfast/kit/time';
import { contentDisposition, lastPart } from '../files/query-parameters.ts';
import { type GroupParts, type GroupRow, rowsOf } from '../groups/own-groups.ts';
import { CoreFault, PageFault } from '../http/answers.ts';
import { invalid } from '../http/route.ts';
import type { GivenFile, Profile, ProfileStore, WantedProfiles } from '../store/profiles.ts';
import { channelPreferences, dataPackage } from './packages.ts';

export interface DeviceProfilesOptions extends GroupParts {
  profiles: Pick<ProfileStore, 'given' | 'list' | 'files' | 'file'>;
  now: () => Date;
}

/** Each is in memory, with what it is made from. */
const MAX_AT_ONCE = { most: 4, maxPerOne: 2 };
const MAX_PATHS = 50;
const MAX_PATH = 255;

export class DeviceProfiles {
  readonly #options: DeviceProfilesOptions;
  readonly #running = limitPerCaller(MAX_AT_ONCE);

  constructor(options: DeviceProfilesOptions) {
    this.#options = options;
  }

  /** Always with the preferences that channels need, for the host that the device has. */
  async onEvent(type: 'Enrollment' | 'Connection', request: Request, username: string): Promise<Response> {
    const { hostname, searchParams } = new URL(request.url);
    const since = type === 'Connection' ? this.#since(searchParams) : undefined;
    return this.#alone(username, async () => {
      const files = await this.#given(username, { type, since });
      return zip(dataPackage(type, [channelPreferences(hostname), ...packed(files, 1)]));
    });
  }

  /** 204 when there is nothing for it. */
  async ofTool(request: Request, username: string, tool: string): Promise<Response> {
    const since = this.#since(new URL(request.url).searchParams);
    return this.#alone(username, async () => {
      const files = await this.#given(username, { type: 'Tool', tool, since });
      return files.length === 0 ? new Response(null, { status: 204 }) : zip(dataPackage(tool, packed(files, 0)));
    });
  }

  /** A profile that was sent, by its name, to people who get it. */
  async named(username: string, name: string): Promise<Response> {
    const profile = (await this.#options.profiles.list()).find((each) => each.name === name);
    const groups = new Set((await this.#receives(username)).map(({ group }) => group.name));
    const isTheirs = profile?.groups === 'all' || profile?.groups.some((group) => groups.has(group)) === true;
    if (profile === undefined || !isTheirs) throw new CoreFault('not found', 'There is no profile of this name.');
    return this.#alone(username, async () => zip(await this.packageOf(profile)));
  }

  /** Its files alone: the same bytes as long as it does not change. */
  async packageOf({ id, name }: Pick<Profile, 'id' | 'name'>): Promise<Uint8Array<ArrayBuffer>> {
    const { profiles } = this.#options;
    const files: GivenFile[] = [];
    for (const { id: fileId } of await profiles.files(id)) {
      const file = await profiles.file(id, fileId);
      if (file !== undefined) files.push(file);
    }
    return dataPackage(name, packed(files, 0));
  }

  /** Files of a tool by their paths; a folder is all that is in it. */
  async filesOfTool(request: Request, username: string, tool: string): Promise<Response> {
    const { searchParams } = new URL(request.url);
    const paths = searchParams.getAll('relativePath').map(plainPath);
    if (paths.length === 0 || paths.length > MAX_PATHS)
      throw invalid(`relativePath must be there, at most ${MAX_PATHS} times`);
    const since = this.#since(searchParams);
    const known = Date.parse(request.headers.get('if-modified-since') ?? '');
    return this.#alone(username, async () => {
      const all = await this.#given(username, { type: 'Tool', tool, since });
      const files = all.filter(({ name }) => paths.some((path) => name === path || name.startsWith(`${path}/`)));
      const updatedMs = wholeSeconds(Math.max(...files.map(({ updated }) => updated.getTime())));
      if (files.length === 0) throw new CoreFault('not found', 'No such file in a profile of this tool.');
      const newer = files.filter(({ updated }) => !(wholeSeconds(updated.getTime()) <= known));
      const [first] = newer;
      if (first === undefined) return new Response(null, { status: 304 });
      const answer =
        newer.length > 1
          ? zip(
              dataPackage(
                'multiFile',
                newer.map(({ name, data }) => ({ path: name, data })),
              ),
            )
          : download(first);
      answer.headers.set('last-modified', new Date(updatedMs).toUTCString());
      return answer;
    });
  }

  /** Also groups that are switched off on the device. */
  async #receives(username: string): Promise<GroupRow[]> {
    const rows = await rowsOf(username, await this.#options.people.of(username), this.#options, false);
    return rows.filter(({ direction }) => direction === 'OUT');
  }

  async #given(username: string, wanted: Omit<WantedProfiles, 'places'>): Promise<GivenFile[]> {
    const places = (await this.#receives(username)).map(({ group }) => group.bitpos);
    return this.#options.profiles.given({ ...wanted, places });
  }

  /** -1, and nothing, is everything. */
  #since(query: URLSearchParams): Date | undefined {
    const text = query.get('syncSecago') ?? '-1';
    const seconds = /^-?\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
    if (!(seconds >= -1)) throw invalid('syncSecago must be a whole number of seconds, or -1');
    return seconds === -1 ? undefined : new Date(Math.max(0, this.#options.now().getTime() - seconds * SECOND_MS));
  }

  async #alone(username: string, answer: () => Promise<Response>): Promise<Response> {
    const leave = this.#running.enter(username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many profiles at once. Try again in a moment.', {
        headers: { 'retry-after': '5' },
      });
    try {
      return await answer();
    } finally {
      leave();
    }
  }
}

/** Each in a folder of its own, so that equal names do no harm. */
function packed(files: readonly GivenFile[], first: number) {
  return files.map(({ name, data }, at) => ({ path: `file${first + at}/${lastPart(name)}`, data }));
}

/** Without the slashes around it. */
function plainPath(text: string): string {
  const path = text.replace(/^\/+/, '').replace(/\/+$/, '');
  if (path === '' || path.length > MAX_PATH || !isPath(path))
    throw invalid('relativePath must name a file or a folder, without "..", and with at most 255 characters');
  return path;
}

/** Of a file in a profile: parts that no system takes for another folder. */
export function isPath(path: string): boolean {
  return !/[\\:\p{Cc}]/u.test(path) && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / SECOND_MS) * SECOND_MS;
}

function zip(bytes: Uint8Array<ArrayBuffer>): Response {
  return new Response(bytes, {
    headers: { 'content-type': 'application/zip', 'content-disposition': 'attachment; filename=profile.zip' },
  });
}

/** As bytes, whatever it is: nothing is shown by a browser. */
export function download({ name, data }: Pick<GivenFile, 'name' | 'data'>): Response {
  return new Response(data, {
    headers: {
      'content-type': 'application/octet-stream',
      'content-disposition': contentDisposition(name),
      'x-content-type-options': 'nosniff',
    },
  });
}
