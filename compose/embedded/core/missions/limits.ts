// How much of everything: what one phone sends by accident must not fill the database, nor an answer the memory.

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
} as const;

/** Changes that one person may make at once, and how many more each second. Admins are not counted. */
export const CHANGE_RATE = { burst: 600, perSecond: 10 } as const;
/** Passwords that one person may try. */
export const PASSWORD_RATE = { burst: 10, perSecond: 0.2 } as const;
