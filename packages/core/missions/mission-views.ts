// Formats missions as JSON, with the members, dates and empty lists that devices expect.

import { toResourceView } from '../files/file-views.ts';
import {
  type Attachment,
  type AttachmentKind,
  type LogEntry,
  type Mission,
  type MissionChange,
  type MissionContents,
  type MissionFile,
  type MissionInvitation,
  type MissionRole,
  type MissionSubscription,
  type MissionUid,
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
  /** Of this mission alone. */
  attachments?: readonly Attachment[] | undefined;
  logs?: readonly LogEntry[] | undefined;
}

/** Members that are not known are left out; lists are there even when they are empty. */
export function toMissionView(mission: Mission, also: ViewOptions = {}) {
  const { contents, attachments = [] } = also;
  const attached = (kind: AttachmentKind): Attachment[] => attachments.filter((each) => each.kind === kind);
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
    externalData: attached('externalData').map(toAttachmentView),
    feeds: attached('missionFeed').map(toAttachmentView),
    mapLayers: attached('mapLayer').map(toMapLayerView),
    ownerRole: also.ownerRole === undefined ? undefined : toRoleView(also.ownerRole),
    defaultRole: toRoleView(mission.defaultRole),
    inviteOnly: mission.inviteOnly,
    missionChanges: also.changes?.map(toChangeView),
    expiration: mission.expiration,
    guid: mission.guid,
    uids: (contents?.uids ?? []).map((each) => toUidAddView(each, mission)),
    contents: (contents?.files ?? []).map((each) => toFileAddView(each, mission)),
    logs: also.logs?.map((entry) => toLogView(entry, [mission.name])),
    token: also.token,
    passwordProtected: mission.passwordHash !== null,
  };
}

export function toUidAddView({ uid, addedAt, addedBy, details }: MissionUid, { createTime }: Mission) {
  return {
    data: uid,
    timestamp: (addedAt ?? createTime).toISOString(),
    creatorUid: addedBy ?? '',
    keywords: [],
    details: toDetailsView(details),
  };
}

export function toFileAddView({ resource, addedAt, addedBy }: MissionFile, { createTime }: Mission) {
  return {
    data: toResourceView(resource),
    timestamp: (addedAt ?? createTime).toISOString(),
    creatorUid: addedBy ?? '',
    keywords: [],
  };
}

export function toAttachmentView({ uid, body }: Attachment): object {
  return { ...body, uid };
}

export function toMapLayerView(attachment: Attachment): object {
  return {
    enabled: false,
    defaultLayer: false,
    ignoreErrors: false,
    invertYCoordinate: false,
    ...toAttachmentView(attachment),
  };
}

/** `names` are the missions that the reader may know of. */
export function toLogView(entry: LogEntry, names: readonly string[]) {
  const { id, content, creatorUid, entryUid, dtg, created, servertime, contentHashes, keywords } = entry;
  return {
    id,
    content,
    creatorUid,
    entryUid: entryUid ?? undefined,
    missionNames: names,
    servertime: servertime.toISOString(),
    dtg: dtg?.toISOString(),
    created: created.toISOString(),
    contentHashes,
    keywords,
  };
}

export function toInvitationView(invitation: MissionInvitation) {
  const { missionName, missionGuid, type, invitee, creatorUid, createTime, token, role } = invitation;
  return {
    missionName,
    missionGuid,
    type,
    invitee,
    creatorUid,
    createTime: createTime.toISOString(),
    token,
    role: toRoleView(role),
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
    ...(change.attachment === undefined ? {} : { [change.attachment.kind]: toAttachmentView(change.attachment) }),
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
