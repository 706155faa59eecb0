// The missions of a server that has none: what is made is there until the next one is made, and has
// no contents.

import type { MissionParts } from '../missions/access.ts';
import { announce } from '../missions/announce.ts';
import { MissionPasswords, MissionTokens } from '../missions/credentials.ts';
import type { Mission, MissionWithGroups } from '../model/mission.ts';

export const NO_DRAFT: Omit<Mission, 'id' | 'guid' | 'name' | 'creatorUid' | 'createTime'> = {
  lastEdited: null,
  tool: 'public',
  chatRoom: null,
  description: null,
  baseLayer: null,
  bbox: null,
  boundingPolygon: null,
  path: null,
  classification: null,
  passwordHash: null,
  defaultRole: 'MISSION_SUBSCRIBER',
  expiration: -1,
  inviteOnly: false,
  keywords: [],
};

const absent = (): Promise<never> => Promise.reject(new Error('there is no mission'));

export function noMissions(): MissionParts {
  let made: MissionWithGroups | undefined;
  return {
    reads: {
      async find(key) {
        const found = made !== undefined && 'name' in key && key.name === made.name ? made : undefined;
        made = undefined;
        return found;
      },
      named: async () => [],
      wasDeleted: async () => false,
      list: async () => [],
      count: async () => 0,
      uids: async () => [],
      contents: async () => ({ uids: [], files: [], isCut: false }),
      changes: async () => [],
    },
    writes: {
      async create({ name, creatorUid, now, places }) {
        const groups = places.map((place) => ({ name: `G${place}`, place }));
        const guid = '00000000-0000-4000-8000-000000000001';
        made = { ...NO_DRAFT, id: 1, guid, name, creatorUid, createTime: now, groups };
        return { id: 1, subscriptionUid: 'one' };
      },
      update: absent,
      addContent: absent,
      removeContent: absent,
      setKeywords: absent,
      removeKeyword: absent,
      remove: absent,
      removeEvents: absent,
      removeFiles: absent,
    },
    subscriptions: {
      of: async () => [],
      all: async () => [],
      find: async () => undefined,
      byUid: async () => undefined,
      roleOf: async () => undefined,
      subscribe: absent,
      setToken: async () => undefined,
      unsubscribe: async () => undefined,
      setRole: absent,
    },
    invitations: {
      add: absent,
      remove: async () => undefined,
      of: async () => [],
      to: async () => [],
      roleOf: async () => undefined,
      roleByUid: async () => undefined,
      accept: async () => undefined,
    },
    logs: {
      save: absent,
      find: async () => undefined,
      missionsOf: async () => [],
      remove: absent,
      of: async () => [],
    },
    layers: { of: async () => [], add: absent, rename: absent, move: absent, remove: absent, file: absent },
    links: {
      parentOf: async () => undefined,
      childrenOf: async () => [],
      setParent: absent,
      attachments: async () => [],
      attach: absent,
      detach: absent,
      changed: absent,
    },
    events: { newest: async () => [], read: async () => [] },
    tokens: new MissionTokens({ key: Buffer.alloc(32, 7), issuer: 'cot.example.org' }),
    passwords: new MissionPasswords(),
    announce: announce(() => undefined),
    submit: absent,
  };
}
