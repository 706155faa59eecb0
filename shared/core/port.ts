// Defines the core server's admin API: enrolled certificates, clients on the stream, plugins and
// its own facts.

import type { CoreCluster, CoreRetentionRun, EnrollmentAttempt, RetentionRunOrder } from '@holdfast/kit/core-wire';
import type { Retained } from '@holdfast/kit/retention';

/** A certificate as the core has recorded it. Times are ISO 8601 in UTC. */
export interface CoreCertificate {
  /** SHA-256 of the DER: `AA:BB:…`. Its key. */
  hash: string;
  /** Lower-case hex without leading zeros; empty when the core's record cannot be read. */
  serial: string;
  /** The common name: its owner. */
  username: string;
  /** The device's name for itself when it enrolled; may be empty. */
  clientUid: string;
  issuedAt: string;
  expiresAt: string;
  revokedAt: string | null;
  /** With header lines. */
  pem: string;
}

/** A connection on the stream. */
export interface CoreClient {
  /** The device's uid; empty until it has reported. */
  uid: string;
  /** The core's own name of the connection: `tls:7`. */
  connection: string;
  callsign: string;
  username: string;
  /** As devices see them, without a prefix; each once. */
  groups: string[];
  team: string;
  role: string;
  /** Program and version, as the device reports. */
  device: string;
  address: string;
  /** In which it gets events; null when the core does not report it, as a release. */
  framing: 'xml' | 'protobuf' | null;
  /** Of several core nodes the one that it is connected to; absent when there is one. */
  node?: string;
  /** ISO 8601; null when the core does not report it. */
  since: string | null;
  lastReport: string | null;
}

export interface CorePlugin {
  name: string;
  description: string;
  version: string;
  enabled: boolean;
  started: boolean;
  /** Its error; null when there is none. */
  error: string | null;
}

export interface CoreStatus {
  /** `5.7-RELEASE-8` */
  version: string;
  /** Process start, ISO 8601; null when the core does not report it. */
  startedAt: string | null;
  /** Null when the core does not report it. `capBytes`: its limit. */
  memory: { usedBytes: number; capBytes: number | null } | null;
}

/** The stream of the light core. */
export interface CoreStreamFacts {
  clients: number;
  /** How many it takes, by the memory and the file descriptors of the core. */
  maxClients: number;
  /** Receivers get the newest position of each uid once in so many seconds; 0: each one. */
  thinningSeconds: number;
  /** Processor time that the core has used since its start; absent when it does not report it. */
  cpuSeconds?: number;
  /** Absent when there is one node. */
  cluster?: CoreCluster;
}

/**
 * Every call ends within a few seconds. Rejects with an AppError: `unavailable` when the core does
 * not answer, `upstream` when its response is invalid or it refuses our certificate, else as the
 * methods define. After `unavailable` a change may or may not have been made.
 */
export interface Core {
  /**
   * Of one user, or of everyone, including revoked and expired ones. A release finds one user's
   * only in the spelling of that name: a caller that must miss none asks for everyone's.
   */
  certificates(username?: string): Promise<CoreCertificate[]>;
  certificate(hash: string): Promise<CoreCertificate | undefined>;
  /** Those that have a revocation date. */
  revokedCertificates(): Promise<CoreCertificate[]>;
  /**
   * Revokes, and reads back that the date is there (`upstream` when it is not). `not_found` for an
   * unknown hash; a certificate that is already revoked stays as it is. Callers ensure that only
   * one revocation runs at a time.
   */
  revoke(hash: string): Promise<CoreCertificate>;
  clients(): Promise<CoreClient[]>;
  /**
   * That `connection`, else every one of that `uid`, whoever it belongs to; false when there is
   * none.
   */
  disconnect(uid: string): Promise<boolean>;
  /**
   * Closes just that `connection`, also one that `clients` does not list; false when there is none.
   */
  endConnection(connection: string): Promise<boolean>;
  /**
   * Reloads the groups of a user from the directory for connected devices. Without it, changes
   * count within a minute or so. An unknown name is no error.
   */
  regroup(username: string): Promise<void>;
  /** `unavailable` while the plugin process is down. */
  plugins(): Promise<CorePlugin[]>;
  /**
   * Resolves with the plugin as it is afterwards, read back; `not_found` when there is none of that
   * name.
   */
  changePlugin(name: string, change: { enabled: boolean } | { started: boolean }): Promise<CorePlugin>;
  status(): Promise<CoreStatus>;
  /** Undefined when the core does not report it, as a release. */
  stream(): Promise<CoreStreamFacts | undefined>;
  /**
   * The last attempts to enroll under this name, newest first; undefined when the core does not
   * report them.
   */
  enrollmentAttempts(username: string): Promise<EnrollmentAttempt[] | undefined>;
}

/** The core's CA and revocation list, which are public. */
export interface AuthorityCertificate {
  /** From `ca.pem`: the CA certificate first, then the ones above it. */
  chainPem: string[];
  /** SHA-256 of the CA certificate's DER: `AA:BB:…`. */
  fingerprint: string;
  /** ISO 8601. */
  expiresAt: string;
}

export interface RevocationListContent {
  pem: string;
  /** Of the revoked ones, lower-case hex without leading zeros. */
  serials: string[];
  /** ISO 8601. */
  thisUpdate: string;
  nextUpdate: string | null;
  /** Its signature verifies against the CA. */
  ours: boolean;
}

/**
 * Rejects with `unavailable` when a file is missing or cannot be read, with its name and the
 * reason.
 */
export interface CoreAuthority {
  certificate(): Promise<AuthorityCertificate>;
  revocationList(): Promise<RevocationListContent>;
}

/**
 * Sends a notice from the operators to every connected client, shown there as chat. Errors as of
 * `Core`.
 */
export interface CoreNotices {
  /**
   * Resolves with the number of clients it was sent to; undefined when this core has no such call.
   */
  announce(text: string): Promise<number | undefined>;
}

/**
 * Retention at the core itself: its effective policy, in its own unit and cron, and its runs, if it
 * reports them. In the unit of the core (CORE_RETENTION_UNIT); null keeps forever.
 */
export type CoreRetentionPolicy = Record<Retained, number | null>;

export interface MissionArchiving {
  /** The core's own cron, or `-`. */
  cron: string;
  timeToArchiveAfterNoActivityDays: number;
  removeFromArchiveAfterDays: number;
  archiveMissionByNoContentActivity: boolean;
  archiveMissionByNoSubscriptionActivity: boolean;
}

/** Errors as of `Core`. */
export interface CoreRetention {
  policy(): Promise<CoreRetentionPolicy>;
  /**
   * Changes the given keys; resolves with the values read back, `upstream` when they differ from
   * the request.
   */
  changePolicy(change: Partial<CoreRetentionPolicy>): Promise<CoreRetentionPolicy>;
  /** The core's own cron, or `-`. */
  schedule(): Promise<string>;
  /** Resolves with the value read back, `upstream` when it differs from the request. */
  changeSchedule(cron: string): Promise<string>;
  missionArchiving(): Promise<MissionArchiving>;
  /**
   * Starts a run. `not_supported` when the core has no such call, `conflict` when one is running,
   * `invalid` for its limits.
   */
  begin(order: RetentionRunOrder): Promise<CoreRetentionRun>;
  /** The latest ones, newest first; undefined when the core does not report them. */
  runs(): Promise<CoreRetentionRun[] | undefined>;
}

/**
 * The certificate files of the core (certs/files below CORE_DATA_DIR) that health checks. Keys are
 * never read. The kind of a file: the CA, the core's server certificate, a certificate of a service
 * account (`svc_`).
 */
export type CertificateKind = 'ca' | 'server' | 'service';

/**
 * A certificate as its file contains it, or the reason it can't be read. Dates are ISO 8601 in UTC.
 */
export type CertificateFile = { name: string; kind: CertificateKind } & (
  | {
      subject: string;
      from: string;
      /** For a CA file with a chain: the earliest expiry in it. */
      until: string;
      /** Signed by a certificate of `ca.pem`; undefined when that can't be read. */
      ours: boolean | undefined;
    }
  | Unreadable
);

/** The revocation list, `ca.crl`. */
export type RevocationListFile =
  | {
      /**
       * Its signature verifies against a certificate of `ca.pem`; undefined when that can't be
       * read.
       */
      ours: boolean | undefined;
      this_update: string;
      /** Null: the list does not announce the next one. */
      next_update: string | null;
    }
  | Unreadable;

interface Unreadable {
  /** A predicate whose subject is the file: `is missing`. */
  problem: string;
}

export interface CoreCertificates {
  /** Where the files are, or should be. */
  directory: string;
  /** `ca.pem`, `takserver.pem`, `svc_api.pem` always, then the other service accounts by name. */
  certificates: CertificateFile[];
  revocationList: RevocationListFile;
}

export interface CoreFiles {
  /** Reads the files now. Rejects when the directory exists but can't be listed. */
  certificates(): Promise<CoreCertificates>;
}

/** What this feature needs from outside, by the names in Deps. */
export interface CorePorts {
  core: Core;
  coreAuthority: CoreAuthority;
  coreNotices: CoreNotices;
  coreRetention: CoreRetention;
}
