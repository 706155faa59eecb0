// Missions of a core in memory, and archives of them.

import { AppError } from '@holdfast/kit/app-error';
import { base64 } from '@holdfast/kit/text';
import type { CoreMissionDetail, CoreMissionPorts, MissionArchive } from '../../shared/core/missions/port.ts';

export interface FakeMissions extends CoreMissionPorts {
  missions: CoreMissionDetail[];
  archives: MissionArchive[];
  /** What the core says of the list. */
  messages: string[];
  /** Set to make every call reject with it. */
  error: AppError | undefined;
}

export const FIRST_GUID = '11111111-1111-4111-8111-111111111111';
export const ARCHIVE_ID = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';

export function someMission(more: Partial<CoreMissionDetail> = {}): CoreMissionDetail {
  const at = '2026-01-02T03:04:05.000Z';
  return {
    guid: FIRST_GUID,
    name: 'Search North',
    description: 'Two teams along the ridge',
    creatorUid: 'ANDROID-ada',
    createdAt: at,
    lastEditedAt: at,
    keywords: ['night'],
    hasPassword: false,
    inviteOnly: false,
    size: { items: 1, files: 1, bytes: 2_000_000 },
    groups: ['Blue'],
    members: [{ clientUid: 'ANDROID-ada', username: 'ada', role: 'MISSION_OWNER', since: at }],
    files: [
      {
        name: 'map.pdf',
        hash: 'ab',
        mimeType: 'application/pdf',
        bytes: 2_000_000,
        addedAt: at,
        addedBy: 'ANDROID-ada',
      },
    ],
    items: [{ uid: 'marker-1', callsign: 'Base', type: 'a-f-G', addedAt: at, addedBy: 'ANDROID-ada' }],
    log: [{ content: 'Team 2 is at the hut', author: 'ANDROID-ada', at }],
    changes: [{ type: 'ADD_CONTENT', subject: 'Base', author: 'ANDROID-ada', at }],
    ...more,
  };
}

export function someArchive(more: Partial<MissionArchive> = {}): MissionArchive {
  const { guid, name, description, creatorUid, groups, hasPassword, inviteOnly } = someMission();
  const keptAt = '2026-01-02T04:00:00.000Z';
  const shown = { guid, name, description, creatorUid, groups, hasPassword, inviteOnly };
  return { id: ARCHIVE_ID, ...shown, keptAt, bytes: 11, ...more };
}

/** With one mission and one archive of another. */
export function fakeMissions(now: () => Date): FakeMissions {
  const CONTENT = 'the archive';
  const checked = (): void => {
    if (fake.error !== undefined) throw fake.error;
  };
  const fake: FakeMissions = {
    missions: [someMission()],
    archives: [someArchive({ name: 'Flood 2025' })],
    messages: [],
    error: undefined,
    coreMissions: {
      async list() {
        checked();
        return { missions: [...fake.missions], messages: fake.messages };
      },
      async find(guid) {
        checked();
        return fake.missions.find((each) => each.guid === guid);
      },
      async remove(guid) {
        checked();
        const before = fake.missions.length;
        fake.missions = fake.missions.filter((each) => each.guid !== guid);
        return fake.missions.length < before;
      },
    },
    missionArchives: {
      async list() {
        checked();
        return [...fake.archives];
      },
      async keep(guid) {
        checked();
        const mission = fake.missions.find((each) => each.guid === guid);
        if (mission === undefined) throw new AppError('not_found', `The core has no mission ${guid}.`);
        const archive = someArchive({
          id: crypto.randomUUID(),
          guid,
          name: mission.name,
          keptAt: now().toISOString(),
          bytes: CONTENT.length,
        });
        fake.archives.unshift(archive);
        return archive;
      },
      async part(_, from) {
        checked();
        return base64(CONTENT.slice(from, from + 4));
      },
      async restore(id) {
        checked();
        const archive = fake.archives.find((each) => each.id === id) as MissionArchive;
        if (fake.missions.some(({ name }) => name === archive.name))
          throw new AppError('conflict', `A mission named ${archive.name} exists.`);
        const guid = crypto.randomUUID();
        fake.missions.push(someMission({ guid, name: archive.name }));
        return { ...archive, guid };
      },
      async remove(id) {
        checked();
        const before = fake.archives.length;
        fake.archives = fake.archives.filter((each) => each.id !== id);
        return fake.archives.length < before;
      },
    },
  };
  return fake;
}
