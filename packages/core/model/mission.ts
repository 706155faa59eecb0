// Defines missions: row, contents, changes, subscriptions, and the permissions of each role.

/** In the order of their ids in the table `role`. */
export const MISSION_ROLES = ['MISSION_OWNER', 'MISSION_SUBSCRIBER', 'MISSION_READONLY_SUBSCRIBER'] as const;
export type MissionRole = (typeof MISSION_ROLES)[number];

const OWNER_PERMISSIONS = [
  'MISSION_READ',
  'MISSION_WRITE',
  'MISSION_DELETE',
  'MISSION_SET_ROLE',
  'MISSION_SET_PASSWORD',
  'MISSION_UPDATE_GROUPS',
  'MISSION_MANAGE_FEEDS',
  'MISSION_MANAGE_LAYERS',
] as const;
export type MissionPermission = (typeof OWNER_PERMISSIONS)[number];

export const PERMISSIONS: Readonly<Record<MissionRole, readonly MissionPermission[]>> = {
  MISSION_OWNER: OWNER_PERMISSIONS,
  MISSION_SUBSCRIBER: ['MISSION_READ', 'MISSION_WRITE'],
  MISSION_READONLY_SUBSCRIBER: ['MISSION_READ'],
};

/** In the order of their numbers in `mission_change.change_type`. */
export const CHANGE_TYPES = [
  'CREATE_MISSION',
  'DELETE_MISSION',
  'ADD_CONTENT',
  'REMOVE_CONTENT',
  'CREATE_DATA_FEED',
  'DELETE_DATA_FEED',
] as const;
export type MissionChangeType = (typeof CHANGE_TYPES)[number];

/** What somebody may say of a mission; a member that is undefined was not said. */
export interface MissionDraft {
  description?: string | undefined;
  chatRoom?: string | undefined;
  baseLayer?: string | undefined;
  bbox?: string | undefined;
  /** Corners as `lat,lon`. */
  boundingPolygon?: readonly string[] | undefined;
  path?: string | undefined;
  classification?: string | undefined;
  tool?: string | undefined;
  /** Null takes it away. */
  passwordHash?: string | null | undefined;
  defaultRole?: MissionRole | undefined;
  /** Epoch seconds; -1: never. */
  expiration?: number | undefined;
  inviteOnly?: boolean | undefined;
}

export interface MissionGroup {
  name: string;
  place: number;
}

export interface Mission {
  id: number;
  guid: string;
  name: string;
  creatorUid: string;
  createTime: Date;
  lastEdited: Date | null;
  tool: string;
  chatRoom: string | null;
  description: string | null;
  baseLayer: string | null;
  bbox: string | null;
  boundingPolygon: readonly string[] | null;
  path: string | null;
  classification: string | null;
  passwordHash: string | null;
  /** Of whoever comes without a role of their own. */
  defaultRole: MissionRole;
  expiration: number;
  inviteOnly: boolean;
  keywords: readonly string[];
}

export interface MissionWithGroups extends Mission {
  groups: readonly MissionGroup[];
}

/** What the newest event of a uid says of it. */
export interface UidDetails {
  type: string;
  callsign: string | null;
  iconsetPath: string | null;
  color: string | null;
  lat: number | null;
  lon: number | null;
}

export interface MissionUid {
  missionId: number;
  uid: string;
  addedAt: Date | null;
  addedBy: string | null;
  details?: UidDetails | null;
}

export interface MissionFile {
  missionId: number;
  resource: Resource;
  addedAt: Date | null;
  addedBy: string | null;
}

export interface MissionContents {
  uids: readonly MissionUid[];
  files: readonly MissionFile[];
  /** There is more than one answer holds. */
  isCut: boolean;
}

export interface MissionChange {
  type: MissionChangeType;
  missionName: string;
  missionGuid: string;
  timestamp: Date;
  serverTime: Date;
  creatorUid: string;
  contentUid: string | null;
  contentHash: string | null;
  /** Of `contentHash`, as long as the file is there. */
  resource: Resource | null;
  /** Of `contentUid`, where they are known. */
  details?: UidDetails | null;
  /** What came or went is no content, but hangs on the mission. */
  attachment?: Attachment | undefined;
}

/** What may hang on a mission beside its contents. */
export const ATTACHMENT_KINDS = ['externalData', 'missionFeed', 'mapLayer'] as const;
export type AttachmentKind = (typeof ATTACHMENT_KINDS)[number];

export interface Attachment {
  kind: AttachmentKind;
  uid: string;
  /** Members as devices see them, without the uid. */
  body: Readonly<Record<string, unknown>>;
}

export const INVITATION_TYPES = ['clientUid', 'callsign', 'userName', 'group', 'team'] as const;
export type InvitationType = (typeof INVITATION_TYPES)[number];

export interface MissionInvitation {
  /** Names the row in its token. */
  uid: string;
  missionName: string;
  missionGuid: string;
  type: InvitationType;
  invitee: string;
  creatorUid: string;
  createTime: Date;
  token: string;
  role: MissionRole;
}

export interface LogEntry {
  id: string;
  content: string;
  creatorUid: string;
  /** Who wrote it. */
  username: string;
  /** Of the event that it is about. */
  entryUid: string | null;
  /** The time it is about, as its author says. */
  dtg: Date | null;
  created: Date;
  /** Of the last change. */
  servertime: Date;
  contentHashes: readonly string[];
  keywords: readonly string[];
}

export const LAYER_TYPES = ['GROUP', 'UID', 'CONTENTS', 'MAPLAYER', 'ITEM'] as const;
export type LayerType = (typeof LAYER_TYPES)[number];

export interface MissionLayer {
  uid: string;
  /** An ITEM has none. */
  name: string | null;
  type: LayerType;
  parentUid: string | null;
}

export interface MissionSubscription {
  /** Names the row in its token. */
  uid: string;
  clientUid: string;
  username: string;
  createTime: Date;
  role: MissionRole;
  /** Null while the device has left and may come back with its role. */
  token: string | null;
}

export function may(role: MissionRole | undefined, permission: MissionPermission): boolean {
  return role !== undefined && PERMISSIONS[role].includes(permission);
}

/** A row without its bytes. */
export interface Resource {
  id: number;
  /** SHA-256, lower-case hex. */
  hash: string;
  uid: string;
  name: string;
  filename: string;
  mimeType: string;
  keywords: string[];
  /** The user. */
  submitter: string;
  /** The uid of the device. */
  creatorUid: string;
  tool: string;
  submissionTime: Date;
  /** Epoch seconds; -1: none. */
  expiration: number;
  sizeBytes: number;
}

/**
 * How much of everything: what one phone sends by accident must not fill the database, nor an
 * answer the memory.
 */
export const MISSION_LIMITS = {
  /** Characters. */
  name: 255,
  uid: 255,
  keyword: 128,
  /** Description, base layer and every other text. */
  text: 20_000,
  /** Corners of a bounding polygon. */
  corners: 1_000,
  keywords: 100,
  /** Uids or hashes in one request. */
  added: 1_000,
  /** Uids of a mission, and files of it. */
  contents: 5_000,
  missions: 20_000,
  /** That one person owns. */
  owned: 1_000,
  /** Devices of one person that are subscribed to one mission. */
  devices: 20,
  /** In one answer. */
  listed: 1_000,
  changes: 5_000,
  contentsListed: 20_000,
  invitations: 500,
  /** In one request. */
  invited: 100,
  logEntries: 10_000,
  /** Of an entry: missions, hashes and keywords. */
  logMembers: 100,
  /** Of the texts in one answer. */
  logBytes: 8_000_000,
  /** Folders; what is filed in them is limited by the contents. */
  layers: 500,
  layerDepth: 20,
  /** Of each kind. */
  attachments: 200,
  /** Of the files of one archive. */
  archiveBytes: 2_000_000_000,
  packageEntries: 2_000,
} as const;

/**
 * Changes that one person may make at once, and how many more each second. Admins are not counted.
 */
export const CHANGE_RATE = { burst: 600, perSecond: 10 } as const;
/** Passwords that one person may try. */
export const PASSWORD_RATE = { burst: 10, perSecond: 0.2 } as const;
