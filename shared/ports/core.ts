// The core server's own admin API: certificates that were enrolled, clients on the stream, plugins, what it says of itself.

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

/** Somebody tried to enroll. */
export interface EnrollmentAttempt {
  /** ISO 8601. */
  at: string;
  address: string;
  username: string;
  clientUid: string;
  result: 'signed' | 'refused';
  /** In a sentence; empty for `signed`. */
  reason: string;
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
