// The core server's own admin API: certificates that were enrolled, clients on the stream, plugins, what it says of itself.

import type { CoreRetentionRun, EnrollmentAttempt, RetentionRunOrder } from '@holdfast/kit/core-wire';
import type { Retained } from '@holdfast/kit/retention';

/** A certificate as the core has recorded it. Times are ISO 8601 in UTC. */
export interface CoreCertificate {
  /** SHA-256 of the DER: `AA:BB:…`. Its key. */
  hash: string;
  /** Lower-case hex without leading zeros; empty where the core's record cannot be read. */
  serial: string;
  /** The common name: whose it is. */
  username: string;
  /** What the device called itself when it enrolled; may be empty. */
  clientUid: string;
  issuedAt: string;
  expiresAt: string;
  revokedAt: string | null;
  /** With header lines. */
  pem: string;
}

/** A connection on the stream. */
export interface CoreClient {
  /** What the device calls itself; empty until it has reported. */
  uid: string;
  /** The core's own name of the connection: `tls:7`. */
  connection: string;
  callsign: string;
  username: string;
  /** As devices see them, without a prefix; each once. */
  groups: string[];
  team: string;
  role: string;
  /** Program and version, as the device says. */
  device: string;
  address: string;
  /** ISO 8601; null when the core does not say. */
  since: string | null;
  lastReport: string | null;
}

export interface CorePlugin {
  name: string;
  description: string;
  version: string;
  enabled: boolean;
  started: boolean;
  /** What it failed with; null when it did not. */
  error: string | null;
}

export interface CoreStatus {
  /** `5.7-RELEASE-8` */
  version: string;
  /** When the process began, ISO 8601; null when the core does not say. */
  startedAt: string | null;
  /** Null when the core does not say. `capBytes`: what it may use at most. */
  memory: { usedBytes: number; capBytes: number | null } | null;
}

/**
 * Every call ends within a few seconds. Rejects with an AppError: `unavailable` when the core does not answer, `upstream`
 * when its answer makes no sense or it refuses our certificate, else as the methods say. After `unavailable` it is open
 * whether a change was made.
 */
export interface Core {
  /**
   * Of one user, or of everybody: revoked and expired ones too. A release finds one user's in the spelling of that name alone:
   * whoever must miss none asks for everybody's.
   */
  certificates(username?: string): Promise<CoreCertificate[]>;
  certificate(hash: string): Promise<CoreCertificate | undefined>;
  /** Those that have a revocation date. */
  revokedCertificates(): Promise<CoreCertificate[]>;
  /**
   * Revokes, and reads back that the date is there (`upstream` when it is not). `not_found` for an unknown hash; one that
   * is revoked already stays as it is. Callers see to it that there is one at a time.
   */
  revoke(hash: string): Promise<CoreCertificate>;
  clients(): Promise<CoreClient[]>;
  /** That `connection`, else every one of that `uid`, whosoever it is; false when there is none. */
  disconnect(uid: string): Promise<boolean>;
  /** Ends just that `connection`, also one that `clients` does not list; false when there is none. */
  endConnection(connection: string): Promise<boolean>;
  /**
   * Takes the groups of a user anew from the directory, for the devices that are connected. Without it they count within a
   * minute or so. A name that nobody has is no error.
   */
  regroup(username: string): Promise<void>;
  /** `unavailable` while the plugin process is down. */
  plugins(): Promise<CorePlugin[]>;
  /** Resolves with the plugin as it is then, read back; `not_found` when there is none of that name. */
  changePlugin(name: string, change: { enabled: boolean } | { started: boolean }): Promise<CorePlugin>;
  status(): Promise<CoreStatus>;
  /** The last attempts to enroll under this name, newest first; undefined when the core does not tell such things. */
  enrollmentAttempts(username: string): Promise<EnrollmentAttempt[] | undefined>;
}

/** The CA of the core and its revocation list, as everybody may see them. */
export interface AuthorityCertificate {
  /** Of `ca.pem`: the CA certificate first, then what stands above it. */
  chainPem: string[];
  /** SHA-256 of the CA certificate's DER: `AA:BB:…`. */
  fingerprint: string;
  /** ISO 8601. */
  expiresAt: string;
}

export interface RevocationListContent {
  pem: string;
  /** Of the revoked, lower-case hex without leading zeros. */
  serials: string[];
  /** ISO 8601. */
  thisUpdate: string;
  nextUpdate: string | null;
  /** Its signature verifies against the CA. */
  ours: boolean;
}

/** Rejects with `unavailable` when a file is missing or cannot be read, naming it and why. */
export interface CoreAuthority {
  certificate(): Promise<AuthorityCertificate>;
  revocationList(): Promise<RevocationListContent>;
}

/**
 * A word from the operators to everybody who is connected to the core, shown there as chat.
 * Errors as of `Core`.
 */
export interface CoreNotices {
  /** Resolves with how many clients it was sent to; undefined when this core has no such call. */
  announce(text: string): Promise<number | undefined>;
}

/**
 * Retention at the core itself: what it has in force, in its own unit and its own cron; and runs, where it tells of them.
 * In the unit of the core (CORE_RETENTION_UNIT); null keeps for ever.
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
  /** Changes the given keys; resolves with what was read back, `upstream` when that is not what was asked for. */
  changePolicy(change: Partial<CoreRetentionPolicy>): Promise<CoreRetentionPolicy>;
  /** The core's own cron, or `-`. */
  schedule(): Promise<string>;
  /** Resolves with what was read back, `upstream` when that is not what was asked for. */
  changeSchedule(cron: string): Promise<string>;
  missionArchiving(): Promise<MissionArchiving>;
  /** Begins a run. `not_supported` when the core has no such call, `conflict` when one is going on, `invalid` for its limits. */
  begin(order: RetentionRunOrder): Promise<CoreRetentionRun>;
  /** The last ones, newest first; undefined when the core does not tell such things. */
  runs(): Promise<CoreRetentionRun[] | undefined>;
}

/**
 * The certificate files of the core (certs/files below CORE_DATA_DIR), as far as health looks at them. Keys are never read.
 * Which part a file has: the CA, the core's server certificate, a certificate of a service account (`svc_`).
 */
export type CertificateKind = 'ca' | 'server' | 'service';

/** A certificate as its file holds it, or why nothing can be said of it. Dates are ISO 8601 in UTC. */
export type CertificateFile = { name: string; kind: CertificateKind } & (
  | {
      subject: string;
      from: string;
      /** Of a CA file with a chain: the end of whichever ends first. */
      until: string;
      /** Signed by a certificate of `ca.pem`; undefined where that cannot be read. */
      ours: boolean | undefined;
    }
  | Unreadable
);

/** The revocation list, `ca.crl`. */
export type RevocationListFile =
  | {
      /** Its signature verifies against a certificate of `ca.pem`; undefined where that cannot be read. */
      ours: boolean | undefined;
      this_update: string;
      /** Null: the list does not say when the next one comes. */
      next_update: string | null;
    }
  | Unreadable;

interface Unreadable {
  /** A predicate whose subject is the file: `is missing`. */
  problem: string;
}

export interface CoreCertificates {
  /** Where the files are, or ought to be. */
  directory: string;
  /** `ca.pem`, `takserver.pem`, `svc_api.pem` always, then the other services by name. */
  certificates: CertificateFile[];
  revocationList: RevocationListFile;
}

export interface CoreFiles {
  /** Reads the files now. Rejects when the directory cannot be listed although it is there. */
  certificates(): Promise<CoreCertificates>;
}

/** What this feature asks of the outside, by the names in Deps. */
export interface CorePorts {
  core: Core;
  coreAuthority: CoreAuthority;
  coreNotices: CoreNotices;
  coreRetention: CoreRetention;
}
