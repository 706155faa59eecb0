// Defines what the core keeps for devices: profiles, logs of failures, video feeds, and packages of
// apps and plugins.

/** When devices get a profile: after each enrollment, at each connection, or when a tool asks. */
export const PROFILE_TYPES = ['Enrollment', 'Connection', 'Tool'] as const;
export type ProfileType = (typeof PROFILE_TYPES)[number];

export interface DeviceProfile {
  id: number;
  name: string;
  active: boolean;
  type: ProfileType;
  /** Of the type `Tool`: for which. */
  tool: string | null;
  /** As devices see them, without a prefix. */
  groups: string[] | 'all';
  /** ISO 8601. */
  updatedAt: string | null;
}

export interface ProfileFile {
  id: number;
  name: string;
  /** Null when the core does not say. */
  bytes: number | null;
}

export interface ErrorLog {
  id: number;
  /** As the device names itself. */
  uid: string;
  callsign: string;
  /** Whose certificate it came by. */
  username: string;
  platform: string;
  version: string;
  bytes: number;
  /** ISO 8601. */
  at: string;
}

export interface VideoFeed {
  uid: string;
  name: string;
  urls: string[];
  active: boolean;
}

export interface DevicePackage {
  /** SHA-256, lower-case hex. */
  hash: string;
  name: string;
  packageName: string;
  version: string;
  /** The ATAK that a plugin is made for; null for an app. */
  pluginApi: string | null;
  bytes: number;
  /** ISO 8601. */
  addedAt: string | null;
}

/** A submitted form with one file, as it comes. */
export interface FormUpload {
  /** With its boundary. */
  contentType: string;
  body: ReadableStream<Uint8Array>;
}

/**
 * Errors as of `Core`, and `not_supported` for an upload through workerd. `not_found` for what is
 * not there, `invalid` and `conflict` in the words of the core. Undefined: this core has no such
 * call.
 */
export interface CoreContents {
  profiles(): Promise<DeviceProfile[]>;
  /** An inactive one, without groups. */
  addProfile(name: string): Promise<void>;
  changeProfile(profile: Omit<DeviceProfile, 'updatedAt'>): Promise<void>;
  removeProfile(id: number): Promise<void>;
  profileFiles(name: string): Promise<ProfileFile[]>;
  /** Text of at most 1 MB; in place of one of the same name. */
  writeProfileFile(name: string, file: { name: string; text: string }): Promise<void>;
  readProfileFile(name: string, id: number): Promise<string>;
  uploadProfileFile(name: string, upload: FormUpload): Promise<void>;
  removeProfileFile(name: string, id: number): Promise<void>;
  /** Newest first. */
  errorLogs(): Promise<ErrorLog[] | undefined>;
  /** In Base64. */
  errorLog(id: number): Promise<{ filename: string; base64: string }>;
  removeErrorLog(id: number): Promise<void>;
  videoFeeds(): Promise<VideoFeed[]>;
  addVideoFeed(feed: { name: string; url: string; groups: readonly string[] }): Promise<void>;
  removeVideoFeed(uid: string): Promise<void>;
  packages(): Promise<DevicePackage[] | undefined>;
  uploadPackage(upload: FormUpload): Promise<void>;
  removePackage(hash: string): Promise<void>;
}

/** What somebody publishes at the video relay of the stack. */
export interface RelayStream {
  name: string;
  /** ISO 8601; null when the relay does not say. */
  since: string | null;
  /** `H264` */
  tracks: string[];
  viewers: number;
}

/** Rejects with `unavailable` when the relay does not answer. */
export interface VideoRelay {
  /** By name. */
  streams(): Promise<RelayStream[]>;
}

/** What this feature needs from outside, by the names in Deps. */
export interface CoreContentPorts {
  coreContents: CoreContents;
  /** Undefined without RELAY_API_URL. */
  videoRelay: VideoRelay | undefined;
}
