// What the admin API is made from.

import type { EnrollmentAttempts } from '../enrollment/events.ts';
import type { FilesOptions } from '../files/options.ts';
import type { MissionApiOptions } from '../missions/access.ts';
import type { CertificateStore, CoreDirectory, Retention, Revocations } from '../model/parts.ts';
import type { ArchiveCounts, CoreStream, StreamCounts } from '../model/stream.ts';
import type { RetentionRuns } from '../retention/retention-service.ts';
import type { CertificateLists } from '../store/certificates.ts';
import type { ClientEndpoints, CoreDatabaseFacts } from '../store/presence.ts';
import type { OwnProcess } from './own-process.ts';

export interface AdminApiOptions extends FilesOptions, MissionApiOptions {
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
  endpoints: ClientEndpoints;
  retention: Retention;
  retentionRuns: RetentionRuns;
  database: CoreDatabaseFacts;
  ownProcess: OwnProcess;
  /**
   * Takes the groups of those people anew on the stream: after they have switched groups, or when an admin says so.
   * `clientUid` is the device that has switched them.
   */
  regroup: (usernames: readonly string[], clientUid: string | undefined) => Promise<void>;
  /** Says something to everybody on the stream. */
  toEverybody: CoreStream['toEverybody'];
  /** Figures of the stream and of what it stores; undefined while there is no stream. */
  streamCounts?: () => StreamCounts;
  archiveCounts?: () => ArchiveCounts;
}
