// What a core keeps for devices, in memory.

import { AppError } from '@holdfast/kit/app-error';
import type {
  CoreContents,
  DevicePackage,
  DeviceProfile,
  ErrorLog,
  FormUpload,
  VideoFeed,
} from '../../shared/core/contents/port.ts';

export interface FakeContents extends CoreContents {
  all: {
    profiles: DeviceProfile[];
    files: Map<string, { id: number; name: string; text: string }[]>;
    logs: ErrorLog[] | undefined;
    feeds: (VideoFeed & { groups: readonly string[] })[];
    packages: DevicePackage[] | undefined;
  };
}

export function fakeContents(now: () => Date): FakeContents {
  const all: FakeContents['all'] = { profiles: [], files: new Map(), logs: [], feeds: [], packages: [] };
  let last = 0;

  function there(name: string): { id: number; name: string; text: string }[] {
    if (!all.profiles.some((profile) => profile.name === name)) throw missing();
    const files = all.files.get(name) ?? [];
    all.files.set(name, files);
    return files;
  }
  function without<T>(list: readonly T[] | undefined, isGone: (each: T) => boolean): T[] {
    const left = (list ?? []).filter((each) => !isGone(each));
    if (left.length === (list ?? []).length) throw missing();
    return left;
  }
  function put(name: string, file: { name: string; text: string }): void {
    const files = there(name).filter((each) => each.name !== file.name);
    all.files.set(name, [...files, { id: ++last, ...file }]);
  }

  return {
    all,
    profiles: async () => structuredClone(all.profiles),
    async addProfile(name) {
      if (all.profiles.some((profile) => profile.name === name)) throw new AppError('conflict', `There is ${name}`);
      const fresh = { id: ++last, name, active: false, type: 'Enrollment', tool: null, groups: [] } as const;
      all.profiles.push({ ...fresh, groups: [], updatedAt: now().toISOString() });
    },
    async changeProfile(change) {
      const found = all.profiles.find(({ id }) => id === change.id);
      if (found === undefined) throw missing();
      Object.assign(found, change);
    },
    async removeProfile(id) {
      all.profiles = without(all.profiles, (profile) => profile.id === id);
    },
    profileFiles: async (name) =>
      there(name).map((file) => ({ id: file.id, name: file.name, bytes: file.text.length })),
    writeProfileFile: async (name, file) => put(name, file),
    async readProfileFile(name, id) {
      const found = there(name).find((file) => file.id === id);
      if (found === undefined) throw missing();
      return found.text;
    },
    async uploadProfileFile(name, upload) {
      there(name);
      put(name, await fileIn(upload));
    },
    async removeProfileFile(name, id) {
      all.files.set(
        name,
        without(there(name), (file) => file.id === id),
      );
    },
    errorLogs: async () => structuredClone(all.logs),
    async errorLog(id) {
      if (all.logs?.some((log) => log.id === id) !== true) throw missing();
      return { filename: `error-log-${id}.txt`, base64: btoa(`log ${id}`) };
    },
    async removeErrorLog(id) {
      all.logs = without(all.logs, (log) => log.id === id);
    },
    videoFeeds: async () => structuredClone(all.feeds),
    async addVideoFeed({ name, url, groups }) {
      if (!URL.canParse(url) || new URL(url).password !== '') throw new AppError('invalid', 'The core refuses it');
      all.feeds.push({ uid: `feed-${++last}`, name, urls: [url], active: true, groups });
    },
    async removeVideoFeed(uid) {
      all.feeds = without(all.feeds, (feed) => feed.uid === uid);
    },
    packages: async () => structuredClone(all.packages),
    async uploadPackage(upload) {
      const { name, bytes } = await fileIn(upload);
      if (!name.endsWith('.apk')) throw new AppError('invalid', 'The core refuses it: no Android package');
      all.packages?.push({
        hash: String(++last).padStart(64, '0'),
        name,
        packageName: 'org.example.made',
        version: '1',
        pluginApi: null,
        bytes,
        addedAt: now().toISOString(),
      });
    },
    async removePackage(hash) {
      all.packages = without(all.packages, (each) => each.hash === hash);
    },
  };
}

function missing(): AppError {
  return new AppError('not_found', 'It is no longer there');
}

async function fileIn({ contentType, body }: FormUpload): Promise<{ name: string; text: string; bytes: number }> {
  const form = await new Response(body, { headers: { 'content-type': contentType } }).formData();
  const file = form.get('file');
  if (!(file instanceof File)) throw new AppError('invalid', 'The core refuses it: the form has no file');
  return { name: file.name, text: await file.text(), bytes: file.size };
}
