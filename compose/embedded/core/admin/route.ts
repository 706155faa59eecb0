// What a file of routes of the admin API is made of and from.

import type { Context } from 'hono';
import type { CertificateStore, CoreCaller, CoreConnection, CoreDirectory, Revocations } from '../parts.ts';
import type { MissionApiOptions } from '../missions/parts.ts';
import type { ArchiveCounts, CoreStream, StreamCounts } from '../stream/parts.ts';
import type { ClientEndpoints, CoreDatabaseFacts } from '../store/client-endpoints.ts';
import type { FilesOptions } from '../files/options.ts';
import type { EnrollmentAttempts } from '../enrollment/attempts.ts';
import type { CertificateLists } from './certificate-lists.ts';
import type { OwnProcess } from './own-process.ts';
import type { RetentionRuns } from '../retention/retention-service.ts';
import type { Retention } from './retention-files.ts';

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

export interface AdminEnv {
  Bindings: { connection: CoreConnection; caller: CoreCaller };
}
export type AdminContext = Context<AdminEnv>;

export const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** What is done on one path. */
export type Handlers = Partial<Record<Method, (c: AdminContext) => Promise<Response> | Response>>;

export interface AdminRoute {
  path: string;
  handlers: Handlers;
}
