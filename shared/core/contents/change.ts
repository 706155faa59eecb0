// Changes what the core keeps for devices. All of it is audited.

import { AppError } from '@holdfast/kit/app-error';
import { audited } from '../../audit/audited.ts';
import type { Actor, Audit } from '../../audit/port.ts';
import type { CoreContents, DeviceProfile, FormUpload } from './port.ts';
import { PREFERENCES_FILE, preferencesFile } from './rules.ts';

interface Context {
  deps: { coreContents: CoreContents } & { audit: Pick<Audit, 'intend' | 'conclude'> };
  actor: Actor;
}

/** `not_found` when there is none of that id. */
export async function profileOf({ coreContents }: { coreContents: CoreContents }, id: string): Promise<DeviceProfile> {
  const found = (await coreContents.profiles()).find((each) => String(each.id) === id);
  if (found === undefined) throw new AppError('not_found', `There is no profile ${JSON.stringify(id.slice(0, 20))}.`);
  return found;
}

/** Off, and for no group. Resolves with it. */
export async function addProfile({ deps, actor }: Context, name: string): Promise<DeviceProfile> {
  return audited(deps, { actor, action: 'profile.create', target: name }, async () => {
    await deps.coreContents.addProfile(name);
    const made = (await deps.coreContents.profiles()).find((each) => each.name === name);
    if (made === undefined) throw new AppError('upstream', `The core does not list the profile ${name} that it made.`);
    return made;
  });
}

export type ProfileChange = Pick<DeviceProfile, 'active' | 'type' | 'tool' | 'groups'>;

export async function changeProfile({ deps, actor }: Context, id: string, change: ProfileChange): Promise<void> {
  const { name, id: number } = await profileOf(deps, id);
  await audited(deps, { actor, action: 'profile.update', target: name, detail: { ...change } }, () =>
    deps.coreContents.changeProfile({ id: number, name, ...change }),
  );
}

export async function deleteProfile({ deps, actor }: Context, id: string): Promise<void> {
  const { name, id: number } = await profileOf(deps, id);
  await audited(deps, { actor, action: 'profile.delete', target: name }, () => deps.coreContents.removeProfile(number));
}

/** Throws `invalid` for lines that are no preferences. */
export async function setPreferences({ deps, actor }: Context, id: string, text: string): Promise<void> {
  const { name } = await profileOf(deps, id);
  const file = { name: PREFERENCES_FILE, text: preferencesFile(text) };
  await audited(deps, { actor, action: 'profile.file.add', target: name, detail: { file: file.name } }, () =>
    deps.coreContents.writeProfileFile(name, file),
  );
}

export async function addProfileFile({ deps, actor }: Context, id: string, upload: FormUpload): Promise<void> {
  const { name } = await profileOf(deps, id);
  await audited(deps, { actor, action: 'profile.file.add', target: name }, () =>
    deps.coreContents.uploadProfileFile(name, upload),
  );
}

export async function deleteProfileFile({ deps, actor }: Context, id: string, file: number): Promise<void> {
  const { name } = await profileOf(deps, id);
  await audited(deps, { actor, action: 'profile.file.delete', target: name, detail: { file } }, () =>
    deps.coreContents.removeProfileFile(name, file),
  );
}

/** It may name people and places: whoever reads it is in the audit log. */
export function readErrorLog({ deps, actor }: Context, id: number) {
  return audited(deps, { actor, action: 'error-log.download', target: String(id) }, () =>
    deps.coreContents.errorLog(id),
  );
}

export function deleteErrorLog({ deps, actor }: Context, id: number): Promise<void> {
  return audited(deps, { actor, action: 'error-log.delete', target: String(id) }, () =>
    deps.coreContents.removeErrorLog(id),
  );
}

export function addVideoFeed(
  { deps, actor }: Context,
  feed: { name: string; url: string; groups: readonly string[] },
): Promise<void> {
  const detail = { groups: [...feed.groups] };
  return audited(deps, { actor, action: 'video-feed.create', target: feed.name, detail }, () =>
    deps.coreContents.addVideoFeed(feed),
  );
}

export function deleteVideoFeed({ deps, actor }: Context, uid: string): Promise<void> {
  return audited(deps, { actor, action: 'video-feed.delete', target: uid }, () =>
    deps.coreContents.removeVideoFeed(uid),
  );
}

export function addPackage({ deps, actor }: Context, upload: FormUpload): Promise<void> {
  return audited(deps, { actor, action: 'device-package.add', target: 'APK' }, () =>
    deps.coreContents.uploadPackage(upload),
  );
}

export function deletePackage({ deps, actor }: Context, hash: string): Promise<void> {
  return audited(deps, { actor, action: 'device-package.delete', target: hash }, () =>
    deps.coreContents.removePackage(hash),
  );
}
