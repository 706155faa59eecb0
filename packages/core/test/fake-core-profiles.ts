// A server without profiles of its own: devices get only the preferences for channels.

import { membershipsOf, PeopleGroups } from '../groups/own-groups.ts';
import { DeviceProfiles } from '../profiles/device-profiles.ts';
import type { ErrorLogStore } from '../store/error-logs.ts';
import type { ProfileStore } from '../store/profiles.ts';
import type { ReportStore } from '../store/reports.ts';

const absent = (): Promise<never> => Promise.reject(new Error('there is no profile'));

export function noProfiles(): ProfileStore {
  return {
    list: async () => [],
    create: absent,
    update: absent,
    remove: async () => false,
    files: absent,
    addFile: absent,
    file: absent,
    removeFile: absent,
    given: async () => [],
  };
}

export function noErrorLogs(): ErrorLogStore {
  return { add: absent, list: async () => [], contents: async () => undefined, remove: async () => false };
}

export function noReports(): ReportStore {
  return {
    list: async () => [],
    find: async () => undefined,
    content: async () => undefined,
    add: absent,
    replace: absent,
    remove: async () => false,
  };
}

export function withoutProfiles(now: () => Date): DeviceProfiles {
  return new DeviceProfiles({
    people: new PeopleGroups({ directory: { find: async () => undefined }, memberships: membershipsOf('core_'), now }),
    groups: { list: async () => [], ensure: async () => [] },
    activeGroups: { of: async () => [], set: async () => undefined },
    profiles: noProfiles(),
    now,
  });
}
