// Archives, deletes and restores missions, and hands out kept archives. All of it is audited.

import { AppError } from '@holdfast/kit/app-error';
import { bytesOfBase64 } from '@holdfast/kit/text';
import { audited } from '../../audit/audited.ts';
import type { Actor, Audit } from '../../audit/port.ts';
import type { CoreMissionDetail, CoreMissionPorts, MissionArchive } from './port.ts';

interface Context {
  deps: CoreMissionPorts & { audit: Pick<Audit, 'intend' | 'conclude'> };
  actor: Actor;
}

/** `not_found` when there is none of that guid. */
export async function missionOf({ coreMissions }: Pick<CoreMissionPorts, 'coreMissions'>, guid: string) {
  return (await coreMissions.find(guid)) ?? unknownMission(guid);
}

/** Subscribed devices learn of it. Its files stay at the core until retention deletes them. */
export async function deleteMission({ deps, actor }: Context, guid: string): Promise<CoreMissionDetail> {
  const mission = await missionOf(deps, guid);
  const subject = { actor, action: 'mission.delete', target: mission.name, detail: { guid } };
  await audited(deps, subject, async () => (await deps.coreMissions.remove(guid)) || unknownMission(guid));
  return mission;
}

/** Keeps the mission as it is now on this server. The mission stays. */
export async function archiveMission({ deps, actor }: Context, guid: string): Promise<MissionArchive> {
  const { name } = await missionOf(deps, guid);
  return audited(deps, { actor, action: 'mission.archive', target: name, detail: { guid } }, () =>
    deps.missionArchives.keep(guid),
  );
}

/** Resolves with the archive under the guid of the new mission. */
export async function restoreMission({ deps, actor }: Context, id: string): Promise<MissionArchive> {
  const { name } = await archiveOf(deps, id);
  return audited(deps, { actor, action: 'mission.restore', target: name, detail: { archive: id } }, () =>
    deps.missionArchives.restore(id),
  );
}

export async function deleteArchive({ deps, actor }: Context, id: string): Promise<MissionArchive> {
  const archive = await archiveOf(deps, id);
  const subject = { actor, action: 'mission-archive.delete', target: archive.name, detail: { archive: id } };
  await audited(deps, subject, async () => (await deps.missionArchives.remove(id)) || unknownArchive(id));
  return archive;
}

/** The archive piece by piece: a reader that is slow holds nothing up. */
export async function downloadArchive(
  { deps, actor }: Context,
  id: string,
): Promise<{ archive: MissionArchive; body: ReadableStream<Uint8Array> }> {
  const archive = await archiveOf(deps, id);
  const subject = { actor, action: 'mission-archive.download', target: archive.name, detail: { archive: id } };
  const first = await audited(deps, subject, () => deps.missionArchives.part(id, 0));
  let next: Uint8Array | undefined = bytesOfBase64(first);
  let at = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const bytes = next ?? bytesOfBase64(await deps.missionArchives.part(id, at));
        next = undefined;
        at += bytes.length;
        if (bytes.length > 0) controller.enqueue(bytes);
        if (bytes.length === 0 || at >= archive.bytes) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  return { archive, body };
}

async function archiveOf({ missionArchives }: CoreMissionPorts, id: string): Promise<MissionArchive> {
  return (await missionArchives.list()).find((each) => each.id === id) ?? unknownArchive(id);
}

function unknownMission(guid: string): never {
  const shown = JSON.stringify(guid.slice(0, 100));
  throw new AppError('not_found', `There is no mission ${shown}. GET /api/missions lists them.`);
}

function unknownArchive(id: string): never {
  const shown = JSON.stringify(id.slice(0, 100));
  throw new AppError('not_found', `There is no kept archive ${shown}. GET /api/mission-archives lists them.`);
}
