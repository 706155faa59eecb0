// Defines the missions of the core, and the archives of missions that this stack keeps.

/** Times are ISO 8601 in UTC; null when the core does not say. Names are what devices wrote. */
export interface CoreMission {
  guid: string;
  name: string;
  description: string;
  /** The uid of the device that created it; may be empty. */
  creatorUid: string;
  createdAt: string | null;
  lastEditedAt: string | null;
  keywords: string[];
  hasPassword: boolean;
  inviteOnly: boolean;
  /** Map items and files in it, and the bytes of the files. */
  size: { items: number; files: number; bytes: number };
}

export interface MissionList {
  /** By name. */
  missions: CoreMission[];
  /** What the core left out, in its own words. */
  messages: string[];
}

export interface MissionMember {
  clientUid: string;
  username: string;
  /** `MISSION_OWNER` */
  role: string;
  since: string | null;
}

export interface MissionFile {
  name: string;
  /** SHA-256 in hex. */
  hash: string;
  mimeType: string;
  bytes: number;
  addedAt: string | null;
  addedBy: string;
}

export interface MissionItem {
  uid: string;
  callsign: string;
  /** CoT type; empty when unknown. */
  type: string;
  addedAt: string | null;
  addedBy: string;
}

export interface MissionLogEntry {
  content: string;
  author: string;
  at: string | null;
}

export interface MissionChange {
  /** `ADD_CONTENT` */
  type: string;
  /** The callsign, name or uid of what was changed; empty for the mission itself. */
  subject: string;
  author: string;
  at: string | null;
}

export interface CoreMissionDetail extends CoreMission {
  /** As devices see them, without a prefix. */
  groups: string[];
  members: MissionMember[];
  files: MissionFile[];
  items: MissionItem[];
  /** Newest first. */
  log: MissionLogEntry[];
  /** Newest first. */
  changes: MissionChange[];
}

/** Errors as of `Core`. */
export interface CoreMissions {
  /** At most 1,000; `messages` says when there are more. */
  list(): Promise<MissionList>;
  /** Undefined when there is none. */
  find(guid: string): Promise<CoreMissionDetail | undefined>;
  /** False when there is none. Its files stay in the file store of the core. */
  remove(guid: string): Promise<boolean>;
}

/** An archive is a data package of the core, with what is needed to make the mission again. */
export interface MissionArchive {
  id: string;
  guid: string;
  name: string;
  description: string;
  creatorUid: string;
  groups: string[];
  /** Archives hold no password: a mission that had one is restored by invitation only. */
  hasPassword: boolean;
  inviteOnly: boolean;
  keptAt: string;
  bytes: number;
}

/**
 * Rejects with `unavailable` when the directory can't be used, and as `Core` when the core can't.
 */
export interface MissionArchives {
  /** Newest first. */
  list(): Promise<MissionArchive[]>;
  /**
   * Keeps the mission as it is now. `not_found` for an unknown guid, `conflict` beyond the limits
   * of the kept archives.
   */
  keep(guid: string): Promise<MissionArchive>;
  /**
   * A part of the archive from that byte, in Base64; empty behind its end. `not_found` for an
   * unknown archive.
   */
  part(id: string, from: number): Promise<string>;
  /**
   * Makes a mission of that name and unpacks the archive into it. `not_found` for an unknown
   * archive. `conflict` when a mission of that name exists, or the archive does not say its groups.
   * A failure leaves no mission behind unless it says so.
   */
  restore(id: string): Promise<MissionArchive>;
  /** False when there is none. */
  remove(id: string): Promise<boolean>;
}

/** What this feature needs from outside, by the names in Deps. */
export interface CoreMissionPorts {
  coreMissions: CoreMissions;
  missionArchives: MissionArchives;
}
