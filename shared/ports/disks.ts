// How full the file systems are on which the stack keeps its data.

export interface DiskUse {
  /** Where the file system is mounted. */
  mount: string;
  /** What of the stack lies on it. */
  paths: string[];
  total_bytes: number;
  /** What an ordinary user can still write. */
  free_bytes: number;
  /** As df counts it: used of what ordinary users could use, 0..100. */
  used_pct: number;
  /** The same for inodes; null where the file system has no fixed number of them. */
  inodes_used_pct: number | null;
}

export interface Disks {
  /** One entry for each file system. Rejects when one does not answer within a few seconds. */
  use(): Promise<DiskUse[]>;
}
