// Formats missions as JSON, with the members, dates and empty lists that devices expect.

import { toResourceView } from '../files/file-views.ts';
import {
  type Mission,
  type MissionChange,
  type MissionContents,
  type MissionRole,
  type MissionSubscription,
  PERMISSIONS,
  type UidDetails,
} from '../model/mission.ts';

export interface ViewOptions {
  /** Of this mission alone. */
  contents?: Pick<MissionContents, 'uids' | 'files'> | undefined;
  /** Names. */
  groups?: readonly string[];
  changes?: readonly MissionChange[];
  token?: string | undefined;
  ownerRole?: MissionRole;
}

/** Members that are not known are left out; lists are there even when they are empty. */
export function toMissionView(mission: Mission, also: ViewOptions = {}) {
  const { contents } = also;
  return {
    name: mission.name,
    description: mission.description ?? '',
    chatRoom: mission.chatRoom ?? '',
    baseLayer: mission.baseLayer ?? '',
    bbox: mission.bbox ?? '',
    boundingPolygon: mission.boundingPolygon ?? undefined,
    path: mission.path ?? '',
    classification: mission.classification ?? '',
    tool: mission.tool,
    keywords: mission.keywords,
    creatorUid: mission.creatorUid,
    createTime: mission.createTime.toISOString(),
    lastEdited: (mission.lastEdited ?? mission.createTime).toISOString(),
    groups: also.groups,
    externalData: [],
    feeds: [],
    mapLayers: [],
    ownerRole: also.ownerRole === undefined ? undefined : toRoleView(also.ownerRole),
    defaultRole: toRoleView(mission.defaultRole),
    inviteOnly: mission.inviteOnly,
    missionChanges: also.changes?.map(toChangeView),
    expiration: mission.expiration,
    guid: mission.guid,
    uids: (contents?.uids ?? []).map(({ uid, addedAt, addedBy, details }) => ({
      data: uid,
      timestamp: (addedAt ?? mission.createTime).toISOString(),
      creatorUid: addedBy ?? '',
      keywords: [],
      details: toDetailsView(details),
    })),
    contents: (contents?.files ?? []).map(({ resource, addedAt, addedBy }) => ({
      data: toResourceView(resource),
      timestamp: (addedAt ?? mission.createTime).toISOString(),
      creatorUid: addedBy ?? '',
      keywords: [],
    })),
    token: also.token,
    passwordProtected: mission.passwordHash !== null,
  };
}

export function toRoleView(role: MissionRole) {
  return { type: role, permissions: PERMISSIONS[role] };
}

export function toChangeView(change: MissionChange) {
  const { contentHash, resource } = change;
  return {
    isFederatedChange: false,
    type: change.type,
    missionName: change.missionName,
    missionGuid: change.missionGuid,
    timestamp: change.timestamp.toISOString(),
    serverTime: change.serverTime.toISOString(),
    creatorUid: change.creatorUid,
    contentUid: change.contentUid ?? undefined,
    contentResource:
      resource === null ? (contentHash === null ? undefined : { hash: contentHash }) : toResourceView(resource),
    details: toDetailsView(change.details),
  };
}

export function toSubscriptionView(subscription: MissionSubscription, also: { token?: string; mission?: object } = {}) {
  const { clientUid, username, createTime, role } = subscription;
  return { ...also, clientUid, username, createTime: createTime.toISOString(), role: toRoleView(role) };
}

function toDetailsView(details: UidDetails | null | undefined) {
  if (details === null || details === undefined) return undefined;
  const { type, callsign, iconsetPath, color, lat, lon } = details;
  return {
    type,
    callsign: callsign ?? undefined,
    iconsetPath: iconsetPath ?? undefined,
    color: color ?? undefined,
    location: lat === null || lon === null ? undefined : { lat, lon },
  };
}
