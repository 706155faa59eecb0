// Defines the interfaces between the parts of the embedded core. Wire formats are defined where
// they are used.

import type { TLSSocket } from 'node:tls';
import type { EnrollmentAttempt } from '@holdfast/kit/core-wire';
import type { Directory, DirectoryEntry } from '@holdfast/kit/directory';
import type { RetentionPolicy } from '@holdfast/kit/retention';
import type { RevocationListTimes, SignedCertificate } from '@holdfast/pki/parts';

/** A device with a certificate of ours that was not let in to the stream. */
export type RefusedConnection = Pick<EnrollmentAttempt, 'username' | 'address' | 'reason'>;

/** A row of the table `certificate`. */
export interface CertificateRecord {
  id: number;
  /** Who enrolled. */
  creatorDn: string;
  subjectDn: string;
  /** The common name. */
  userDn: string;
  /** PEM with header lines. */
  certificate: string;
  /** `AA:BB:…` */
  hash: string;
  clientUid: string;
  issuanceDate: Date;
  effectiveDate: Date;
  expirationDate: Date;
  revocationDate: Date | null;
  token: string | null;
}

export type CertificateSelection = 'all' | 'active' | 'replaced' | 'expired' | 'revoked';

/**
 * The certificates that the core knows. Every call rejects with an AppError `unavailable` when the
 * database is away.
 */
export interface CertificateStore {
  /** Kept for good when it resolves. */
  add(signed: SignedCertificate, from: { creator: string; clientUid: string }, now: Date): Promise<CertificateRecord>;
  /**
   * Sorted by clientUid, then id. `active`: the newest issue of each clientUid and name, revoked
   * and expired ones too.
   */
  list(selection: CertificateSelection, now: Date, username?: string): Promise<CertificateRecord[]>;
  byHash(hash: string): Promise<CertificateRecord | undefined>;
  /** Those that exist, in the order of the ids. */
  byIds(ids: readonly number[]): Promise<CertificateRecord[]>;
  /** Sets the date unless there is one already; resolves with the row as it is then. */
  setRevoked(id: number, at: Date): Promise<CertificateRecord>;
  remove(ids: readonly number[]): Promise<void>;
}

/** Who is refused, at every handshake and at every request. */
export interface Revocations {
  /** By the serial number of a certificate of our CA. Asked at every handshake: no I/O. */
  isRevoked(serial: string): boolean;
  /**
   * Recorded, refused from now on, its live connections ended, in the list: in this order, each
   * before the next; one revocation at a time. What a crash leaves undone is done at the next
   * start. Resolves with the row. `except` is the socket that the request came by: it may still
   * carry the answer, and nothing after it.
   */
  revoke(record: CertificateRecord, options?: { except?: object | undefined }): Promise<CertificateRecord>;
  /**
   * Takes in what the table and the files say, and writes the list anew: at start and every day.
   */
  refresh(): Promise<RevocationListTimes>;
  /** Of the list that was written last; undefined while one that has to be written could not be. */
  listTimes(): RevocationListTimes | undefined;
}

/** The certificate that a client has shown in its handshake. */
export interface ClientCertificate {
  /** Lower-case hex without leading zeros. */
  serial: string;
  /** `AA:BB:…` */
  hash: string;
  commonName: string;
  /** The whole subject, `CN=ada,OU=CoT,O=Holdfast`. */
  subject: string;
  /** It carries the extended key usage for channels. */
  channels: boolean;
}

/** Connections that a client certificate has opened, on whatever port. */
export interface LiveConnections {
  /** Until it closes. */
  add(
    socket: { destroy(): void; once(event: 'close', then: () => void): unknown },
    certificate: ClientCertificate,
  ): void;
  /** Ends them at once; `except` is the one that the request came by. Returns how many. */
  end(serial: string, except?: object): number;
}

/** The connection that a request came by, as the listener knows it. */
export interface CoreConnection {
  clientAddress: string;
  secure: boolean;
  /** Of 8443; undefined on 8446. */
  certificate?: ClientCertificate;
  /** The socket itself, to be told apart from others. */
  socket?: object;
  /** Ends it in the middle of an answer: whoever reads sees that the rest is missing. */
  abort?: () => void;
}

export type CoreFetch = (request: Request, connection: CoreConnection) => Response | Promise<Response>;

export type CoreRole = 'ROLE_ADMIN' | 'ROLE_READONLY' | 'ROLE_ANONYMOUS' | 'ROLE_NON_ADMIN_UI' | 'ROLE_WEBTAK';

/** UserAuthenticationFile.xml: rights of certificates. Read again when the file changes. */
export interface UsersFile {
  /**
   * By fingerprint (`AA:BB:…`), else by the name of an entry that has none; ROLE_ANONYMOUS without
   * an entry.
   */
  roleOf(certificate: Pick<ClientCertificate, 'hash' | 'commonName'>): CoreRole;
  /** Adds or replaces the entry of that name; what else stands in the file stays as it is. */
  grant(entry: { identifier: string; fingerprint: string; role: CoreRole }): void;
  /**
   * Removes every entry of that name, without regard to case; what else stands in the file stays as
   * it is.
   */
  cancel(identifier: string): void;
}

/** Whoever asks the core for something. */
export interface CoreCaller {
  username: string;
  by: 'certificate' | 'password' | 'token';
  role: CoreRole;
  certificate?: ClientCertificate;
}

/** A group as the directory shows it; the name still has its prefix. */
export interface DirectoryGroup {
  dn: string;
  name: string;
  description: string | undefined;
  /** Names (`cn`) of the members. */
  members: string[];
}

export interface CoreDirectory extends Pick<Directory, 'signIn' | 'find'> {
  /** Every group whose name contains the text, sorted by name. Errors as of `Directory`. */
  groups(containing: string): Promise<DirectoryGroup[]>;
}

export type GroupDirection = 'IN' | 'OUT';

/** A membership: IN may send into the group, OUT receives from it. */
export interface Membership {
  /** As devices see it, without the prefix. */
  name: string;
  direction: GroupDirection;
}

/**
 * From what the directory says of a person to groups with directions; none for somebody whom it
 * does not know.
 */
export type MembershipsOf = (entry: Pick<DirectoryEntry, 'groups'> | undefined) => Membership[];

/** A row of the table `groups`. */
export interface KnownGroup {
  name: string;
  bitpos: number;
  created: Date;
  type: 'LDAP' | 'SYSTEM';
}

/** A client on the stream, as the lists show it. */
export interface Subscription {
  /** `tls:7` */
  subscriptionUid: string;
  certificate: ClientCertificate;
  callsign: string;
  clientUid: string;
  lastReport: Date;
  takClient: string;
  takVersion: string;
  username: string;
  groups: Membership[];
  team: string;
  role: string;
  address: string;
  port: number;
  pendingWrites: number;
  processed: number;
  protocol: string;
  /** In which it gets events. */
  framing: 'xml' | 'protobuf';
  /** Reads its newest report; undefined when that says no place. Absent before the first one. */
  position?: () => ReportedPosition | undefined;
  /** Name of the node that it is connected to; absent for this one. */
  node?: string;
}

/** Where a client says it is. */
export interface ReportedPosition {
  lat: number;
  lon: number;
  /** Meters above the ellipsoid; null when unknown. */
  hae: number | null;
  time: Date | null;
}

/** Who is on the stream right now. Nobody while the core has no stream. */
export interface Subscriptions {
  list(): Subscription[];
  /** Ends the connection; false when there is none of that subscriptionUid or clientUid. */
  end(uid: string): boolean;
}

/** Somebody who was let in. */
export interface Arrival {
  socket: TLSSocket;
  /** As a trusted proxy reports it, where one does. */
  clientAddress: string;
  clientPort: number;
  /** Of a port that asks for certificates. */
  known: KnownCertificate | undefined;
  /**
   * A connection at work is never closed for another one; a new one is at work until it says
   * otherwise.
   */
  busy(): void;
  idle(): void;
}

/**
 * What is in force. A change is in its file when the call returns; throws a StackError when it
 * cannot be written.
 */
export interface Retention {
  /** In days. */
  policy(): RetentionPolicy;
  /** Takes the given keys in; what they hold was checked. */
  changePolicy(given: Partial<RetentionPolicy>): RetentionPolicy;
  /**
   * Resources with one of these keywords are kept for ever, unless they are in a mission that goes:
   * they go with it.
   */
  exemptKeywords(): readonly string[];
  /** Quartz, or `-`. */
  schedule(): string;
  /** False, and nothing changed, when it is no schedule. */
  changeSchedule(text: string): boolean;
  /**
   * The first of these two files that says something else than what is in force; undefined: none.
   */
  edited(): string | undefined;
  archive(): ArchiveSettings;
  changeArchive(given: Partial<ArchiveSettings>): ArchiveSettings;
  /** The missions that were put away, as their file lists them. */
  archived(): unknown;
  /** Takes in what another process has written. Throws a StackError for a file that is broken. */
  reload(file: 'policy' | 'schedule' | 'archive'): void;
  /** Called after each change: whoever deletes plans anew. */
  onChange(then: () => void): void;
}

/** When missions that nobody uses are put away. */
export interface ArchiveSettings {
  cronExpression: string;
  timeToArchiveAfterNoActivityDays: number;
  removeFromArchiveAfterDays: number;
  archiveMissionByNoContentActivity: boolean;
  archiveMissionByNoSubscriptionActivity: boolean;
}

/** A certificate of our CA, read once. */
export interface KnownCertificate {
  certificate: ClientCertificate;
  /** Milliseconds since 1970. */
  notBefore: number;
  notAfter: number;
}
