// Defines the options of the admin API, and reads the process figures from the operating system.

import { statfs } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { CoreCluster } from '@holdfast/kit/core-wire';
import type { EnrollmentAttempts } from '../enrollment/events.ts';
import type { FilesOptions } from '../files/options.ts';
import type { ExportOptions } from '../history/export-routes.ts';
import type { HistoryOptions } from '../history/routes.ts';
import type { MissionApiOptions } from '../missions/access.ts';
import type { CertificateStore, CoreDirectory, Retention, Revocations } from '../model/parts.ts';
import type { ArchiveCounts, CoreStream, StreamCounts } from '../model/stream.ts';
import type { ProfilesOptions } from '../profiles/routes.ts';
import type { ReportOptions } from '../reports/citrap.ts';
import type { ErrorLogOptions } from '../reports/error-logs.ts';
import type { TrackOptions } from '../reports/tracks.ts';
import type { RetentionRuns } from '../retention/retention-service.ts';
import type { ProductOptions } from '../services/products.ts';
import type { StreamServicesOptions } from '../services/stream-services.ts';
import type { VideoOptions } from '../services/video.ts';
import type { CertificateLists } from '../store/certificates.ts';
import type { History } from '../store/history.ts';
import type { CoreDatabaseFacts } from '../store/presence.ts';
import type { SecurityOptions } from './security.ts';

export interface AdminApiOptions
  extends
    FilesOptions,
    MissionApiOptions,
    HistoryOptions,
    ExportOptions,
    ProfilesOptions,
    ErrorLogOptions,
    ReportOptions,
    ProductOptions,
    SecurityOptions,
    TrackOptions,
    StreamServicesOptions,
    VideoOptions {
  history: History;
  certificates: CertificateStore;
  /** Shared with enrollment, which clears it. */
  lists: CertificateLists;
  revocations: Revocations;
  directory: CoreDirectory;
  /** The start of the names of groups in the directory, `core_`. */
  groupPrefix: string;
  /** An account that the directory has for certain: asked for to see whether it answers. */
  knownAccount: string;
  /** Of 8446. */
  enrollmentAttempts: Pick<EnrollmentAttempts, 'list'>;
  retention: Retention;
  retentionRuns: RetentionRuns;
  database: CoreDatabaseFacts;
  ownProcess: OwnProcess;
  /**
   * Takes the groups of those people anew on the stream: after they have switched groups, or when
   * an admin says so. `clientUid` is the device that has switched them.
   */
  regroup: (usernames: readonly string[], clientUid: string | undefined) => Promise<void>;
  /** Says something to everybody on the stream. */
  toEverybody: CoreStream['toEverybody'];
  /** Figures of the stream and of what it stores; undefined while there is no stream. */
  streamCounts?: () => StreamCounts;
  /** How many connections the stream takes. */
  maxClients?: number;
  /** Of several nodes; undefined for a core of its own. */
  cluster?: { readonly node: string; state(): CoreCluster };
  archiveCounts?: () => ArchiveCounts;
}

const SHORTEST_MS = 1_000;

/** What this process and its disk use, as the operating system counts it. */
export class OwnProcess {
  readonly startedAt = new Date(Date.now() - process.uptime() * 1000);
  readonly #dataDir: string;
  #last = { atMs: performance.now() - process.uptime() * 1000, microseconds: 0 };
  #usage = 0;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** `heapCapBytes`: with more the process ends. */
  memory(): { heapUsedBytes: number; heapCommittedBytes: number; heapCapBytes: number } {
    const { heapUsed, heapTotal } = process.memoryUsage();
    return {
      heapUsedBytes: heapUsed,
      heapCommittedBytes: heapTotal,
      heapCapBytes: getHeapStatistics().heap_size_limit,
    };
  }

  /** `usage` is of all processors, 0 to 1, since it was asked last. */
  cpu(): { count: number; usage: number } {
    const count = availableParallelism();
    const atMs = performance.now();
    if (atMs - this.#last.atMs >= SHORTEST_MS) {
      const { user, system } = process.cpuUsage();
      this.#usage = Math.min(1, (user + system - this.#last.microseconds) / 1000 / (atMs - this.#last.atMs) / count);
      this.#last = { atMs, microseconds: user + system };
    }
    return { count, usage: this.#usage };
  }

  /** Of the disk that holds the files of the core. */
  async disk(): Promise<{ totalBytes: number; freeBytes: number; usableBytes: number }> {
    const { bsize, blocks, bfree, bavail } = await statfs(this.#dataDir);
    return { totalBytes: blocks * bsize, freeBytes: bfree * bsize, usableBytes: bavail * bsize };
  }
}
